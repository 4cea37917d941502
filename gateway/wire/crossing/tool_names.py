"""What the tools of a Responses request are called in chat completions, which have no namespaces.
Pure.

A tool of a `namespace` goes out under a joined name. What a name stands for is looked up in a table
that is made of the request, never read out of the name: `a__b` may be a tool of `a` as well as one
that is called so. A tool outside of namespaces keeps its name. A joined name depends on its own two
parts alone unless it would be another's, so that a prompt stays the same from request to request.

A call in the transcript whose tool is offered no more has a joined name all the same.

Source: OpenAI API reference, "Create a model response" (tools of type `namespace`; a call has the
tool's own `name` and the `namespace` beside it), and "Create chat completion" (`function.name`: up
to 64 letters, digits, underscores and dashes).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.lenient import dicts
from gateway.wire.responses.items import string

NAME_CHARS_MAX = 64
_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_CALLS = frozenset({"function_call", "custom_tool_call"})
FREE_TEXT_KIND = "custom"
NAMESPACE_KIND = "namespace"


@dataclass(frozen=True, slots=True)
class ToolName:
    """What a client calls a tool."""

    namespace: str
    """Empty: it is in none."""
    name: str


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of one request's tools."""

    joined: Mapping[ToolName, str]
    """The upstream's names of tools in namespaces."""
    offered: Mapping[str, ToolName]
    """What each of the upstream's names stands for, of tools and of calls in the transcript."""
    free_text: frozenset[str]
    """The upstream's names of tools that are called with free text."""

    def upstreams(self, named: ToolName) -> str:
        """Return what the upstream calls a tool; its own name where it is in no namespace."""
        return self.joined.get(named, named.name)

    def clients(self, name: str) -> ToolName:
        """Return what the client calls the tool of an upstream's name; one that nobody offered is
        called as the upstream has it."""
        return self.offered.get(name, ToolName("", name))

    def chosen(self, choice: Mapping[str, Any]) -> str:
        """Return the upstream's name of a tool that a `tool_choice` names, perhaps without its
        namespace.

        Raises:
            Untranslatable: several namespaces have a tool of this name.

        """
        named = name_of(choice)
        if named.namespace or named.name in self.offered:
            return self.upstreams(named)
        found = [upstreams for one, upstreams in self.joined.items() if one.name == named.name]
        if len(found) > 1:
            raise Untranslatable("tool_choice", f"{named.name!r}, which several namespaces have,")
        return found[0] if found else named.name

    def within(self, namespace: str) -> Iterator[str]:
        """Yield the upstream's names of the tools of a namespace."""
        return (one for named, one in self.joined.items() if named.namespace == namespace)


def tool_names(fields: Mapping[str, Any]) -> ToolNames:
    """Return the names of the tools of a request, and of those that its `input` has calls of."""
    plain: dict[str, ToolName] = {}
    inner: dict[ToolName, None] = {}
    free: set[ToolName] = set()
    for tool in dicts(fields.get("tools")):
        space = string(tool.get("name")) if tool.get("type") == NAMESPACE_KIND else ""
        for one in dicts(tool.get("tools")) if tool.get("type") == NAMESPACE_KIND else (tool,):
            named = ToolName(space, string(one.get("name")))
            if space:
                inner[named] = None
            elif named.name:
                plain[named.name] = named
            if one.get("type") == FREE_TEXT_KIND:
                free.add(named)
    for item in dicts(fields.get("input")):
        if item.get("type") in _CALLS and item.get("namespace"):
            inner[name_of(item)] = None
    joined: dict[ToolName, str] = {}
    offered = dict(plain)
    for named in inner:
        joined[named] = next(name for name in _candidates(named) if name not in offered)
        offered[joined[named]] = named
    return ToolNames(joined, offered, frozenset(joined.get(named, named.name) for named in free))


def name_of(call: Mapping[str, Any]) -> ToolName:
    """Return what a call or a choice calls its tool."""
    return ToolName(string(call.get("namespace")), string(call.get("name")))


def _candidates(named: ToolName) -> Iterator[str]:
    """Yield names that a tool may have, the most readable first; they do not end."""
    readable = _UNFIT.sub("_", f"{named.namespace}__{named.name}")
    if len(readable) <= NAME_CHARS_MAX:
        yield readable
    for number in count():
        parts = "\0".join((named.namespace, named.name, str(number)))
        digest = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
        ending = f"_{digest[:_DIGEST_CHARS]}"
        yield readable[: NAME_CHARS_MAX - len(ending)] + ending
