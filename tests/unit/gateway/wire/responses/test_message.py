"""gateway/wire/responses/message.py and items.py: whose an item is, and what is read in it."""

from typing import Any

import pytest

from gateway.wire.chat import message as chat
from gateway.wire.responses import message as own
from gateway.wire.responses.message import (
    answering,
    filled,
    has_reasoning,
    instructions_message,
    interrupted,
    message_of,
    renamed,
    user_message,
    with_text_behind,
    written,
)
from governor.counting import Counters
from governor.counting.prices import OPENAI
from governor.errors import MalformedTranscript
from governor.layout import LEFT_OUT
from governor.message import Message
from governor.transcript import EMPTY, INTERRUPTED, read
from governor.turn import PlannedMessage

Item = dict[str, Any]
SEALED = "A" * 4_000


def says(text: str, role: str = "assistant") -> Item:
    return {"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]}


def calls(call_id: str, name: str = "look", arguments: str = '{"q": 1}') -> Item:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: Any) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def reasons(*, sealed: str | None = SEALED) -> Item:
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": sealed}  # fmt: skip


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"role": "user", "content": "x"}, "user"),
        ({"type": "message", "role": "developer", "content": "x"}, "system"),
        ({"role": "system", "content": "x"}, "system"),
        (says("x"), "assistant"),
        (reasons(), "assistant"),
        (calls("c1"), "assistant"),
        (output("c1", "x"), "tool"),
        ({"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}, "tool"),
        (output("", "x"), "tool"),
        ({"type": "function_call_output", "id": "fco_1", "output": "x"}, "tool"),
        ({"type": "local_shell_call_output", "id": "c1", "output": "x"}, "tool"),
        ({"type": "shell_call_output", "call_id": "c1", "output": []}, "tool"),
        ({"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}, "tool"),
        ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, "assistant"),
        ({"type": "compaction", "encrypted_content": "abc"}, "assistant"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "system"),
        ({"type": "a_kind_of_next_year", "data": 1}, "assistant"),
    ],
)
def test_an_item_belongs_to_whoever_makes_it(item: Item, role: str) -> None:
    assert message_of(item).role == role


@pytest.mark.parametrize(
    ("chats", "item"),
    [
        ({"role": "user", "content": "one"}, {"role": "user", "content": "one"}),
        (
            {"role": "user", "content": [{"type": "text", "text": "see"},
             {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}]},
        ),
        ({"role": "assistant", "content": "two"}, {"items": [says("two")]}),
        (
            {"role": "assistant", "content": "two", "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "look", "arguments": '{"q": 1}'}}]},
            {"items": [reasons(), says("two"), calls("c1")]},
        ),
        ({"role": "tool", "tool_call_id": "c1", "content": "out"}, output("c1", "out")),
    ],
)  # fmt: skip
def test_a_message_is_the_same_in_both_of_openais_protocols(chats: Item, item: Item) -> None:
    """One conversation continued through another protocol stays one thread (DESIGN 4.2)."""
    there, here = chat.message_of(chats), message_of(item)
    assert (here.role, here.text, here.digest) == (there.role, there.text, there.digest)
    assert (here.call_ids, here.answers) == (there.call_ids, there.answers)


def test_what_the_assistant_said_between_two_messages_is_one_message() -> None:
    read = message_of({"items": [reasons(), says("Let me look."), calls("c1"), calls("c2")]})
    assert read.call_ids == ("c1", "c2")
    assert read.text == 'Let me look.\nlook({"q": 1})\nlook({"q": 1})'
    assert has_reasoning(read)


def test_sealed_reasoning_costs_by_its_size_and_is_no_part_of_identity() -> None:
    """CASES F1, B1: an encrypted item cannot be counted, but it is sent."""
    sealed, bare = message_of({"items": [reasons(), says("x")]}), message_of(says("x"))
    assert sealed.digest == bare.digest
    assert sealed.opaque[0].size_bytes == len(SEALED) * 3 // 4
    assert not has_reasoning(bare)


def test_a_call_that_its_own_answer_answers_is_not_open() -> None:
    hosted = {"type": "shell_call_output", "call_id": "c1", "output": []}
    shell = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}
    assert message_of({"items": [shell, hosted, says("done")]}).call_ids == ()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ"},
        {"type": "input_audio", "input_audio": {"data": "QQ", "format": "wav"}},
        {"type": "a_part_of_next_year", "x": 1},
    ],
)
def test_a_part_that_is_neither_text_nor_image_is_priced_by_its_size(part: Item) -> None:
    """CASES A13, B1."""
    read = message_of({"role": "user", "content": [{"type": "input_text", "text": "see"}, part]})
    assert read.text == "see"
    assert read.opaque[0].size_bytes > 20


