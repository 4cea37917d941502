"""gateway/wire/messages/reply.py: what is recorded of an answer."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.messages.reply import UNREADABLE, EventReader, read_body
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.protocol import ReadReply
from gateway.wire.sse import SseEvent, SseReader
from tests.e2e.protocols import MESSAGES as SPOKEN
from tests.e2e.protocols import named_event

LIMIT = 1_000_000
KEYS = "type index delta content_block message content usage text partial_json error stop_reason"
ANY_JSON = st.recursive(
    st.none()
    | st.integers(-9, 9)
    | st.text(max_size=5)
    | st.sampled_from(["content_block_delta", "content_block_start", "message_start", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=4)
    ),
    max_leaves=25,
)


def read(*events: dict[str, Any], limit_bytes: int = LIMIT) -> ReadReply:
    reader = EventReader(limit_bytes)
    for event in events:
        reader.add(SseEvent(json.dumps(event).encode()))
    return reader.read()


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def begun(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


@given(ANY_JSON)
def test_no_json_makes_it_raise(value: Any) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    read_body(json.dumps(value).encode())
    reader = EventReader(LIMIT)
    for _ in range(2):
        reader.add(SseEvent(json.dumps(value).encode()))
    reader.read()


def test_usage_is_summed_and_later_numbers_stand_for_earlier_ones() -> None:
    """CASES B6 (headroom PR#2942): what a cache held is part of the prompt."""
    cached = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3}
    reply = read(
        {"type": "message_start", "message": {"usage": {**cached, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {
            "output_tokens": 40, "input_tokens": None}},
    )  # fmt: skip
    assert reply.usage is not None
    assert (reply.usage["prompt_tokens"], reply.usage["completion_tokens"]) == (98, 40)
    assert reply.usage["cache_read_input_tokens"] == 90
    assert (reply.finish_reason, reply.is_complete) == ("end_turn", True)
    assert reply.messages == ({"role": "assistant", "content": []},)


def test_a_call_that_is_cut_keeps_what_came_of_its_arguments() -> None:
    """CASES D7 (litellm#14457)."""
    reply = read(
        begun(0, type="tool_use", id="a", name="f", input={}),
        delta(0, type="input_json_delta", partial_json='{"path": "/et'),
    )
    [message] = reply.messages
    assert message["content"][0]["input"] == {UNREADABLE: '{"path": "/et'}
    assert not reply.is_complete
    assert MESSAGES.dialect.message_of(message).call_ids == ("a",)


def test_what_is_over_the_limit_is_marked_and_left_out() -> None:
    """DESIGN 1.13."""
    reader = EventReader(300)
    reader.add(SseEvent(json.dumps(begun(0, type="text", text="")).encode()))
    for _ in range(50):
        reader.add(SseEvent(json.dumps(delta(0, type="text_delta", text="x" * 20)).encode()))
    assert reader.is_truncated
    [message] = reader.read().messages
    assert "was not stored" in message["content"][-1]["text"]
    assert len(json.dumps(message)) < 600


def test_an_error_in_place_of_a_reply_is_read() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert read_body(json.dumps(body).encode()).error == "Overloaded"
    assert read(body).error == "Overloaded"
    assert read_body(b"<html>").error


STREAM = b"".join((SPOKEN.begin, SPOKEN.piece("a"), named_event("ping"), *SPOKEN.end))


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_of_a_stream_gives_the_same_reply_and_holds_back_its_end(cuts: list[int]) -> None:
    """DESIGN 1.5: the client's end waits for the commit; STYLE, Tests."""
    reader = SseReader(max_event_bytes=10_000, marks=MESSAGES.marks)
    reply, places = EventReader(LIMIT), sorted({0, len(STREAM), *cuts})
    forwarded = b""
    for start, stop in itertools.pairwise(places):
        fed = reader.feed(STREAM[start:stop])
        forwarded += fed.ready
        for event in fed.events:
            reply.add(event)
    assert reader.is_terminal
    assert forwarded + reader.take_kept() == STREAM
    assert b"message_stop" not in forwarded
    read_reply = reply.read()
    assert read_reply.messages[0]["content"] == [{"type": "text", "text": "a"}]
    assert read_reply.is_complete


def test_an_error_event_is_kept_until_it_is_whole_and_may_be_said_otherwise() -> None:
    """CASES B5 (litellm#28063)."""
    reader = SseReader(
        max_event_bytes=10_000, marks=MESSAGES.marks, rewrite=lambda data: b'{"type":"error"}'
    )
    data = SPOKEN.broken("theirs")
    forwarded = b"".join(reader.feed(bytes([one])).ready for one in data)
    assert forwarded == b'event: error\ndata: {"type":"error"}\n\n'
