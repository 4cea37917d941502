"""The lines of an export: what is written is what is read."""

import contextlib
import string
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.chain import ROOT
from library.importing.rows import loaded
from library.kinds.filter import IMPORTANCES
from library.kinds.record import Facts
from library.moving.lines import (
    BadLine,
    Header,
    Of,
    archive_line,
    dumped,
    event_line,
    header_line,
    pin_line,
    read,
    replacement_line,
    thread_line,
)
from library.moving.records import (
    MovedArchive,
    MovedEvent,
    MovedPin,
    MovedRecord,
    MovedReplacement,
    MovedThread,
    MovedUse,
)
from library.records import OwnSettings
from library.store.encoding import readable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGESTS = st.binary(min_size=16, max_size=16).filter(lambda one: one != ROOT)
TIMES = st.integers(-(2**31), 2**33).map(lambda at: EPOCH + timedelta(seconds=at, microseconds=7))
NAMES = st.text(string.printable, min_size=1, max_size=20)
TEXTS = st.text(max_size=30)
BODIES = st.fixed_dictionaries(
    {"role": st.just("user"), "content": TEXTS | st.lists(st.fixed_dictionaries({"text": TEXTS}))},
    optional={"name": TEXTS, "big": st.just(2**70), "deep": st.lists(TEXTS)},
)
RECORDS = st.builds(
    MovedRecord,
    facts=st.builds(
        Facts,
        kind=st.sampled_from(["insight", "document", "chunk"]),
        type=NAMES,
        importance=st.sampled_from(IMPORTANCES),
        project=TEXTS,
        source=TEXTS,
        title=TEXTS,
        tags=st.lists(NAMES).map(tuple),
        digest=st.none() | st.binary(min_size=1, max_size=32),
        origin=st.none() | st.dictionaries(NAMES, TEXTS, min_size=1),
    ),
    version=st.integers(1, 99),
    told_count=st.integers(1, 99),
    said_at=TIMES,
    owner=st.none() | NAMES,
)
THREADS = st.builds(
    MovedThread,
    collection=NAMES,
    id=st.none() | NAMES,
    session_id=st.none() | NAMES,
    created_at=st.none() | TIMES,
    updated_at=st.none() | TIMES,
    own=st.builds(
        OwnSettings,
        st.none() | st.integers(1, 10**7),
        st.none() | st.text(),
        st.none() | st.text(),
    ),
    head=st.none() | DIGESTS,
    record=st.none() | RECORDS,
)
EVENTS = st.builds(
    MovedEvent,
    after=DIGESTS | st.just(ROOT),
    digest=DIGESTS,
    role=st.sampled_from(["user", "assistant", "tool"]),
    body=BODIES,
    text=TEXTS,
    occurred_at=st.none() | TIMES,
    recorded_at=st.none() | TIMES,
    event_id=st.none() | NAMES,
    seq=st.none() | st.integers(1, 10**12),
    is_partial=st.booleans(),
    is_masked=st.booleans(),
    use=st.none()
    | st.builds(MovedUse, st.integers(0, 10**6), st.integers(1, 10**6), TIMES)
    | st.builds(MovedUse, st.integers(1, 10**6), st.just(0), st.none()),
)


def through(line: dict[str, Any]) -> Header | Of:
    data = dumped(line)
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    return read(loaded(data), readable)


@given(NAMES, THREADS)
def test_a_thread_is_read_as_it_was_written(name: str, thread: MovedThread) -> None:
    assert through(thread_line(name, thread)) == Of(name, thread)


@given(NAMES, EVENTS)
def test_an_event_is_read_as_it_was_written(name: str, event: MovedEvent) -> None:
    is_of_body = readable(event.body) == event.text
    assert through(event_line(name, event, is_text_of_body=is_of_body)) == Of(name, event)


@given(NAMES, st.builds(MovedPin, DIGESTS, st.booleans()))
def test_a_pin_is_read_as_it_was_written(name: str, pin: MovedPin) -> None:
    assert through(pin_line(name, pin)) == Of(name, pin)


@given(NAMES, st.builds(MovedReplacement, DIGESTS, NAMES, DIGESTS))
def test_a_replacement_is_read_as_it_was_written(name: str, one: MovedReplacement) -> None:
    assert through(replacement_line(name, one)) == Of(name, one)


@given(NAMES, st.builds(MovedArchive, TIMES))
def test_that_a_thread_is_archived_is_read_as_it_was_written(name: str, one: MovedArchive) -> None:
    assert through(archive_line(name, one)) == Of(name, one)


def test_a_header_says_which_version_it_is() -> None:
    assert through(header_line()) == Header(1)
    with pytest.raises(BadLine, match="version 2"):
        read({"kind": "library", "version": 2}, readable)


EVENT = event_line(
    "t", MovedEvent(ROOT, b"0" * 16, "user", {"role": "user", "content": "x"}, "x", seq=1)
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "other"}, "'kind'"),
        ({"thread": ""}, "'thread' must be a text"),
        ({"digest": None}, "'digest' is missing"),
        ({"digest": "12"}, "32 hexadecimal digits"),
        ({"after": "zz"}, "hexadecimal digits"),
        ({"at": "yesterday"}, "'at' must be a time"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "'at' must be a time"),
        ({"at": "9999-12-31T23:59:59-14:00"}, "'at' must be a time"),
        ({"found": 0}, "'found' must be from 1 to"),
        ({"used": -1}, "'used' must be from 1 to"),
        ({"found": 2**62}, "'found' must be from 1 to"),
        ({"used": 2**62}, "'used' must be from 1 to"),
        ({"kind": "archive"}, "'at' is missing"),
        ({"seq": 0}, "'seq' must be from 1 to"),
        ({"seq": 2**80}, "'seq' must be from 1 to"),
        ({"seq": True}, "'seq' must be a whole number"),
        ({"is_partial": "yes"}, "'is_partial' must be true or false"),
        ({"body": None}, "'body' is missing"),
        ({"text": None, "body": {"content": [1, 2]}}, "'text' is missing"),
        ({"role": 5}, "'role' must be a text"),
        ({"new": 1}, "'new' is not known here"),
    ],
)
def test_a_line_that_is_none_of_ours_is_told_with_the_reason(
    change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadLine, match=reason):
        read({**EVENT, **change}, readable)
    with pytest.raises(BadLine, match="no JSON object"):
        read([], readable)


@given(st.recursive(st.none() | st.booleans() | TEXTS, lambda one: st.dictionaries(NAMES, one)))
def test_any_json_is_read_or_told(value: Any) -> None:
    with contextlib.suppress(BadLine):
        read(value, readable)
