"""What is recorded of an answer."""

import json
from typing import Any

from hypothesis import given, strategies

from gateway.wire.chat.reply import CHOICES_MAX, ChunkReader, read_body
from gateway.wire.lenient import error_text
from gateway.wire.protocol import ReadReply
from gateway.wire.sse import SseEvent

LIMIT = 1_000_000
KEYS = (
    "choices delta index tool_calls function arguments name id content error usage message "
    "function_call finish_reason x"
)
ANY_JSON = strategies.recursive(
    strategies.none() | strategies.integers(-9, 9) | strategies.text(max_size=5),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(strategies.sampled_from(KEYS.split()), inner, max_size=4)
    ),
    max_leaves=25,
)


def stream(*chunks: dict[str, Any] | bytes, limit_bytes: int = LIMIT) -> ReadReply:
    reader = ChunkReader(limit_bytes)
    for chunk in chunks:
        data = chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()
        reader.add(SseEvent(data))
    return reader.read()


def delta(finish_reason: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish_reason}]}


def call(index: int | None, **fields: Any) -> dict[str, Any]:
    fragment = {**fields} if index is None else {"index": index, **fields}
    return delta(tool_calls=[fragment])


def test_text_is_joined_and_ends_with_its_reason_and_usage() -> None:
    reply = stream(
        delta(role="assistant", content=""),
        delta(content="Hel"),
        delta(content="lo"),
        delta(finish_reason="stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )
    assert reply.messages == ({"role": "assistant", "content": "Hello"},)
    assert reply.is_complete
    assert (reply.finish_reason, reply.usage) == (
        "stop",
        {"prompt_tokens": 3, "completion_tokens": 2},
    )


def test_parallel_calls_keep_their_index_and_a_new_id_on_an_old_index_starts_a_new_call() -> None:
    """CASES D4 (litellm#33678, Qwen-Agent PR#943)."""
    reply = stream(
        call(0, id="a", type="function", function={"name": "f", "arguments": ""}),
        call(1, id="b", type="function", function={"name": "g", "arguments": '{"y"'}),
        call(0, function={"arguments": '{"x": 1}'}),
        call(1, function={"arguments": ": 2}"}),
        call(0, id="c", type="function", function={"name": "h", "arguments": "{}"}),
        delta(finish_reason="tool_calls"),
    )
    calls = reply.messages[0]["tool_calls"]
    assert [
        (one["id"], one["function"]["name"], one["function"]["arguments"]) for one in calls
    ] == [
        ("a", "f", '{"x": 1}'),
        ("b", "g", '{"y": 2}'),
        ("c", "h", "{}"),
    ]
    assert reply.messages[0]["content"] is None


def test_a_name_or_id_repeated_in_every_fragment_is_not_doubled() -> None:
    reply = stream(
        call(0, id="a", function={"name": "look", "arguments": "{"}),
        call(0, id="a", function={"name": "look", "arguments": "}"}),
    )
    assert reply.messages[0]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ]


def test_calls_without_an_index_are_told_apart_by_their_place() -> None:
    reply = stream(
        delta(
            tool_calls=[
                {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
                {"id": "b", "function": {"name": "g", "arguments": "{}"}},
            ]
        )
    )
    assert [one["id"] for one in reply.messages[0]["tool_calls"]] == ["a", "b"]
    assert reply.messages[0]["tool_calls"][0]["function"]["arguments"] == '{"x":1}'


def test_reasoning_refusal_and_unknown_fields_are_kept() -> None:
    """CASES D3, F1 (bifrost#6523)."""
    reply = stream(
        delta(reasoning_content="think "),
        delta(reasoning_content="hard", reasoning_details=[{"text": "a"}]),
        delta(reasoning_details=[{"text": "b"}], vendor={"k": 1}),
        delta(refusal="no"),
    )
    assert reply.messages == (
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "think hard",
            "refusal": "no",
            "reasoning_details": [{"text": "a"}, {"text": "b"}],
            "vendor": {"k": 1},
        },
    )
    assert not reply.is_complete


def test_several_choices_come_in_order_of_their_index() -> None:
    reply = stream(delta(index=1, content="two"), delta(index=0, content="one"))
    assert [message["content"] for message in reply.messages] == ["one", "two"]


def test_what_cannot_be_read_is_passed_over() -> None:
    """CASES D5 (Portkey gateway#1072)."""
    reply = stream(
        delta(content="a"),
        b"{not json",
        b"[1, 2]",
        b'{"choices": 7}',
        b'{"choices": [null, {"index": "x"}, {"delta": 3}]}',
        b'{"choices": [{"index": 0, "delta": {"tool_calls": {"a": 1}, "content": 5}}]}',
        delta(content="b"),
    )
    assert reply.messages[0]["content"] == "ab"


@given(ANY_JSON)
def test_no_json_makes_it_raise(value: Any) -> None:
    body = json.dumps(value).encode()
    read_body(body)
    reader = ChunkReader(limit_bytes=LIMIT)
    reader.add(SseEvent(body))
    reader.add(SseEvent(body))
    reader.read()


def test_a_stream_with_nothing_but_usage_or_a_role_has_no_message() -> None:
    """CASES D11 (Memori#434)."""
    reply = stream(delta(role="assistant", content=""), {"choices": [], "usage": {"n": 1}})
    assert reply.messages == ()
    assert reply.usage == {"n": 1}


def test_a_reply_beyond_the_limit_is_marked() -> None:
    reply = stream(
        delta(content="a" * 50), delta(content="b" * 500), delta("stop"), limit_bytes=300
    )
    content = reply.messages[0]["content"]
    assert content.startswith("a" * 50)
    assert "not stored" in content
    assert "b" not in content.removesuffix(content[50:])
    assert reply.finish_reason == "stop"


def test_an_error_in_the_stream_is_told() -> None:
    assert stream(delta(content="a"), {"error": {"message": "boom"}}).error == "boom"


def test_a_whole_body_gives_its_messages_as_they_are() -> None:
    message = {"role": "assistant", "content": "hi", "annotations": [], "x": {"y": 1}}
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"total_tokens": 4},
    }
    reply = read_body(json.dumps(body).encode())
    assert reply == ReadReply((message,), True, {"total_tokens": 4}, "stop", None)


