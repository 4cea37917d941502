"""gateway/wire/messages: a client's JSON, the governor's messages, and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of as chat_message_of
from gateway.wire.messages import message as dialect
from gateway.wire.messages.message import interrupted, message_of, user_message, written
from gateway.wire.messages.request import decode, encode
from gateway.wire.protocol import MalformedRequest
from gateway.wire.stored import wire_in
from governor.desk.rendering import DESK_TAG, Record, rendered_block, shortened_text
from governor.errors import MalformedTranscript
from governor.transcript import EMPTY, read
from governor.turn import PlannedMessage
from tests.unit.governor.desk.test_rendering import AT

Json = dict[str, Any]
DESK = rendered_block(DESK_TAG, [Record("e1", AT, "user", "this", "A fact.")])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
words = st.text(min_size=1, max_size=8)
texts = st.fixed_dictionaries({"type": st.just("text"), "text": words})
results = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": words},
    optional={"content": words | st.lists(texts, max_size=2), "is_error": st.booleans()},
)
unknown = st.dictionaries(words, json_values, max_size=2).map(
    lambda more: {**more, "type": "x_new"}
)
legal_content = st.tuples(
    st.lists(results, max_size=3), st.lists(texts | unknown, min_size=1, max_size=3)
).map(lambda both: [*both[0], *both[1]])


def text(said: str, **more: Any) -> Json:
    return {"type": "text", "text": said, **more}


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_an_empty_block_beside_others_never_goes_out(role: str, blank: str) -> None:
    """CASES A11: Anthropic refuses it; what else the message says goes on as it was."""
    message = message_of({"role": role, "content": [text(blank), text("hello", x=1)]})
    transcript = read([user_message("Hi"), message, user_message("Go on")], dialect)
    sent = transcript.messages[1]
    assert sent.raw == {"role": role, "content": [text("hello", x=1)]}
    assert message_of(sent.raw).digest == message.digest
    assert transcript.repairs == ("messages[1]: empty content was left out",)


@pytest.mark.parametrize(
    ("said", "sent"),
    [([], EMPTY["assistant"]), ([text("I look at")], "I look at")],
    ids=["nothing but a thought", "words in front of it"],
)
def test_a_reply_that_was_cut_in_a_thought_does_not_end_with_one(
    said: list[Json], sent: str
) -> None:
    """CASES A9 (letta#3273), A11: Anthropic refuses it, and so every later request of the thread.
    Source: tailcallhq/forgecode#3071."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    cut = message_of({"role": "assistant", "content": [thought, *said, thought]})
    transcript = read([user_message("Hi"), cut, user_message("Go on")], dialect)
    content = transcript.messages[1].raw["content"]
    assert content[-1] == text(sent)
    assert content[0] == thought
    assert transcript.repairs[0].startswith("messages[1]: empty content")
    assert not message_of(transcript.messages[1].raw).has_blanks


def result(call_id: str, content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def body(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages), **fields}).encode()


def planned(data: bytes) -> Json:
    """Return what goes out when every message is planned as it came."""
    request = decode(data)
    sent = json.loads(encode(request, [PlannedMessage(one) for one in request.messages]))
    assert isinstance(sent, dict)
    return sent


@given(st.lists(legal_content, min_size=1, max_size=4), st.dictionaries(words, json_values))
def test_what_is_split_for_the_governor_comes_together_again(
    contents: list[list[Json]], extra: Json
) -> None:
    """CASES A13 (litellm#16567), E5 (litellm#10791): every block and field as it came."""
    messages: list[Json] = []
    for content in contents:
        messages += [{"role": "user", "content": content}, {"role": "assistant", "content": "ok"}]
    fields = {**extra, "model": "m", "messages": messages, "system": [text("s")]}
    assert planned(json.dumps(fields).encode()) == fields


def test_each_result_is_a_message_and_the_words_beside_them_one_more() -> None:
    content = [result("a", "one"), result("b", [text("two")]), text("and now?")]
    request = decode(body({"role": "user", "content": content}, system="s"))
    assert [m.role for m in request.messages] == ["system", "tool", "tool", "user"]
    assert [m.answers for m in request.messages] == [None, "a", "b", None]
    assert [m.text for m in request.messages] == ["s", "one", "two", "and now?"]


