"""How a message becomes a row, and a row an `Event`.

The text that people and search read is nearly always a message's content once more. It is stored
apart only where it cannot be read off the body, so that a transcript is not in the file twice.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from library.errors import StoreCorrupt
from library.masking import mask, mask_message
from library.parts import MARK_JSON, PART_CHARACTERS_MIN, join, split
from library.records import Event, Reach
from library.store.archive.slices import is_stub, stored_of
from library.store.statements import SQL

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

GENERATED_PREFIX = "e"
"""An event that the caller gave no id is called `e<seq>`: short, because ids stand on the desk and
cost tokens, and the same in every run, because prompts must be."""


def to_micros(moment: datetime) -> int:
    """Return microseconds since 1970 UTC; `moment` must know its zone."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def event_id(seq: int, given_id: str | None) -> str:
    """Return the id an event goes by."""
    return given_id if given_id is not None else f"{GENERATED_PREFIX}{seq}"


def generated_seq(identifier: str) -> int | None:
    """Return the seq of an id of our own making; None: the caller made it."""
    number = identifier.removeprefix(GENERATED_PREFIX)
    is_ours = number != identifier and number.isascii() and number.isdigit() and number[0] != "0"
    return int(number) if is_ours and len(number) <= 18 else None


@dataclass(frozen=True, slots=True)
class Encoded:
    """What is stored of a message."""

    body: str
    text: str | None
    """None: `readable(body)` is the text."""
    parts: Mapping[bytes, str]
    is_masked: bool


def encode(body: Mapping[str, Any], text: str, *, mask_secrets: bool) -> Encoded:
    """Return the stored form of a message."""
    is_masked = False
    if mask_secrets:
        masked, masked_text = mask_message(body), mask(text)
        is_masked = masked_text != text or masked != body
        body, text = masked, masked_text
    stored_text = None if readable(body) == text else text
    data = _dump(body)
    parts: Mapping[bytes, str] = {}
    if len(data) >= PART_CHARACTERS_MIN or MARK_JSON in data:
        without = split(body)
        data, parts = _dump(without.body), without.parts
    return Encoded(data, stored_text, parts, is_masked)


def _dump(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # Integers beyond 64 bits: legal JSON that orjson does not write.
        return json.dumps(value, separators=(",", ":"))


def _load(data: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def readable(body: Mapping[str, Any]) -> str | None:
    """Return the words of a message that has nothing but plain content; None: it has more."""
    content = body.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
        text = content[0].get("text")
        return text if isinstance(text, str) else None
    # What the Responses protocol calls them: the items of an answer, and a tool's result.
    items, output = body.get("items"), body.get("output")
    if isinstance(items, list) and len(items) == 1 and isinstance(items[0], Mapping):
        return readable(items[0])
    return output if isinstance(output, str) else None


def decode_body(connection: sqlite3.Connection, seq: int, data: str) -> dict[str, Any]:
    """Return a message as it was given.

    Raises:
        StoreCorrupt: one of its parts is missing.

    """
    body = _load(data)
    if MARK_JSON not in data:
        assert isinstance(body, dict)
        return body
    parts: dict[bytes, str] = dict(connection.execute(SQL["parts"], (seq,)))
    try:
        joined = join(body, parts.__getitem__)
    except KeyError as error:
        raise StoreCorrupt(f"event {seq} lacks part {error}") from error
    assert isinstance(joined, dict)
    return joined


def reach_json(reach: Reach) -> str | None:
    """Return a reach as statements take it."""
    if reach is None:
        return None
    return orjson.dumps([reach] if isinstance(reach, int) else sorted(reach)).decode()


def read_events(
    connection: sqlite3.Connection, seqs: Sequence[int], *, collection_id: Reach = None
) -> list[Event]:
    """Return the events that exist of `seqs` (within that reach), in that order."""
    parameters = {"seqs": orjson.dumps(list(seqs)).decode(), "reach": reach_json(collection_id)}
    found = {row[0]: row for row in connection.execute(SQL["events"], parameters).fetchall()}
    stubs = {seq: row[10] for seq, row in found.items() if is_stub(row[10])}
    for seq, body, text in stored_of(connection, stubs) if stubs else ():
        found[seq] = (*found[seq][:10], body, text, *found[seq][12:])
    return [
        _event(connection, found[seq], is_archived=seq in stubs) for seq in seqs if seq in found
    ]


def _event(connection: sqlite3.Connection, row: tuple[Any, ...], *, is_archived: bool) -> Event:
    body = decode_body(connection, row[0], row[10])
    text = row[11] if row[11] is not None else readable(body)
    assert text is not None
    return Event(
        seq=row[0],
        id=event_id(row[0], row[1]),
        collection_id=row[2],
        thread_no=row[3],
        thread_id=row[4],
        session_id=row[5],
        branch_id=row[6],
        position=row[7],
        role=row[8],
        digest=row[9],
        body=body,
        text=text,
        occurred_at=from_micros(row[12]),
        recorded_at=from_micros(row[13]),
        turn_id=row[14],
        is_partial=bool(row[15]),
        kind=row[16],
        is_archived=is_archived,
    )
