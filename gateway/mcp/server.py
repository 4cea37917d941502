"""The MCP server on one gateway: its tools, resources and prompts, in the SDK's terms.

An error that the gateway foresees reaches the model as the tool's answer, with its sentence; one
that it does not is logged, and the model is told no more than that.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import orjson
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

from gateway.errors import ANSWERED
from gateway.mcp.compat.names import NEEDED, WITHOUT_EFFECT, system_of
from gateway.mcp.greeting import NAME, TITLE, VERSION, instructions_of
from gateway.mcp.names import TOOLS
from gateway.mcp.prompts import add_prompts
from gateway.mcp.resources import add_resources
from gateway.mcp.tools.desk import DeskTools
from gateway.mcp.tools.documents import DocumentTools
from gateway.mcp.tools.insights import InsightTools
from gateway.mcp.tools.overview import OverviewTools
from gateway.mcp.tools.promoting import PromotionTools
from gateway.mcp.tools.reading import ReadingTools
from gateway.mcp.tools.retention import RetentionTools
from gateway.mcp.tools.turns import TurnTools

log = logging.getLogger(__name__)
IN_WORDS = "rlm_"
"""Tools whose whole answer is text."""
WRITING = frozenset({"library_desk_watch", "library_desk_stop"})
"""Aliases that their system says change something, where ours do not."""
LONG_FIELDS = ("block", "text")
"""Shown to the model as they are, behind the rest: in JSON each line break would be two letters."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a client may tell its user before it calls a tool."""

    title: str
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True


_READS = {
    "consult": "Search the library",
    "open": "Read a record",
    "grep": "Search for exact words or a pattern",
    "plan_reading": "Plan what to read within a budget",
    "sessions": "List recorded conversations",
    "domains": "List projects and topics",
    "status": "Show the state of the library",
    "desk_refresh": "Lay out the reading desk",
    "desk_get": "Read the desk",
    "desk_watch": "Keep the desk fresh",
    "desk_stop": "Stop keeping the desk fresh",
    "recall": "Recall insights",
    "flush": "Wait until a session can be found",
    "retention_preview": "Show what would be archived or deleted",
}
BEHAVIOURS: Mapping[str, Behaviour] = {
    **{name: Behaviour(title) for name, title in _READS.items()},
    "remember": Behaviour("Remember an insight", is_read_only=False),
    "update": Behaviour("Change an insight", is_read_only=False),
    "forget": Behaviour("Forget an insight for good", is_read_only=False, is_destructive=True),
    "shelve": Behaviour("Put a text by", is_read_only=False),
    "shelve_document": Behaviour(
        "Shelve a document in place of its last edition", is_read_only=False, is_destructive=True
    ),
    "promote": Behaviour("Share a copy of a record", is_read_only=False),
    "demote": Behaviour("Take a shared copy back", is_read_only=False, is_destructive=True),
    "protect": Behaviour("Keep a text in every prompt of a session", is_read_only=False),
    "release": Behaviour("Let go of a protected text", is_read_only=False),
    "retention_run": Behaviour(
        "Archive and delete by the rules", is_read_only=False, is_destructive=True
    ),
    "restore": Behaviour("Make archived records active again", is_read_only=False),
    "pin": Behaviour("Pin a record", is_read_only=False),
    "unpin": Behaviour("Unpin a record", is_read_only=False),
    "prepare": Behaviour("Prepare a turn", is_read_only=False, is_idempotent=False),
    "commit": Behaviour("Commit a turn", is_read_only=False),
}


class Parts:
    """What the servers of one gateway share: several offer different tools on the same state."""

    def __init__(
        self,
        *,
        reading: ReadingTools,
        desk: DeskTools,
        turns: TurnTools,
        insights: InsightTools,
        overview: OverviewTools,
        documents: DocumentTools,
        promoting: PromotionTools,
        retention: RetentionTools,
        compat: Sequence[object],
    ) -> None:
        self._holders: tuple[object, ...] = (
            *(reading, desk, turns, insights, overview),
            *(documents, promoting, retention),
            *compat,
        )
        self.reading = reading
        self.desk = desk

    def tool(self, name: str) -> Callable[..., Any]:
        """Return the function behind a tool's name."""
        holder = next(one for one in self._holders if hasattr(one, name))
        found: Callable[..., Any] = getattr(holder, name)
        return found


