"""The two tools that a model may be offered, and when. Pure.

They are offered in no request that says what is to be called, that has tools of these names, or
that wants several answers: what the gateway adds must not change what the client asked for.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from gateway.wire.lookups.rounds import ROUNDS
from gateway.wire.lookups.seam import Names, Tool
from gateway.wire.protocol import ClientRequest, Wire
from governor.turn import Policy

SEARCH, OPEN = "library_search", "library_open"
NAMES: Names = frozenset({SEARCH, OPEN})
HITS_MAX = 20
"""That one search returns at most, however many are asked for."""
TOOLS = (
    Tool(
        SEARCH,
        "Search all earlier messages and records, also those not shown here. Returns excerpts with "
        "ids, best first.",
        {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"],
        },
    ),
    Tool(
        OPEN,
        "Read a record by its id, whole or by lines.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "first_line": {"type": "integer"},
                "last_line": {"type": "integer"},
            },
            "required": ["id"],
        },
    ),
)
"""Said briefly: every request pays for it, and where only a bound is known, several times."""


def schemas(wire: Wire) -> tuple[str, ...]:
    """Return the tools as the model is told of them, as compact JSON."""
    return tuple(orjson.dumps(ROUNDS[wire.name].tool(tool)).decode() for tool in TOOLS)


def may_be_offered(request: ClientRequest, policy: Policy, *, is_recorded: bool) -> bool:
    """Tell whether a request leaves the model free to call tools of ours, and has a past to look
    into."""
    fields = request.fields
    choice = fields.get("tool_choice")
    is_free = choice in (None, "auto") or (
        isinstance(choice, dict) and choice.get("type") == "auto"
    )
    is_one = fields.get("n") in (None, 1)
    # A reply that the client has begun is gone on with; it cannot be answered by a call.
    is_begun = not request.messages or request.messages[-1].role == "assistant"
    return (
        is_free
        and is_one
        and not is_begun
        and not fields.get("functions")
        and NAMES.isdisjoint(_names(fields))
        and is_recorded
        and not policy.is_observe
        and policy.recall != "off"
    )


def has_own_tools(request: ClientRequest) -> bool:
    """Tell whether the client itself offers tools."""
    return bool(request.fields.get("tools"))


def offering(request: ClientRequest, wire: Wire, *, is_last: bool) -> ClientRequest:
    """Return the request with the tools behind the client's own; `is_last`: nothing may be called
    any more."""
    shapes = ROUNDS[wire.name]
    own = request.written.get("tools", b"")
    added = ",".join(schemas(wire)).encode()
    inner = bytes(own).strip().removeprefix(b"[").removesuffix(b"]").strip()
    is_empty = not has_own_tools(request)  # null, too
    tools = b"[%s]" % (added if is_empty else inner + b"," + added)
    written = {**request.written, "tools": tools}
    if is_last:
        written["tool_choice"] = orjson.dumps(shapes.no_calls)
    return replace(request, written=written)


def _names(fields: Mapping[str, Any]) -> set[str]:
    found = set()
    tools = fields.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        body = tool.get("function", tool) if isinstance(tool, dict) else None
        name = body.get("name") if isinstance(body, dict) else None
        if isinstance(name, str):
            found.add(name)
    return found
