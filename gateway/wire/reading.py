"""A request's body as far as every protocol reads it: its fields, and its list of items. Pure.

Items are left as the client wrote them, for a transcript is re-sent with every request and most of
it was read before (gateway/wire/seen.py).
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from gateway.wire.protocol import MalformedRequest, Seen
from governor.errors import MalformedTranscript
from governor.message import Message

ITEMS_MAX = 100_000
"""Some times the longest agent sessions; so many new ones, 11 MB, took 5.6 s of CPU until they were
answered, and 3.3 s when they came again (2 cores)."""
MODEL_CHARS_MAX = 1_024
"""Of a model's name, which may be a path; counters, prices and calibrations are kept by it."""
WRITABLE_DEPTH = 250
"""orjson reads 1,024 levels and writes 254; what the gateway may have to write is held to that."""
Read = Callable[[bytes], tuple[Message, ...]]
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A JSON object with a list in it."""

    fields: dict[str, Any]
    """All of it but the list, which is None here, in the client's order."""
    written: dict[str, bytes | msgspec.Raw]
    items: Sequence[msgspec.Raw]
    """The list, item by item; empty where there is none."""


def read_fields(body: bytes, *, items: str, what: str) -> ReadBody:
    """Return what is in `body`; `items` names the list, `what` the kind of request.

    A text in place of the list is left to the caller.

    Raises:
        MalformedRequest: it is no JSON object, or the list is none.

    """
    try:
        written = _FIELDS.decode(body)
        is_text = bytes(written.get(items, b'"')).startswith(b'"')
        found = [] if is_text else _ITEMS.decode(written[items])
        fields = {
            name: None if name == items else orjson.loads(bytes(part))
            for name, part in written.items()
        }
    except msgspec.ValidationError as error:
        # The one thing that is checked of the fields' types here, beside the body's own.
        param = items if body.lstrip().startswith(b"{") else None
        raise MalformedRequest(f"not a {what} request: {error}", param=param) from error
    except (msgspec.DecodeError, orjson.JSONDecodeError, UnicodeDecodeError) as error:
        mended = _without_half_characters(body)
        if mended != body:
            return read_fields(mended, items=items, what=what)
        raise MalformedRequest(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    return ReadBody(fields, {**written}, found)


def model_of(fields: Mapping[str, Any]) -> str:
    """Return the name of the model that a request asks.

    Raises:
        MalformedRequest: it names none.

    """
    model = fields.get("model")
    if not isinstance(model, str) or len(model) > MODEL_CHARS_MAX:
        raise MalformedRequest(
            f"'model' must be a string of at most {MODEL_CHARS_MAX} characters", param="model"
        )
    return model


def fragments(
    written: Mapping[str, bytes | msgspec.Raw], *, but: Container[str] = ()
) -> dict[str, Any]:
    """Return fields to be written again as the client wrote them, without those that are named."""
    return {name: orjson.Fragment(bytes(part)) for name, part in written.items() if name not in but}


def loaded_item(data: bytes) -> Any:
    """Return the JSON of one item.

    Raises:
        MalformedTranscript: it cannot be read, or could not be written again; the index is 0.

    """
    try:
        loaded = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedTranscript(0, f"is not valid JSON: {error}") from error
    if data.count(b"[") + data.count(b"{") > WRITABLE_DEPTH:
        try:
            orjson.dumps(loaded)
        except orjson.JSONEncodeError as error:
            raise MalformedTranscript(0, "is nested too deeply") from error
    return loaded


def read_items(
    items: Sequence[msgspec.Raw], read: Read, seen: Seen | None
) -> list[tuple[Message, ...]]:
    """Return the messages of each item.

    Raises:
        MalformedTranscript: an item is none; the index is the item's.

    """
    data = [bytes(item) for item in items]
    return read_all(data, range(len(data)), read, seen)


def read_all(
    data: Sequence[bytes], indexes: Sequence[int], read: Read, seen: Seen | None
) -> list[tuple[Message, ...]]:
    """Do the same with pieces of JSON that begin at these indexes of the client's items."""
    known = [None] * len(data) if seen is None else seen.known(data)
    found = []
    for index, piece, messages in zip(indexes, data, known, strict=True):
        if messages is None:
            try:
                messages = read(piece)
            except MalformedTranscript as error:
                raise MalformedTranscript(index + error.index, error.reason) from error
            if seen is not None:
                seen.keep(piece, messages)
        found.append(messages)
    return found


_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # As they must be.
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _without_half_characters(data: bytes) -> bytes:
    """Return JSON with U+FFFD for halves of characters beyond the first 65,536.

    JavaScript's `slice` leaves them where it cuts an emoji in a tool's output. Refused, such a
    message would keep its thread from ever going on (CASES A9).
    """
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data)


def schema_text(key: str, value: Any) -> str:
    """Return a schema as compact JSON.

    Raises:
        MalformedRequest: it is nested too deeply to be written.

    """
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise MalformedRequest(f"'{key}' is nested too deeply", param=key) from error


def string_of(value: Any) -> str:
    """Return a string as it is, nothing as "", anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def positive(value: Any) -> int | None:
    """Return a whole number above zero; None for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and value > 0 else None
