import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of, written
from gateway.wire.chat.request import decode, encode
from gateway.wire.protocol import MalformedRequest
from gateway.wire.reading import ITEMS_MAX
from governor.desk.rendering import DESK_TAG, Record, rendered_block
from governor.errors import MalformedTranscript
from governor.turn import PlannedMessage
from tests.unit.governor.desk.test_rendering import AT

DESK = rendered_block(DESK_TAG, [Record("e1", AT, "user", "this", "A fact.")])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def body(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages), **fields}).encode()


@given(st.dictionaries(st.text(min_size=1, max_size=6), json_values), st.text(max_size=8))
def test_what_is_not_understood_is_kept(extra: dict[str, Any], text: str) -> None:
    """CASES E5 (litellm#10791, #6516; bifrost#3139), A7 (Memori#434)."""
    message = {**extra, "role": "user", "content": text}
    fields = {**extra, "model": "m", "messages": [message]}
    request = decode(json.dumps(fields).encode())
    plan = [PlannedMessage(one) for one in request.messages]
    assert json.loads(encode(request, plan)) == fields


@pytest.mark.parametrize(
    ("data", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": []}', "messages"),
        (b'{"model": "m", "messages": "hi"}', "messages"),
        (b'{"messages": [{"role": "user", "content": "hi"}]}', "model"),
        (b'{"model": 1, "messages": [{"role": "user", "content": "hi"}]}', "model"),
        (b'\xff{"model": "m"}', None),
        (b'{"model": "m", "messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", None),
        (b'{"model": "m", "messages": [{}], "x": ' + b"[" * 2_000 + b"]" * 2_000 + b"}", None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_body_that_is_no_request_is_refused(data: bytes, param: str | None) -> None:
    with pytest.raises(MalformedRequest) as caught:
        decode(data)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "message",
    [
        "hi",
        {},
        {"role": 1},
        {"role": "user", "content": 5},
        {"role": "user", "content": [5]},
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "assistant", "tool_calls": [5]},
        {"role": "assistant", "tool_calls": 5},
        {"role": "assistant", "function_call": "f"},
    ],
)
def test_a_message_that_is_none_is_named_by_its_index(message: Any) -> None:
    with pytest.raises(MalformedTranscript) as caught:
        decode(body({"role": "user", "content": "hi"}, message))
    assert caught.value.index == 1


def test_parts_are_read_kind_by_kind() -> None:
    """CASES A13 (litellm#16567), B1 (open-interpreter#293, litellm#39910)."""
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "hologram", "payload": "?"},
        {"type": "refusal", "refusal": "No."},
    ]
    message = message_of({"role": "user", "content": parts})
    assert message.text == "Look:\nNo."
    assert [image.detail for image in message.images] == ["low"]
    assert [part.kind for part in message.opaque] == ["input_audio", "file", "hologram"]


def test_all_that_a_model_reads_is_counted() -> None:
    """CASES B2 (litellm#36604)."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    message = message_of(
        {"role": "assistant", "content": "Hm", "name": "Ann", "tool_calls": [call], "vendor": "v"}
    )
    assert {"Hm", "Ann", "c1", "f", '{"x":1}', "v"} <= {*message.counted}
    assert message.text == 'Hm\nf({"x":1})'
    request = decode(
        body(
            {"role": "user", "content": "hi"},
            tools=[{"type": "function", "function": {"name": "f"}}],
            tool_choice={"type": "function", "function": {"name": "f"}},
            response_format={"type": "json_object"},
        )
    )
    assert len(request.schemas) == 3


def test_custom_tool_calls_are_read() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    message = message_of({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message.call_ids == ("c1",)
    assert message.text == "sql(SELECT 1)"


def test_a_block_goes_in_front_of_the_words_and_leaves_them_verbatim() -> None:
    plain = message_of({"role": "user", "content": "  What? "})
    assert written(PlannedMessage(plain, before="B")).raw["content"] == "B\n\n  What? "
    parts = message_of({"role": "user", "content": [{"type": "text", "text": "What?"}]})
    assert written(PlannedMessage(parts, before="B")).raw["content"] == [
        {"type": "text", "text": "B"},
        {"type": "text", "text": "What?"},
    ]


@pytest.mark.parametrize("escape_angles", [False, True])
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_block_that_comes_back_is_nobodys_words(role: str, escape_angles: bool) -> None:
    """CASES J1 (mem0#4573, claude-mem PR#105), A10 (hermes-agent PR#18650)."""
    echoed = body(
        {"role": role, "content": f"{DESK}\n\nWhat?"},
        {"role": role, "content": [{"type": "text", "text": DESK}, {"type": "text", "text": "x"}]},
        {"role": "user", "content": DESK},
    )
    if escape_angles:
        echoed = echoed.replace(b"<", b"\\u003c")
    first, second, ours = decode(echoed).messages
    assert (first.text, second.text) == ("What?", "x")
    assert first.digest == message_of({"role": role, "content": "What?"}).digest
    assert first.said == {"role": role, "content": "What?"}
    assert ours.digest == b"", "nobody said it, so it is no event"
    words = message_of({"role": "user", "content": "my reading_desk is full"})
    assert words.said is None


def test_a_block_that_comes_back_goes_out_as_it_came_and_is_paid_for() -> None:
    """CASES A10: a gateway behind a gateway keeps the other's desk (DESIGN 1.2)."""
    request = decode(body({"role": "user", "content": f"{DESK}\n\nWhat?"}))
    [message] = request.messages
    assert written(PlannedMessage(message)).raw["content"] == f"{DESK}\n\nWhat?"
    assert message.counted == (f"{DESK}\n\nWhat?",)


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_tokens": True}, None),
        ({"max_tokens": -1}, None),
    ],
)
def test_the_replys_maximum_is_read(fields: dict[str, Any], tokens: int | None) -> None:
    """CASES B3 (claude-code-router#1292)."""
    assert decode(body({"role": "user", "content": "hi"}, **fields)).reply_tokens == tokens


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ("role", "content", "tool_calls", "tool_call_id", "function_call", "name")
            ),
            json_values | st.sampled_from(("user", "assistant", "tool")),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_no_message_raises_anything_unexpected(messages: list[Any]) -> None:
    try:
        request = decode(body(*messages))
    except MalformedTranscript:
        return
    assert len(request.messages) == len(messages)