def test_a_reminder_beside_results_belongs_to_the_last_of_them() -> None:
    """CASES H2 (billion-context#61), A6 (free-claude-code PR#318)."""
    reminder = text("<system-reminder>\nnow\n</system-reminder>")
    [first, last] = decode(
        body({"role": "user", "content": [result("a", "1"), result("b", "2"), reminder]})
    ).messages
    plain = message_of({"role": "user", "content": [result("b", "2")]})
    assert last.raw["content"] == [result("b", "2"), reminder]
    assert (last.text, last.digest) == (plain.text, plain.digest)
    assert reminder["text"] in last.counted
    assert first.raw["content"] == [result("a", "1")]


SAME: list[tuple[Json, Json]] = [
    ({"role": "user", "content": "hi"}, {"role": "user", "content": [text("hi")]}),
    (
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": '{"q":1, "b":2}'}}
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            text("I look.", citations=None),
            {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 2, "q": 1}},
        ]},
    ),
    (
        {"role": "tool", "tool_call_id": "a", "content": "42"},
        {"role": "user", "content": [result("a", [text("42")], cache_control={"type": "x"})]},
    ),
    (
        {"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "user", "content": [text("see"), {"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("chat", "messages"), SAME, ids=range(len(SAME)))
def test_the_same_thing_said_in_two_protocols_is_one_message(chat: Json, messages: Json) -> None:
    """Issue 5: one memory for all; a conversation goes on through another protocol."""
    one, other = chat_message_of(chat), message_of(messages)
    assert (one.role, one.digest, one.answers) == (other.role, other.digest, other.answers)
    assert one.text == other.text or one.call_ids, "arguments are searched as they are spelled"


@pytest.mark.parametrize(
    ("data", "param"),
    [
        (b"", None),
        (b"[]", None),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": []}', "messages"),
        (b'{"model": "m", "messages": "hi"}', "messages"),
        (b'{"messages": [{"role": "user", "content": "hi"}]}', "model"),
        (b'{"model": "m", "system": 5, "messages": [{"role": "user", "content": ""}]}', "system"),
        (b'{"model": "m", "system": [5], "messages": [{"role": "user", "content": ""}]}', "system"),
        (b'{"model": "m", "messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", None),
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
        {"role": 1, "content": "x"},
        {"role": "tool", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": [5]},
        {"role": "user", "content": [{"type": "image"}]},
        {"role": "user", "content": [{"type": "document", "source": 5}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": "x", "tool_calls": []},
        {"role": "user", "content": "x", "items": []},
        {"role": "user", "content": [result("a", 5)]},
    ],
    ids=str,
)
def test_a_message_that_is_none_is_named_by_its_index(message: Any) -> None:
    with pytest.raises(MalformedTranscript) as caught:
        decode(body({"role": "user", "content": "fine"}, message))
    assert caught.value.index == 1


def test_a_block_goes_in_front_of_the_words_and_leaves_them_verbatim() -> None:
    plain = message_of({"role": "user", "content": "  What? "})
    assert written(PlannedMessage(plain, before="B")).raw["content"] == "B\n\n  What? "
    parts = message_of({"role": "user", "content": [text("What?")]})
    sent = written(PlannedMessage(parts, before="B"))
    assert sent.raw["content"] == [text("B"), text("What?")]
    assert sent.counted == ("B", "What?")
    assert (sent.digest, sent.text) == (parts.digest, parts.text)


def test_a_shortened_result_keeps_its_call_and_what_stands_beside_it() -> None:
    reminder = text("<env>x</env>")
    long = message_of(
        {"role": "user", "content": [result("a", [text("x" * 99)], is_error=True), reminder]}
    )
    sent = written(PlannedMessage(long, replaced="short"))
    assert sent.raw["content"] == [result("a", "short", is_error=True), reminder]
    assert sent.counted == ("short", reminder["text"], "a")


def test_records_stand_behind_a_result_which_comes_first_in_its_message() -> None:
    answer = message_of({"role": "user", "content": [result("a", "output")]})
    sent = written(PlannedMessage(answer, before="B"))
    assert sent.raw["content"] == [result("a", "output"), text("B")]
    assert (sent.digest, sent.answers) == (answer.digest, "a")


def test_without_its_reasoning_a_message_keeps_all_else_and_is_never_empty() -> None:
    """CASES F2 (litellm PR#36944), A11 (litellm PR#2549)."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    both = message_of({"role": "assistant", "content": [thought, text("yes")]})
    only = message_of({"role": "assistant", "content": [thought]})
    kept = written(PlannedMessage(both, is_without_reasoning=True))
    assert kept.raw["content"] == [text("yes")]
    emptied = written(PlannedMessage(only, is_without_reasoning=True))
    assert emptied.raw["content"] == EMPTY["assistant"]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_block_that_comes_back_is_nobodys_words(role: str) -> None:
    """CASES J1 (mem0#4573, claude-mem PR#105), A10 (hermes-agent PR#18650)."""
    first, second, ours = decode(
        body(
            {"role": role, "content": f"{DESK}\n\nWhat?"},
            {"role": role, "content": [text(DESK), text("x")]},
            {"role": "user", "content": DESK},
        )
    ).messages
    assert (first.text, second.text) == ("What?", "x")
    assert first.digest == message_of({"role": role, "content": "What?"}).digest
    assert first.said == {"role": role, "content": "What?"}
    assert ours.digest == b""


def test_what_a_gateway_wrote_into_results_is_nobodys_words() -> None:
    """CASES J1 (mem0#4573), A8 (Memori PR#440)."""
    whole = "line\n" * 400
    short = shortened_text(whole, kept_chars=300, record_id="e7")
    [echoed] = decode(body({"role": "user", "content": [result("a", short)]})).messages
    assert "left out" not in echoed.text
    assert "left out" in echoed.counted[0]
    made = message_of(interrupted("a").raw)
    assert made.digest == b""
    filled = message_of({"role": "assistant", "content": EMPTY["assistant"]})
    assert filled.digest == message_of({"role": "assistant", "content": ""}).digest
    assert user_message("x").digest == b""


def test_markers_over_four_lose_the_oldest_and_none_is_lost_below() -> None:
    """CASES G4."""
    mark = {"cache_control": {"type": "ephemeral"}}
    talk = [
        {"role": "user", "content": [result("a", [text("1", **mark)]), text("2", **mark)]},
        {"role": "assistant", "content": [text("3", **mark)]},
        {"role": "user", "content": [text("4", **mark)]},
    ]
    data = body(*talk, system=[text("s", **mark)])
    assert json.dumps(planned(data)).count("cache_control") == 4
    assert planned(data)["messages"][1:] == talk[1:]
    assert planned(body(*talk)) == {"model": "m", "messages": talk}


def test_thinking_costs_what_its_signature_may_hold() -> None:
    long = {"type": "thinking", "thinking": "", "signature": "x" * 4_000}
    message = message_of({"role": "assistant", "content": [long, text("yes")]})
    assert sum(one.size_bytes for one in message.opaque) == 3_000


blocks = st.sampled_from(
    [
        text("a"),
        {"type": "x_new", "text": "b"},
        {"type": "x_new", "id": "1", "deep": [1]},
        {"type": "server_tool_use", "id": "s", "name": "f", "input": {}},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "document", "source": {"type": "text", "data": "d"}, "title": "t"},
        {"refusal": "no"},
        "plain",
    ]
)


@given(st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4), st.booleans())
def test_what_is_stored_is_read_again_as_what_it_was(
    role: str, content: list[Any], is_vendors: bool
) -> None:
    """Issue 5: `verify` reads the body alone, whichever protocol it came in."""
    message = message_of({"role": role, "content": content, **({"x": 1} if is_vendors else {})})
    stored = wire_in(message.raw).dialect.message_of(message.raw)
    assert (stored.role, stored.digest) == (message.role, message.digest)
