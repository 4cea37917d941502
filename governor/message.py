"""A chat message as the governor sees it, whatever protocol it came in. Pure.

A codec (gateway/wire) makes these from a client's JSON and writes the chosen ones back. `raw` is
the client's own JSON value and goes out untouched; the other fields say what the governor must
know to count, place and find the message. Nothing here names a protocol.
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from governor.surroundings import has_surroundings, is_surroundings
from library.records import IncomingMessage

Role = Literal["system", "user", "assistant", "tool"]
"""`developer` is `system` here; `raw` keeps what the client wrote."""

KEY_BYTES = 7
"""Of a digest: enough to tell the messages of one thread apart, and a number that JSON keeps."""


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
    page_count: int = 0
    """Of a document that models read page by page; 0: it is none."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript. What is asked of it in every request that repeats it is worked
    out once, when it is made."""

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
    has_blanks: bool = False
    """Pieces of it say nothing, where its protocol keeps a whole answer in one message."""
    said: dict[str, Any] | None = None
    """`raw` without the text that a gateway put in, where it holds such: this is what is stored."""
    prices: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What it costs by each counter's identity, once that was counted; counters keep it."""
    key: int = field(init=False, compare=False, repr=False)
    """Tells it, as it goes out, from any other message of its thread."""
    is_silent: bool = field(init=False, compare=False, repr=False)
    """It says nothing at all."""
    is_blank: bool = field(init=False, compare=False, repr=False)
    """It, or a piece of it, is empty, as no provider takes it."""
    incoming: IncomingMessage = field(init=False, compare=False, repr=False)
    """As the library is told of it, where it has a digest and its caller gave it no id."""

    def __post_init__(self) -> None:
        is_as_said = bool(self.digest) and self.said is None and not has_surroundings(self.text)
        words = b"" if is_as_said else "\0".join(self.counted).encode("utf-8", "surrogatepass")
        says_something = (
            self.said is not None
            or (self.text and not self.text.isspace())
            or self.call_ids
            or self.images
            or self.opaque
        )
        is_blank = self.has_blanks or (not says_something and self.role != "tool")
        is_common = self.role == "user" and is_surroundings(self.text)
        incoming = IncomingMessage(
            self.role, self.digest, self.said or self.raw, self.text, is_common=is_common
        )
        # Frozen for everybody else.
        set_once = object.__setattr__
        set_once(self, "key", key_number(self.digest) if is_as_said else key_of(words))
        set_once(self, "is_silent", not says_something)
        set_once(self, "is_blank", is_blank)
        set_once(self, "incoming", incoming)


def key_of(data: bytes) -> int:
    """Return the key of what is written so."""
    return key_number(blake2b(data, digest_size=KEY_BYTES).digest())


def key_number(digest: bytes) -> int:
    """Return a digest as a key."""
    return int.from_bytes(digest[:KEY_BYTES], "big")