def test_other_fields_travel_as_the_client_wrote_them_when_the_messages_are_changed() -> None:
    """CASES E5: a number of many digits stays itself, and deep JSON can be written again."""
    deep = "[" * 600 + "]" * 600
    sent = (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],'
        b'"seed":123456789012345678901234567890,"x":1.50e0,"vendor":' + deep.encode() + b"}"
    )
    request = decode(sent)

    written = encode(request, [PlannedMessage(one) for one in request.messages], model="other")

    expected = sent.replace(b'"model":"m"', b'"model":"other"')
    assert written == expected


@pytest.mark.parametrize("field", ["tools", "tool_choice"])
def test_a_schema_that_is_nested_too_deeply_to_be_written_is_the_clients_mistake(
    field: str,
) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    schema: Any = {"parameters": deep}

    with pytest.raises(MalformedRequest) as caught:
        decode(
            body(
                {"role": "user", "content": "hi"},
                **{field: [schema] if field == "tools" else schema},
            )
        )

    assert caught.value.param == field


def test_a_message_that_is_nested_too_deeply_to_be_written_is_the_clients_mistake() -> None:
    deep = "[" * 300 + "]" * 300
    message = '{"role": "user", "content": "hi", "annotations": ' + deep + "}"

    with pytest.raises(MalformedTranscript, match="too deeply"):
        decode(('{"model": "m", "messages": [' + message + "]}").encode())


def test_a_tool_call_or_result_that_had_no_words_but_ours_stays_without_them() -> None:
    """CASES A8: stripping never parts a call from its result."""
    block = rendered_block(DESK_TAG, [Record("e1", AT, "user", "this", "a record")])
    asked = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    request = decode(
        body(
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": block, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": "c1", "content": block},
            {"role": "assistant", "content": block},
        )
    )

    said = [one.said and one.said["content"] for one in request.messages]
    assert said == [None, "", "", None]
    assert request.messages[1].call_ids == ("c1",)
    assert request.messages[2].answers == "c1"
    assert [bool(one.digest) for one in request.messages] == [True, True, True, False]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "text": "", "image_url": {"url": "https://x/y.png"}},
        {"type": "file", "text": "", "file": {"file_data": "x" * 10_000}},
    ],
)
def test_a_part_with_media_is_priced_as_that_whatever_words_it_has(part: dict[str, Any]) -> None:
    """CASES B1."""
    (message,) = decode(body({"role": "user", "content": [part]})).messages

    assert message.images or message.opaque


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\ude00 cut", "\ufffd cut"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d \ud83d", "\\ud83d \ufffd"),
    ],
)
def test_half_a_character_never_keeps_a_thread_from_going_on(written: str, read: str) -> None:
    """CASES A9: what JavaScript leaves of an emoji that it cut."""
    data = body({"role": "user", "content": "WORDS"}).replace(b"WORDS", written.encode())
    [message] = decode(data).messages
    assert message.text == read


def test_more_messages_than_can_be_stored_in_good_time_are_refused() -> None:
    """DESIGN 1.13: two million of the shortest fit the limit of a body."""
    data = body({"role": "user", "content": "a"})
    one = data[data.index(b"[") + 1 : data.index(b"]")]
    too_many = data.replace(one, b",".join([one] * (ITEMS_MAX + 1)))
    with pytest.raises(MalformedRequest) as caught:
        decode(too_many)
    assert caught.value.param == "messages"
    assert str(ITEMS_MAX) in str(caught.value)


@given(before=st.text(min_size=1), content=st.text(), replaced=st.none() | st.text())
def test_a_block_in_front_is_counted_as_the_text_that_goes_out(
    before: str, content: str, replaced: str | None
) -> None:
    raw = {"role": "tool", "tool_call_id": "call_1", "content": content}
    sent = written(PlannedMessage(message_of(raw), before=before, replaced=replaced))
    assert sent.counted == message_of(sent.raw).counted
    assert sent.raw["content"].endswith(content if replaced is None else replaced)


def test_what_is_written_into_a_message_changes_its_price_and_not_its_identity() -> None:
    message = message_of({"role": "tool", "tool_call_id": "call_1", "content": "long " * 1_000})
    sent = written(PlannedMessage(message, before="B", replaced="short"))
    assert sent.counted == ("B\n\nshort", "call_1")
    assert (sent.digest, sent.text) == (message.digest, message.text)
    assert written(PlannedMessage(message)) is message
