"""What a protocol must know so that the gateway can offer a model tools of its own. Pure.

A model that is offered `library_search` and `library_open` answers in *rounds*: each that ends
with calls of ours is followed by another, which has their results, until one answers the client.
The client asked for none of this, and sees one answer: `Splice` makes it out of the streams of
several rounds as they come, `merged` out of their bodies. What they take away is our calls; what
they leave is the model's own words, those that came with a call too, in front of the answer.

Everything else about rounds knows no protocol (gateway/lookups).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.wire.lookups.blocks import Block

Names = frozenset[str]
"""Of the tools that are ours."""
CUT = frozenset({"length", "max_tokens", "max_output_tokens", "content_filter", "refusal"})
"""Finish reasons of a round that was broken off: what it calls may be half a call, and the answer
ends there."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a model makes."""

    id: str
    name: str
    arguments: str
    """JSON, if the model wrote such."""


class Splice(Protocol):
    """One stream for the client, made of those of several rounds."""

    is_waiting: bool
    """The round ends with calls of ours and none of the client's: what ends it is kept back."""
    has_ended: bool
    """The event that ends the round's stream has come."""
    has_spoken: bool
    """The client was shown words of an answer, or a call of its own."""

    def take(self, block: Block) -> bytes:
        """Take the next event of a round; return what the client is shown of it."""

    def go_on(self) -> None:
        """Forget what was kept back: another round follows."""

    def close(self) -> bytes:
        """Return the end of the stream, where no other round follows one that waits for it."""

    def let_go(self) -> bytes:
        """Hold nothing any more but the end; return what was held for the client. There is no room
        for more, and so no other round."""


@dataclass(frozen=True, slots=True)
class RoundShapes:
    """How one protocol writes the rounds of an answer."""

    tool: Callable[[Tool], dict[str, Any]]
    """Returns an entry of the request's `tools`."""
    no_calls: Any
    """The `tool_choice` that forbids calls."""
    calls: Callable[[Mapping[str, Any]], list[Call]]
    """Returns the calls of functions in a reply, as `ReadReply.messages` has it."""
    again: Callable[[Mapping[str, Any], dict[str, Any]], dict[str, Any]]
    """Returns a reply as a request with these fields may bring it back."""
    splice: Callable[[Names], Splice]
    merged: Callable[[Sequence[dict[str, Any]], Names], dict[str, Any]]
    """Returns one body for the client, made of those of all rounds; the last itself, where nothing
    of it has to change."""


def usage_of(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what all rounds used together; None where none says it."""
    total: Any = None
    for body in bodies:
        if isinstance(body.get("usage"), dict):
            total = added(total, body["usage"])
    return total if isinstance(total, dict) else None


def added(one: Any, other: Any) -> Any:
    """Return the numbers of two rounds added up, by name; of anything else, the later round's."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{key: added(one.get(key), value) for key, value in other.items()}}
    if _is_number(one) and _is_number(other):
        return one + other
    return one if other is None else other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