def test_an_image_without_a_link_costs_the_most_that_one_can() -> None:
    part = {"type": "input_image", "file_id": "file-1", "detail": "high"}
    (image,) = message_of({"role": "user", "content": [part]}).images
    assert (image.width, image.detail) == (None, "high")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("plain", "plain"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "2"}], "one\n2"),
        ([{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
         '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]'),
    ],
)  # fmt: skip
def test_the_words_of_a_result_are_read_whatever_its_form(result: Any, words: str) -> None:
    assert message_of(output("c1", result)).text == words


@pytest.mark.parametrize(
    "item",
    [
        "text",
        None,
        {},
        {"type": "message", "content": "x"},
        {"type": 1, "role": "user"},
        {"type": "message", "role": "user", "content": 5},
        {"type": "message", "role": "user", "content": [5]},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "x"}, 5],
         "role": ["user"]},
        {"items": [says("x"), 5]},
        {"items": [says("x"), {"role": "user", "content": "x"}]},
        {"items": []},
    ],
)  # fmt: skip
def test_what_is_no_item_is_refused(item: Any) -> None:
    with pytest.raises(MalformedTranscript):
        message_of(item)


# -- how it goes out -----------------------------------------------------------------------------
def test_a_block_stands_in_front_of_a_text() -> None:
    plain = written(PlannedMessage(user_message("question"), before="BLOCK"))
    assert plain.raw["items"][0]["content"] == "BLOCK\n\nquestion"
    parts = message_of({"role": "user", "content": [{"type": "input_text", "text": "question"}]})
    both = written(PlannedMessage(parts, before="BLOCK")).raw["items"][0]["content"]
    assert [part["text"] for part in both] == ["BLOCK", "question"]
    assert "BLOCK" in " ".join(written(PlannedMessage(parts, before="BLOCK")).counted)


def test_a_shortened_result_stands_in_place_of_the_whole_one() -> None:
    whole = message_of(output("c1", "long " * 100))
    short = written(PlannedMessage(whole, replaced="short"))
    assert short.raw == {"items": [output("c1", "short")]}
    assert short.digest == whole.digest
    assert "short" in short.counted
    assert "long" not in "".join(short.counted)


def test_records_stand_in_front_of_a_results_output() -> None:
    answer = message_of(output("c1", "found"))
    sent = written(PlannedMessage(answer, before="BLOCK"))
    assert sent.raw == {"items": [output("c1", "BLOCK\n\nfound")]}
    parts = message_of(output("c1", [{"type": "input_text", "text": "found"}]))
    both = written(PlannedMessage(parts, before="BLOCK")).raw["items"][0]["output"]
    assert [part["text"] for part in both] == ["BLOCK", "found"]


def test_reasoning_is_left_out_where_it_is_asked_for() -> None:
    """CASES F2."""
    whole = message_of({"items": [reasons(), says("x"), calls("c1")]})
    bare = written(PlannedMessage(whole, is_without_reasoning=True))
    assert bare.raw["items"] == [says("x"), calls("c1")]
    assert not bare.opaque
    alone = message_of({"items": [reasons()]})
    assert written(PlannedMessage(alone, is_without_reasoning=True)).raw == alone.raw


def test_text_may_stand_behind_a_systems_words() -> None:
    plain = with_text_behind(message_of({"role": "developer", "content": "Be brief."}), "MORE")
    assert plain.raw["items"][0]["content"] == "Be brief.\n\nMORE"
    parts = [{"type": "input_text", "text": "Be brief."}]
    parted = with_text_behind(message_of({"role": "developer", "content": parts}), "MORE")
    assert [part["text"] for part in parted.raw["items"][0]["content"]] == ["Be brief.", "MORE"]
    assert with_text_behind(instructions_message("i"), "MORE").text == "i\n\nMORE"


def test_each_item_of_an_answer_has_its_own_frame() -> None:
    """CASES B1: a template puts something around each of them."""
    run = message_of({"items": [reasons(), says("x"), calls("c1"), says("y")]})
    assert run.item_count == 3
    counter = Counters().counter_for("gpt-4o-mini")
    alone = sum(counter.message(message_of(one)) for one in run.raw["items"])
    assert counter.message(run) == alone - OPENAI.message_tokens, "a call has one of its own"


