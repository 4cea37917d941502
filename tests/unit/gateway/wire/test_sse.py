"""The event reader: the same events and the same bytes for every cut."""

import itertools
import json

import pytest
from hypothesis import given, strategies

from gateway.wire.chat.wire import CHAT
from gateway.wire.sse import SseEvent, SseReader

MAX_BYTES = 200

LINE_ENDS = strategies.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = strategies.one_of(
    strategies.sampled_from(
        [
            b"",
            b"data: [DONE]",
            b"data:[DONE]",
            b"data:  [DONE] ",
            b'data: {"error": {"message": "x"}}',
            b"data: [DO",
            b"data",
            b"data:",
            b": keep-alive",
            b"event: error",
            b"id: 7",
            b"data: " + b"y" * 150,
            b"data: " + b"z" * 300,
            "data: größe 漢字".encode(),
            b"\xef\xbb\xbfdata: bom",
            b"\xff\xfe\x00",
        ]
    ),
    strategies.binary(max_size=30).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b"")),
    strategies.builds(lambda n: b"data: " + json.dumps({"n": n}).encode(), strategies.integers()),
)
BODIES = strategies.lists(strategies.tuples(LINES, LINE_ENDS), max_size=20).map(
    lambda rows: b"".join(line + end for line, end in rows)
)


def read(chunks: list[bytes]) -> tuple[list[SseEvent], bytes, bytes, bool]:
    """Return events, forwarded bytes, kept bytes, and whether [DONE] was read."""
    reader = SseReader(max_event_bytes=MAX_BYTES, marks=CHAT.marks)
    events, forwarded = [], bytearray()
    for chunk in chunks:
        fed = reader.feed(chunk)
        events += fed.events
        forwarded += fed.ready
    fed = reader.finish()
    events += fed.events
    forwarded += fed.ready
    return events, bytes(forwarded), reader.take_kept(), reader.has_done


def cut(body: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(body) + 1) for place in places} | {0, len(body)})
    return [body[start:stop] for start, stop in itertools.pairwise(marks)]


@given(BODIES, strategies.lists(strategies.integers(min_value=0), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events_and_the_same_bytes(
    body: bytes, places: list[int]
) -> None:
    whole = read([body])
    pieces = read(cut(body, places))
    assert pieces == whole
    assert whole[1] + whole[2] == body


@given(BODIES)
def test_byte_by_byte_equals_all_at_once(body: bytes) -> None:
    assert read([bytes([one]) for one in body]) == read([body])


@given(BODIES, strategies.lists(strategies.integers(min_value=0), max_size=12))
def test_nothing_of_the_done_event_is_forwarded(body: bytes, places: list[int]) -> None:
    _, forwarded, kept, has_done = read(cut(body, places))
    if has_done:
        assert kept.removeprefix(b"\xef\xbb\xbf").startswith(b"data:")
        assert kept.removeprefix(b"\xef\xbb\xbf")[5:].lstrip().startswith(b"[DONE]")
    else:
        assert forwarded == body


@given(strategies.binary(max_size=400))
def test_no_bytes_make_it_raise(body: bytes) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    read([body])


def test_lines_may_end_in_any_of_three_ways_and_data_may_span_lines() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        body = end.join(
            [b": hi", b"event: note", b"data: one", b"data:two", b"", b"data: 3", b"", b""]
        )
        events, _, _, _ = read([body])
        assert events == [SseEvent(b"one\ntwo", b"note"), SseEvent(b"3")]


def test_an_event_that_only_the_end_of_the_body_completes_counts() -> None:
    assert read([b'data: {"a": 1}'])[0] == [SseEvent(b'{"a": 1}')]


def test_done_without_its_blank_line_is_kept_and_found_at_the_end() -> None:
    events, forwarded, kept, has_done = read([b"data: 1\n\n", b"data: [DONE]"])
    assert (events, forwarded, kept, has_done) == (
        [SseEvent(b"1")],
        b"data: 1\n\n",
        b"data: [DONE]",
        True,
    )


def test_a_line_is_forwarded_when_it_ends_and_before_its_event_does() -> None:
    """CASES D1 (litellm#26102): what a client can act on is never late."""
    reader = SseReader(max_event_bytes=MAX_BYTES, marks=CHAT.marks)
    assert reader.feed(b'data: {"id":').ready == b""
    assert reader.feed(b"1}\n: note").ready == b'data: {"id":1}\n'
    assert reader.is_event_open
    assert reader.feed(b"\n\n").ready == b": note\n\n"
    assert not reader.is_event_open


def test_a_whole_chunk_is_forwarded_as_the_same_object() -> None:
    reader = SseReader(max_event_bytes=MAX_BYTES, marks=CHAT.marks)
    reader.feed(b": first\n\n")
    chunk = b'data: {"a": 1}\n\ndata: {"a": 2}\n\n'
    fed = reader.feed(chunk)
    assert fed.ready is chunk
    assert [event.data for event in fed.events] == [b'{"a": 1}', b'{"a": 2}']


@pytest.mark.parametrize("size", [195, 400])
def test_an_event_over_the_bound_is_forwarded_and_left_out(size: int) -> None:
    reader = SseReader(max_event_bytes=MAX_BYTES, marks=CHAT.marks)
    body = b"data: " + b"x" * size + b"\n\ndata: after\n\n"
    fed = [reader.feed(body[index : index + 7]) for index in range(0, len(body), 7)]
    assert b"".join(one.ready for one in fed) == body
    assert [event for one in fed for event in one.events] == [SseEvent(b"after")]
    assert reader.oversized_count == 1


def test_an_error_event_may_be_rewritten_whole_and_only_then_goes_out() -> None:
    """CASES B5 (litellm#28063)."""
    reader = SseReader(
        max_event_bytes=MAX_BYTES, marks=CHAT.marks, rewrite=lambda data: b'{"error":"ours"}'
    )
    body = b'event: error\ndata: {"error": {"message": "theirs"}}\n\ndata: [DONE]\n\n'
    forwarded = b"".join(reader.feed(bytes([one])).ready for one in body)
    assert forwarded == b'event: error\ndata: {"error":"ours"}\n\n'
    assert reader.is_terminal
