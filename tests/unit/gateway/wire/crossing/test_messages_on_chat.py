"""gateway/wire/crossing: a Messages client on an upstream that has chat completions only."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.crossing.messages_on_chat import MessagesExchange
from gateway.wire.messages.reply import read_body
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.sse import SseEvent, SseReader
from tests.unit.gateway.wire.crossing.test_responses_on_chat import STREAM, chunk

Fields = dict[str, Any]
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
SAID = [{"role": "user", "content": "x"}]


def exchange(**fields: Any) -> MessagesExchange:
    body = {"model": "m", "max_tokens": 9, "messages": SAID, **fields}
    return MessagesExchange(orjson.dumps(body), "1")


def asked(**fields: Any) -> Fields:
    found = orjson.loads(exchange(**fields).body)
    assert isinstance(found, dict)
    return found


def test_a_request_becomes_a_chat() -> None:
    sent = asked(
        system=[{"type": "text", "text": "You code.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"q": 1}},
                {"type": "tool_use", "id": "b", "name": "list", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "seen"},
                {"type": "tool_result", "tool_use_id": "b",
                 "content": [{"type": "text", "text": "listed"}]},
                {"type": "text", "text": "go on"}]},
        ],
        tools=[{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        stop_sequences=["END"], temperature=0.5, stream=True,
        thinking={"type": "enabled", "budget_tokens": 1_024}, metadata={"user_id": "u"},
    )  # fmt: skip
    calls = [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}},
        {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
    ]
    assert sent == {
        "model": "m", "max_tokens": 9, "temperature": 0.5, "stream": True, "stop": ["END"],
        "stream_options": {"include_usage": True}, "tool_choice": "required",
        "parallel_tool_calls": False,
        "tools": [{"type": "function", "function": {
            "name": "look", "description": "Looks.", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "You code."},
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": "Looking.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
            {"role": "tool", "tool_call_id": "b", "content": "listed"},
            {"role": "user", "content": "go on"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools"),
        ({"tools": [{"name": "f"}], "tool_choice": {"type": "new"}}, "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "file", "file_id": "f"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}]}]},
         "messages"),
        ({"messages": [{"role": "assistant", "content": [{"type": "server_tool_use"}]}]},
         "messages"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_and_not_dropped(fields: Fields, param: str) -> None:
    with pytest.raises(Untranslatable) as refused:
        exchange(**fields)
    assert refused.value.param == param


def translated(pieces: Iterable[bytes]) -> bytes:
    stream = exchange(stream=True).stream()
    return b"".join(map(stream.feed, pieces)) + stream.finish()


def events_of(data: bytes) -> list[SseEvent]:
    reader = SseReader(max_event_bytes=1_000_000, marks=MESSAGES.marks)
    return [*reader.feed(data).events, *reader.finish().events]


def test_a_stream_is_the_sequence_of_events_as_the_sdk_reads_them() -> None:
    """CASES D4: calls whose fragments interleave come one after the other."""
    events = events_of(translated([STREAM]))
    read = [EVENT.validate_json(event.data) for event in events]
    assert [event.name.decode() for event in events] == [event.type for event in read]
    kinds = [event.type for event in read]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
    blocks = [event.content_block.type for event in read if event.type == "content_block_start"]
    assert blocks == ["thinking", "text", "tool_use", "tool_use"]
    assert read[-2].delta.stop_reason == "tool_use"


def test_a_stream_says_what_a_whole_answer_says() -> None:
    message = {
        "role": "assistant", "content": "Looking.", "reasoning_content": "let me see",
        "tool_calls": [
            {"id": "a", "function": {"name": "look", "arguments": '{"q": 1}'}},
            {"id": "b", "function": {"name": "patch", "arguments": '{"input": "*** x"}'}},
        ],
    }  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    answer = {"model": "real", "choices": [choice], "usage": usage}
    body = exchange().whole(orjson.dumps(answer), 200)
    whole = Message.model_validate_json(body)
    assert (whole.stop_reason, whole.usage.input_tokens, whole.model) == ("tool_use", 11, "real")
    assert [block.type for block in whole.content] == ["thinking", "text", "tool_use", "tool_use"]
    reader = MESSAGES.reader(1_000_000)
    for event in events_of(translated([STREAM])):
        reader.add(event)
    streamed, read = reader.read(), read_body(body)
    assert streamed.messages == read.messages
    assert streamed.finish_reason == read.finish_reason


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_is_translated_alike_however_it_is_cut(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(STREAM)})
    pieces = [STREAM[start:stop] for start, stop in pairwise(places)]
    assert translated(pieces) == translated([STREAM])


def test_a_stream_that_is_cut_has_no_end() -> None:
    """CASES D9: no false "stop"."""
    names = [event.name for event in events_of(translated([STREAM[: STREAM.find(b"ing.")]]))]
    assert names[-1] == b"content_block_delta"


def test_an_error_within_a_stream_is_an_error_event() -> None:
    data = chunk({"content": "x"}) + b'data: {"error": {"message": "no"}}\n\n'
    last = events_of(translated([data]))[-1]
    assert (last.name, orjson.loads(last.data)["error"]["message"]) == (b"error", "no")


@pytest.mark.parametrize(("finish", "reason"), [("stop", "end_turn"), ("length", "max_tokens")])
def test_why_an_answer_ended_is_told(finish: str, reason: str) -> None:
    data = chunk({"content": "x"}) + chunk({}, finish=finish) + b"data: [DONE]\n\n"
    events = [orjson.loads(event.data) for event in events_of(translated([data]))]
    assert events[-2]["delta"]["stop_reason"] == reason


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
    ],
)
def test_an_error_has_anthropics_shape_and_the_type_that_its_status_has(
    status: int, kind: str
) -> None:
    """Anthropic, "Errors"."""
    body = b'{"error": {"message": "no", "type": "x", "code": "why"}}'
    told = orjson.loads(exchange().whole(body, status))
    error = {"type": kind, "message": "no", "details": {"error_code": "why"}}
    assert told == {"type": "error", "error": error}


def test_of_an_error_no_more_is_told_than_it_has_and_what_is_no_answer_is_left() -> None:
    told = orjson.loads(exchange().whole(b'{"error": {"message": "no", "code": null}}', 500))
    assert told == {"type": "error", "error": {"type": "api_error", "message": "no"}}
    assert exchange().whole(b"<html>", 502) == b"<html>"


@given(st.binary(max_size=200))
def test_no_bytes_of_an_upstream_break_the_translation(data: bytes) -> None:
    """CASES D5."""
    translated([STREAM[:300], data, STREAM[300:]])
