"""Which messages say a plan."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat import message as _DIALECT
from gateway.wire.chat.message import message_of
from gateway.wire.messages.message import message_of as messages_message
from gateway.wire.responses.message import message_of as responses_message
from governor.desk.plan import WORDS_MAX, latest_plan, says_plan
from governor.message import Message
from governor.transcript import read

TODOS = {"todos": [{"content": "read the retry path", "status": "in_progress"}]}


def calling(name: str, **arguments: object) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "c1", "type": "function", "function": function}
    return message_of({"role": "assistant", "content": None, "tool_calls": [call]})


def saying(words: str, role: str = "assistant") -> Message:
    return message_of({"role": role, "content": words})


@pytest.mark.parametrize(
    "name",
    ["TodoWrite", "todowrite", "todo_write", "update_plan", "write_todos", "manage_todo_list"],
)
def test_the_plan_tools_of_agents_say_a_plan_in_every_protocol(name: str) -> None:
    assert says_plan(calling(name, **TODOS))
    block = {"type": "tool_use", "id": "u", "name": name, "input": TODOS}
    assert says_plan(messages_message({"role": "assistant", "content": [block]}))
    item = {"type": "function_call", "call_id": "c", "name": name, "arguments": json.dumps(TODOS)}
    assert says_plan(responses_message({"items": [item]}))


@pytest.mark.parametrize(
    "words",
    [
        "Plan after step 31: 1. read the retry path 2. compare batches 3. mend it.",
        "Here is my plan:\n\n1. Read\n2. Write\n3. Test\n",
        "My TODO list\n- read\n- write\n- test",
        "Done so far:\n- [x] read\n- [ ] write\n- [ ] test",
    ],
)
def test_a_list_that_is_called_a_plan_is_one(words: str) -> None:
    assert says_plan(saying(words))
    assert not says_plan(saying(words, role="user"))


@pytest.mark.parametrize(
    "words",
    [
        "I plan to read the file now.",
        "Your plan has 1. a seat and 2. a bag.",
        "The results:\n1. one\n2. two\n3. three",
        "",
    ],
)
def test_other_words_are_none(words: str) -> None:
    assert not says_plan(saying(words))


def test_what_a_call_writes_is_no_plan_of_the_agents() -> None:
    words = "Plan: 1. one 2. two 3. three"
    assert not says_plan(calling("write_file", path="notes.md", text=words))
    assert not says_plan(calling("my_update_plan", text="x"))


def test_the_newest_plan_counts() -> None:
    talk = [saying("task", "user")]
    for number in range(3):
        talk += [saying(f"Plan {number}: 1. a 2. b 3. c"), saying("go on", "user")]
    transcript = read(tuple(talk), dialect=_DIALECT)
    at = latest_plan(transcript)
    assert at is not None
    assert transcript.messages[at].text.startswith("Plan 2")
    assert latest_plan(read((talk[0],), dialect=_DIALECT)) is None


@given(st.text(max_size=300))
def test_any_text_can_be_asked(words: str) -> None:
    says_plan(saying(words))


def test_a_huge_text_costs_little() -> None:
    """CASES A12: no text makes the look for a plan slow."""
    texts = ["plan " + " 1. " * 50_000, "- [ ] " * 50_000, "plan\n" + "\n" * 100_000, "(" * 200_000]
    started = time.process_time()
    for words in texts:
        says_plan(saying(words))
        says_plan(calling("bash", command=words))
    assert time.process_time() - started < 2.0
    assert len(texts[0]) > WORDS_MAX


def test_a_reply_that_ends_in_thousands_of_line_breaks_costs_little() -> None:
    """Small models do that; the event loop stood still for a second."""
    reply = saying("Done." + "\n" * WORDS_MAX)
    started = time.process_time()
    assert not says_plan(reply)
    assert time.process_time() - started < 0.2