class LibraryServer(MCPServer):
    """The SDK's server, with our errors and our way to show an answer.

    The SDK passes over arguments that a tool does not have. Whoever misspells `projects` would
    believe that only some were searched: they are refused, as an HTTP route refuses them.
    """

    def __init__(self, *, instructions: str) -> None:
        super().__init__(NAME, title=TITLE, version=VERSION, instructions=instructions)
        self._takes: dict[str, dict[str, object]] = {}
        """Of each tool its parameters, with what they are when they are not given."""

    def offer(self, name: str, function: Callable[..., Any]) -> None:
        """Add a tool of ours."""
        behaviour = _behaviour(name)
        self.add_tool(
            function,
            name=name,
            title=behaviour.title,
            annotations=ToolAnnotations(
                title=behaviour.title,
                read_only_hint=behaviour.is_read_only,
                destructive_hint=behaviour.is_destructive,
                idempotent_hint=behaviour.is_idempotent,
                open_world_hint=False,
            ),
            structured_output=False if name.startswith(IN_WORDS) else None,
        )
        self._takes[name] = {
            one.name: one.default
            for one in signature(function).parameters.values()
            if one.name != "context"
        }

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        """Refuse arguments that a tool does not have.

        Raises:
            ToolError: there are some.

        """
        unknown = sorted(arguments.keys() - self._takes.get(name, arguments).keys())
        if unknown:
            listed = ", ".join(self._takes[name]) or "none"
            raise ToolError(
                f"{name} has no parameter {', '.join(map(repr, unknown))}; it takes: {listed}"
            )

    def _without_effect(self, name: str, arguments: dict[str, Any]) -> list[str]:
        """Return the arguments that changed nothing."""
        usual = self._takes.get(name, {})
        asked = {one for one, value in arguments.items() if value != usual.get(one)}
        return sorted(asked & WITHOUT_EFFECT.get(name, frozenset()))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> CallToolResult | InputRequiredResult:
        self._check(name, arguments)
        try:
            result = await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            if isinstance(error.__cause__, ANSWERED):
                raise ToolError(str(error.__cause__)) from error
            raise
        if isinstance(result, CallToolResult) and result.structured_content is not None:
            told: dict[str, Any] = result.structured_content
            if idle := self._without_effect(name, arguments):
                told = {**told, "without_effect": idle}
            return CallToolResult(content=shown(told), structured_content=told)
        return result

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context | None = None
    ) -> GetPromptResult | InputRequiredResult:
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            # With a cause of its own it came from within a prompt: a fault of ours, to be logged.
            if error.__cause__ is not None and error.__cause__.__cause__ is not None:
                raise
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from error


def make_server(parts: Parts, *, tools: frozenset[str]) -> LibraryServer:
    """Return a server that offers some of the tools."""
    instructions = instructions_of(system_of(tools))
    with _own_log():
        server = LibraryServer(instructions=instructions)
    for name in (*TOOLS, *NEEDED):
        if name in tools:
            server.offer(name, parts.tool(name))
    add_resources(server, parts.reading, parts.desk)
    add_prompts(server)
    return server


def _behaviour(name: str) -> Behaviour:
    """Return how a tool behaves: one under another system's name as ours does."""
    if name in BEHAVIOURS:
        return BEHAVIOURS[name]
    own = BEHAVIOURS[NEEDED[name]]
    title = name.split("_", 1)[1].replace("_", " ").capitalize()
    return replace(own, title=title, is_read_only=own.is_read_only and name not in WRITING)


@contextmanager
def _own_log() -> Iterator[None]:
    """Keep the process's log as it is: the SDK's constructor puts a handler of its own, in colours,
    where it finds none."""
    root, placeholder = logging.getLogger(), logging.NullHandler()
    root.addHandler(placeholder)
    try:
        yield
    finally:
        root.removeHandler(placeholder)


def shown(structured: dict[str, Any]) -> list[Any]:
    """Return an answer as a model reads it best: short JSON, then its long text as it is."""
    long = [name for name in LONG_FIELDS if isinstance(structured.get(name), str)]
    rest = {name: value for name, value in structured.items() if name not in long}
    texts = [orjson.dumps(rest).decode(), *(structured[name] for name in long)]
    return [TextContent(type="text", text=text) for text in texts if text]
