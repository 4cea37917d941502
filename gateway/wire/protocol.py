"""What a client protocol is to the rest of the gateway. Pure.

A *wire* is one protocol that clients speak: chat completions, Responses, Messages. It is a package
beside this file that makes one `Wire`, and nothing outside these packages knows a protocol by
name. Everything in a wire is pure: the route, the relay and the upstream drivers do the waiting.

A request is decoded into messages as the governor sees them (`governor.message.Message`), each
with the client's own JSON in `raw`, and encoded again with the planned ones in their place. A
reply is read twice: as bytes that go on untouched, and as messages *as the client would send them
back in its next request*, so that the record and the echo are one message.

Rejected: one neutral form of a message to which every protocol is translated. What is not
translated cannot be lost, and a client that speaks its upstream's own protocol needs none of it;
translation is for those that do not (gateway/wire/crossing).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from gateway.wire.sse import Marks, SseEvent
from governor.message import Message
from governor.turn import Dialect, PlannedMessage


class Seen(Protocol):
    """Knows messages of earlier requests by the JSON of their items."""

    def known(self, items: Sequence[bytes]) -> list[tuple[Message, ...] | None]:
        """Return the messages in each item; None: not known (any more)."""

    def keep(self, item: bytes, messages: tuple[Message, ...]) -> None:
        """Remember what was read of an item that was not known."""


PromptCache = Literal["off", "marks", "key"]
"""What an upstream's prompt cache wants to be told: nothing, `cache_control` markers, or a
`prompt_cache_key`."""

TRUNCATED = "[The rest of this reply was not stored: it is longer than {limit_bytes} bytes.]"


class MalformedRequest(Exception):
    """The body is not a request of its protocol; `param` names the field."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True)
class Past:
    """What a request names of its conversation and does not bring: the gateway's own store has it
    (gateway/routes/continuing.py)."""

    reply: str | None = None
    """The id of the reply that it goes on from."""
    is_session: bool = False
    """It goes on from wherever its session is."""
    items: tuple[str, ...] = ()
    """Ids of items of earlier replies."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A decoded request."""

    fields: dict[str, Any]
    """The client's whole JSON object, its messages as they were sent."""
    written: dict[str, bytes | msgspec.Raw]
    """The same fields as the client wrote them. Read and written again, a number of many digits
    would be another one, and what is nested deeply could not be written at all."""
    messages: tuple[Message, ...]
    """The transcript in the client's order, system text in front. One item of the client's may be
    several messages: each result of a tool is one of its own."""
    schemas: tuple[str, ...]
    """What the model reads beside the messages - tools, a forced tool, the form of the answer - as
    compact JSON."""
    model: str
    is_stream: bool
    reply_tokens: int | None
    """The client's own maximum for the reply."""
    instruction_count: int = 0
    """So many messages at the start are system text for this request alone: who goes on from its
    reply sends other ones."""
    past: Past | None = None
    """Where there is one, the body is not the whole prompt, and never goes out as it came."""


@dataclass(frozen=True, slots=True)
class ReadReply:
    """An answer, whole or as far as it came."""

    messages: tuple[dict[str, Any], ...]
    """One a choice, in order of index, as `Dialect.message_of` reads them; empty when nothing
    came."""
    is_complete: bool
    """Every choice that began has its finish reason."""
    usage: dict[str, Any] | None
    """The upstream's own numbers; `prompt_tokens` and `completion_tokens` among them, whatever the
    protocol calls them (what a cache held is part of the prompt)."""
    finish_reason: str | None
    """Of the first choice, in the protocol's own word."""
    error: str | None
    """The upstream's own, where it answered with one in place of a reply."""
    has_hidden_prompt: bool = False
    """The upstream read more than it was sent (searches of its own), so that its count of the
    prompt says nothing about ours."""
    names: tuple[str, ...] = ()
    """Ids by which a client may refer to the reply, and to its items; the reply's own first."""


CACHE_KEY = "prompt_cache_key"
"""Source: OpenAI API reference: requests of one key go where the cache of the last one is."""