# -- mending -------------------------------------------------------------------------------------
def test_a_message_that_says_nothing_is_filled() -> None:
    """CASES A11."""
    empty = message_of({"items": [reasons(sealed=None), says("")]})
    said = filled(empty, EMPTY["assistant"])
    assert said.raw["items"][-1]["content"] == EMPTY["assistant"]
    assert said.raw["items"][0] == reasons(sealed=None)
    user = filled(message_of({"role": "user", "content": []}), EMPTY["user"])
    assert user.raw == {"items": [{"role": "user", "content": EMPTY["user"]}]}


@pytest.mark.parametrize("empty", ["", " \n", None, [], [{"type": "output_text", "text": " "}]])
@pytest.mark.parametrize("other", [says("hello"), calls("c1")], ids=["words", "call"])
def test_an_empty_item_of_an_answer_never_goes_out(empty: Any, other: Item) -> None:
    """CASES A11: what else the answer says goes on as it was, and so does who it is."""
    blank = {"role": "assistant", "content": empty}
    answer = message_of({"items": [reasons(), blank, other]})
    transcript = read([user_message("Hi"), answer, *results_of(answer), user_message("Go on")], own)
    sent = transcript.messages[1]
    assert sent.raw == {"items": [reasons(), other]}
    assert message_of(sent.raw).digest == answer.digest
    assert transcript.repairs == ("messages[1]: empty content was left out",)


def results_of(answer: Message) -> list[Message]:
    return [message_of(output(call_id, "x")) for call_id in answer.call_ids]


def test_sealed_reasoning_that_said_nothing_goes_out_with_words_that_say_so() -> None:
    """CASES A11: OpenAI refuses reasoning without what it led to."""
    answer = message_of({"items": [reasons(), says("")]})
    transcript = read([user_message("Hi"), answer, user_message("Go on")], own)
    sent = transcript.messages[1].raw["items"]
    assert sent == [reasons(), {"type": "message", "role": "assistant", "content": "[empty reply]"}]
    assert message_of({"items": sent}).digest == answer.digest
    assert transcript.repairs == ("messages[1]: empty content was marked as empty",)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([], [reasons(), {"type": "message", "role": "assistant", "content": "[empty reply]"}]),
        ([says("hello")], [says("hello")]),
    ],
    ids=["nothing but reasoning", "words in front of it"],
)
def test_a_reply_that_was_cut_in_its_reasoning_does_not_end_with_it(
    said: list[Item], kept: list[Item]
) -> None:
    """CASES A9 (letta#3273), A11: OpenAI refuses it, and so every later request of the thread."""
    cut = message_of({"items": [*said, reasons()]})
    transcript = read([user_message("Hi"), cut, user_message("Go on")], own)
    assert transcript.messages[1].raw["items"] == kept
    assert transcript.repairs[0].startswith("messages[1]: empty content")
    assert not message_of({"items": kept}).has_blanks


def test_a_call_with_an_empty_id_keeps_its_result() -> None:
    """CASES A9: an empty id (hermes-agent PR#18650)."""
    call, result = message_of(calls("")), message_of(output("", "seen"))
    sent = read([user_message("Hi"), call, result], own).messages
    new_id = sent[1].raw["items"][0]["call_id"]
    assert new_id
    assert sent[2].raw == {"items": [output(new_id, "seen")]}


def test_calls_get_other_ids_in_order() -> None:
    """CASES A9."""
    read = message_of({"items": [calls(""), says("x"), calls("")]})
    assert read.call_ids == ("", "")
    new = renamed(read, ["a", "b"])
    assert [item.get("call_id") for item in new.raw["items"]] == ["a", None, "b"]
    assert new.call_ids == ("a", "b")
    assert answering(message_of(output("", "x")), "a").raw["items"][0]["call_id"] == "a"
    assert interrupted("a").raw == {"items": [output("a", INTERRUPTED)]}


# -- text of ours --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "item",
    [output("c", INTERRUPTED), {"role": "user", "content": LEFT_OUT}],
)
def test_what_a_gateway_made_has_no_identity(item: Item) -> None:
    assert message_of(item).digest == b""


@pytest.mark.parametrize(
    ("with_ours", "said"),
    [
        ({"role": "user", "content": EMPTY["user"]}, {"role": "user", "content": ""}),
        ({"items": [says(EMPTY["assistant"])]}, {"items": [says("")]}),
    ],
)
def test_an_echo_of_a_filled_message_is_the_empty_one(with_ours: Item, said: Item) -> None:
    """DESIGN 1.7."""
    assert message_of(with_ours).digest == message_of(said).digest
