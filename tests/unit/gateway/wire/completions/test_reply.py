"""What is recorded of an answer to a text completion."""

import json
from typing import Any

from hypothesis import given

from gateway.wire.chat.reply import CHOICES_MAX
from gateway.wire.completions.reply import TextReader, read_body
from gateway.wire.protocol import ReadReply
from gateway.wire.sse import SseEvent
from tests.unit.gateway.wire.chat.test_reply import ANY_JSON


def stream(*chunks: Any, limit_bytes: int = 1_000_000) -> ReadReply:
    reader = TextReader(limit_bytes)
    for chunk in chunks:
        reader.add(SseEvent(chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()))
    return reader.read()


def said(text: str, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "text": text, "finish_reason": finish}]}


def test_the_texts_of_each_choice_are_joined_with_reason_and_usage() -> None:
    reply = stream(
        said("Hel"),
        said("Bye", index=1),
        said("lo", "stop"),
        said("", "length", 1),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )
    assert [one["content"] for one in reply.messages] == ["Hello", "Bye"]
    assert (reply.is_complete, reply.finish_reason) == (True, "stop")
    assert reply.usage == {"prompt_tokens": 3, "completion_tokens": 2}


def test_a_stream_without_its_reason_is_not_complete_and_keeps_what_came() -> None:
    """CASES D7, D11."""
    reply = stream(said("as far"))
    assert [one["content"] for one in reply.messages] == ["as far"]
    assert not reply.is_complete
    assert stream().messages == ()


def test_a_whole_body_and_an_error_are_read() -> None:
    whole = {**said("text", "stop"), "usage": {"prompt_tokens": 1}}
    reply = read_body(json.dumps(whole).encode())
    assert [one["content"] for one in reply.messages] == ["text"]
    assert reply.finish_reason == "stop"
    assert read_body(b'{"error": {"message": "no"}}').error == "no"
    assert stream({"error": {"message": "late"}}).error == "late"


def test_no_more_is_kept_than_the_limit_and_the_record_says_so() -> None:
    """DESIGN 1.13."""
    reply = stream(said("a" * 50), said("b" * 500), said("", "stop"), limit_bytes=200)
    assert reply.messages[0]["content"].startswith("a" * 50 + "\n[The rest")
    many = [said("x", index=index) for index in range(CHOICES_MAX + 5)]
    assert len(stream(*many).messages) == CHOICES_MAX


@given(ANY_JSON)
def test_nothing_that_an_upstream_writes_raises(value: Any) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    read_body(json.dumps(value).encode())
    stream(value, {"choices": value}, {"choices": [value]}, b"\xff{", b"")
