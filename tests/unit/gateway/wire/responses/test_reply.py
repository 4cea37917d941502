"""gateway/wire/responses/reply.py: what an upstream answered, whole, streamed, cut or damaged."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.responses.message import message_of
from gateway.wire.responses.reply import EventReader, read_body, reply_of
from gateway.wire.sse import SseEvent

LIMIT = 1_000_000
Fields = dict[str, Any]


def says(text: str, number: int = 1) -> Fields:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "input_tokens_details": {"cached_tokens": 3},
}


def response(*items: Fields, status: str = "completed", **more: Any) -> Fields:
    return {"id": "resp_1", "object": "response", "status": status, "output": list(items), **more}


def event(kind: str, **fields: Any) -> SseEvent:
    return SseEvent(orjson.dumps({"type": kind, **fields}), kind.encode())


def events(text: str, *, cut_after: int = 99) -> list[SseEvent]:
    """Return the events of an answer with reasoning, words and a call."""
    at = {"output_index": 1, "content_index": 0, "item_id": "msg_1"}
    empty = {**says(text), "content": []}
    opened = {**CALL, "arguments": ""}
    found = [
        event("response.created", response={"id": "resp_1", "status": "in_progress"}),
        event("response.output_item.added", output_index=0, item=SEALED),
        event("response.output_item.done", output_index=0, item=SEALED),
        event("response.output_item.added", output_index=1, item=empty),
        event("response.content_part.added", **at, part={"type": "output_text", "text": ""}),
        *(event("response.output_text.delta", **at, delta=letter) for letter in text),
        event("response.output_item.done", output_index=1, item=says(text)),
        event("response.output_item.added", output_index=2, item=opened),
        event("response.function_call_arguments.delta", output_index=2, delta="{"),
        event("response.function_call_arguments.delta", output_index=2, delta="}"),
        event("response.output_item.done", output_index=2, item=CALL),
        event("response.completed", response=response(SEALED, says(text), CALL, usage=USAGE)),
    ]
    return found[:cut_after]


def reader_of(some: list[SseEvent], *, limit_bytes: int = LIMIT) -> EventReader:
    reader = EventReader(limit_bytes)
    for one in some:
        reader.add(one)
    return reader


def test_a_whole_answer_is_one_message_of_all_its_items() -> None:
    read = read_body(orjson.dumps(response(SEALED, says("hi"), CALL, usage=USAGE)))
    assert read.messages == ({"items": [SEALED, says("hi"), CALL]},)
    assert (read.is_complete, read.finish_reason, read.error) == (True, "completed", None)
    assert read.names == ("resp_1", "rs_1", "msg_1", "fc_1")
    assert read.usage is not None
    assert (read.usage["prompt_tokens"], read.usage["completion_tokens"]) == (11, 7)
    assert read.usage["prompt_tokens_details"] == {"cached_tokens": 3}


def test_items_of_an_answer_that_is_not_kept_upstream_have_no_names() -> None:
    """Nobody may refer to them; a row for each would be written for nothing."""
    assert read_body(orjson.dumps(response(says("hi"), store=False))).names == ("resp_1",)


def test_a_streamed_answer_is_what_a_whole_one_is() -> None:
    streamed = reader_of(events("hello")).read()
    assert streamed == read_body(orjson.dumps(response(SEALED, says("hello"), CALL, usage=USAGE)))


@given(st.text(min_size=1, max_size=8), st.integers(1, 30))
def test_a_cut_stream_keeps_what_arrived(text: str, cut_after: int) -> None:
    """CASES D7, D11."""
    some = events(text, cut_after=cut_after)
    read = reader_of(some).read()
    assert read.is_complete == (len(some) == len(events(text)))
    for message in read.messages:
        assert text.startswith(message_of(message).text.partition("\nlook(")[0])


def test_an_answer_whose_last_event_is_bare_is_put_together_from_its_items() -> None:
    """Some servers, and Codex's own fixtures, end with no more than an id."""
    bare = event("response.completed", response={"id": "resp_1"})
    read = reader_of([*events("hi")[:-1], bare]).read()
    assert read.messages == ({"items": [SEALED, says("hi"), CALL]},)
    assert (read.is_complete, read.names[0]) == (True, "resp_1")


def test_what_a_providers_own_tools_let_the_model_read_is_known() -> None:
    """The count of such a prompt would make ours too dear for ever."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert read_body(orjson.dumps(response(search, says("hi")))).has_hidden_prompt
    assert not read_body(orjson.dumps(response(SEALED, says("hi"), CALL))).has_hidden_prompt


def test_what_the_assistant_cannot_have_said_is_no_answer() -> None:
    """CASES D5: it would be stored as the assistant's words."""
    user = {"type": "message", "role": "user", "content": "x"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    assert read_body(orjson.dumps(response(user, output, {"x": 1}))).messages == ()
    assert read_body(orjson.dumps(response(user, says("hi")))).messages == (
        {"items": [says("hi")]},
    )


def test_an_answer_that_is_cut_short_by_its_limit_is_complete_and_says_why() -> None:
    details = {"reason": "max_output_tokens"}
    ended = response(says("hi"), status="incomplete", incomplete_details=details)
    read = reader_of([event("response.incomplete", response=ended)]).read()
    assert (read.is_complete, read.finish_reason) == (True, "max_output_tokens")


@pytest.mark.parametrize(
    "last",
    [
        event("response.failed", response=response(error={"code": "server_error",
                                                          "message": "no"}, status="failed")),
        event("error", code="server_error", message="no", param=None),
        event("error", error={"message": "no"}),
        SseEvent(b'{"error": {"message": "no"}}'),
    ],
)  # fmt: skip
def test_an_upstreams_failure_is_an_error_and_not_an_answer(last: SseEvent) -> None:
    """CASES D9."""
    reader = reader_of([*events("hi", cut_after=7), last])
    assert reader.error == "no"
    assert not reader.read().is_complete


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"type": 5}', b'{"type": "response.completed"}',
     b'{"type": "response.output_text.delta", "output_index": "x", "delta": 5}',
     b'{"type": "response.output_item.done", "output_index": 0, "item": 5}',
     b'{"type": "response.completed", "response": {"output": [5, {"type": 7}], "usage": 5}}'],
)  # fmt: skip
def test_an_event_that_cannot_be_read_is_passed_over(data: bytes) -> None:
    """CASES D5."""
    reader = reader_of([SseEvent(data), *events("hi")])
    assert reader.read().messages == ({"items": [SEALED, says("hi"), CALL]},)


def test_what_is_longer_than_the_limit_is_not_kept() -> None:
    reader = reader_of(events("x" * 2_000)[:-1], limit_bytes=1_000)
    assert reader.is_truncated
    assert not reader_of(events("x" * 2_000)).is_truncated
    reader = EventReader(LIMIT)
    reader.add(events("hi")[0])
    reader.keep_no_more()
    for one in events("hi")[1:-1]:
        reader.add(one)
    assert reader.is_truncated


def test_a_body_that_is_no_answer_is_an_error() -> None:
    assert read_body(b"<html>").error
    assert read_body(b'{"error": {"message": "no"}}').error == "no"
    assert read_body(orjson.dumps(response(status="failed", error={"message": "no"}))).error == "no"
    assert message_of(reply_of("words")).text == "words"