def test_errors_are_read_in_each_of_their_shapes() -> None:
    assert error_text({"error": {"message": "a", "code": 1}}) == "a"
    assert error_text({"error": "b"}) == "b"
    assert error_text({"object": "error", "message": "c"}) == "c"
    assert error_text({"detail": [{"msg": "d"}]}) == '[{"msg":"d"}]'
    assert error_text({"choices": []}) is None


def test_the_halves_of_a_pair_in_two_chunks_and_cut_utf_8_are_recorded() -> None:
    """CASES D11 (Memori#434): what a client could read is in the record."""
    read = stream(
        b'{"choices":[{"index":0,"delta":{"content":"a \\ud83c"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\udf89, cut \xe6\xbc"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":", single \\ud83c."},"finish_reason":"stop"}]}',
    )
    assert [one["content"] for one in read.messages] == ["a \U0001f389, cut \ufffd, single \ufffd."]

    body = b'{"choices":[{"message":{"role":"assistant","content":"a\\ud83cb \xff"}}]}'
    assert read_body(body).messages[0]["content"] == "a\ufffdb \ufffd"


def test_what_is_nested_too_deeply_to_be_written_raises_nothing() -> None:
    """CASES D5 (Portkey gateway#1072)."""
    deep = "[" * 600 + "]" * 600
    arguments = '{"index":0,"id":"c","function":{"name":"f","arguments":' + deep + "}}"
    chunk = '{"choices":[{"index":0,"delta":{"tool_calls":[' + arguments + "]}}],"
    read = stream((chunk + '"usage":{"x":' + deep + '},"error":{"x":' + deep + "}}").encode())
    assert read.usage is None
    assert read.error
    assert read.messages[0]["tool_calls"][0]["function"]["name"] == "f"


def test_an_upstream_that_begins_choices_without_end_fills_no_memory() -> None:
    """DESIGN 1.13."""
    read = stream(*(delta(index=index, content="x") for index in range(10 * CHOICES_MAX)))
    assert len(read.messages) == CHOICES_MAX