@dataclass(frozen=True, slots=True)
class Caching:
    """How an upstream is told what of a prompt to keep."""

    kind: PromptCache = "off"
    key: str = ""
    """With `key`: the same for all prompts that begin alike."""
    stays: bool = False
    """With `marks`: the next prompt will begin with all of this one."""


UNCACHED = Caching()


class Encode(Protocol):
    """Writes a request's body."""

    def __call__(
        self,
        request: ClientRequest,
        plan: Sequence[PlannedMessage] | None,
        model: str | None = None,
        caching: Caching = UNCACHED,
    ) -> bytes:
        """Return the body with the planned messages in place of the client's, if there is a plan,
        and with another model's name, if one is given; all else as the client wrote it. A protocol
        passes over a kind of caching that it has no words for."""


class ReplyReader(Protocol):
    """Puts the events of one stream together; keeps at most so many bytes of them.

    Nothing here raises for what an upstream wrote (CASES D5): an event that cannot be read is
    passed over, and its bytes went to the client as they were in any case.
    """

    @property
    def error(self) -> str | None:
        """The upstream's own error, where the stream told one."""

    @property
    def is_truncated(self) -> bool:
        """Not all of it is kept for the record."""

    def add(self, event: SseEvent) -> None:
        """Take one event; the one that ends the stream is among them where it has data to read."""

    def keep_no_more(self) -> None:
        """Keep nothing of what is still to come."""

    def read(self) -> ReadReply:
        """Return what has come so far."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of ours before it has a protocol's shape (gateway/errors.py makes it)."""

    status: int
    message: str
    type: str
    """OpenAI's: `invalid_request_error`, `server_error`, `overloaded_error`, `upstream_error`."""
    code: str
    """Which error it is, for programs: `context_length_exceeded`, `invalid_messages`, ..."""
    param: str | None = None
    """The field or header that is wrong."""
    needed_tokens: int | None = None
    budget_tokens: int | None = None
    """Both set where the prompt does not fit."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One client protocol."""

    name: str
    """`chat`, `responses` or `messages`."""
    path: str
    """Where requests are posted, below /v1: `/chat/completions`. What lies below it (`/{id}`) is
    the protocol's too: refusals there have its shape."""
    items: str
    """The field that holds the transcript, as an error names it: `messages`."""
    dialect: Dialect
    count_path: str
    """Where a client asks how many tokens a request has, below /v1; "" where it cannot."""
    count_body: Callable[[int], Mapping[str, Any]]
    """Returns the answer to that."""

    decode: Callable[[bytes, Seen | None], ClientRequest]
    """Reads a request's body; `seen` knows messages of earlier requests. Raises MalformedRequest,
    or MalformedTranscript with the index of the item."""
    encode: Encode

    headers: Mapping[str, str]
    """What an upstream must be told in headers where the client does not tell it."""

    reader: Callable[[int], ReplyReader]
    """Makes the reader of one stream; the argument is `limit_bytes`."""
    read_body: Callable[[bytes], ReadReply]
    """Reads a whole answer, success or error."""
    reply_of: Callable[[str], dict[str, Any]]
    """Makes a reply that says only this, as `ReadReply.messages` has them: stands in the record
    for one that was too long to keep."""
    marks: Marks
    """How its streams end, and tell errors. The event that ends one is held back until the reply
    is committed (DESIGN 1.5)."""

    rewritten_error: Callable[[bytes, bool], bytes | None]
    """Returns the protocol's own form of an upstream's overflow error (CASES B5;
    gateway/wire/overflow.py knows one by its words); None: it is none, or has that form. The
    second argument tells whether its status is the right one, 400."""
    error_body: Callable[[Refusal], Mapping[str, Any]]
    """Returns the JSON of a refusal."""
    error_event: Callable[[Refusal, int], bytes]
    """Returns what a stream says when it breaks, blank line and all; the second argument is how
    many events it had before."""
    with_past: Callable[[ClientRequest, Mapping[str, Any], Sequence[str]], ClientRequest] | None = (
        None
    )
    """Returns the request with the items that it only referred to, by their ids, and with the
    system texts that its past handed on. None: its requests have no past."""
    is_text: bool = False
    """A prompt is one text, and its messages are pieces of it that are joined again: it is always
    there whole, no tool is called in it, and its desk stands where it was cut, behind its head."""
