"""A chat message as the governor sees it, whatever protocol it came in. Pure.

A codec (gateway/wire) makes these from a client's JSON and writes the chosen ones back. `raw` is
the client's own JSON value and goes out untouched; the other fields say what the governor must
know to count, place and find the message. Nothing here names a protocol.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
"""`developer` is `system` here; `raw` keeps what the client wrote."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image part, as far as its price depends on it."""

    width: int | None
    """Pixels; None: unknown (a URL we do not fetch), priced at the most it can cost."""
    height: int | None
    detail: Literal["low", "high", "auto"]


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that is neither text nor image (audio, file, an unknown type)."""

    kind: str
    size_bytes: int
    """Of the decoded payload, or of the part's JSON where it has none."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript."""

    role: Role
    raw: dict[str, Any]
    text: str
    """Its words, for people and for search: content, tool calls as `name(arguments)`."""
    counted: tuple[str, ...]
    """Every string the model reads in it: content, name, call names, arguments and ids."""
    digest: bytes
    """Identity, see governor/identity.py; b"" for system messages and for text of our own: such
    messages are no events."""
    images: tuple[Image, ...] = ()
    opaque: tuple[Opaque, ...] = ()
    call_ids: tuple[str, ...] = ()
    """Ids this assistant message asks to be answered."""
    answers: str | None = None
    """Id of the call this tool message answers."""
    item_count: int = 1
    """So many pieces, calls aside, that a template may put something around."""
    said: dict[str, Any] | None = None
    """`raw` without the text that a gateway put in, where it holds such: this is what is stored."""
    prices: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What it costs by each counter's identity, once that was counted; counters keep it."""
