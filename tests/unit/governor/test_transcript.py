from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from governor.message import Message
from governor.transcript import EMPTY, INTERRUPTED, Transcript
from governor.transcript import read as read_in

RawMessage = dict[str, Any]


def system(text: str = "Be brief.") -> RawMessage:
    return {"role": "system", "content": text}


def user(text: str = "Hello") -> RawMessage:
    return {"role": "user", "content": text}


def assistant(text: str = "Hi", *call_ids: str) -> RawMessage:
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for i in call_ids
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def tool(call_id: str, text: str = "42") -> RawMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def parsed(*raw: RawMessage) -> list[Message]:
    return [message_of(one) for one in raw]


def read(messages: Sequence[Message]) -> Transcript:
    return read_in(messages, chat_dialect)


def is_legal(messages: Sequence[Message]) -> bool:
    """Tell whether a provider would take the messages: every call answered, right behind it."""
    open_ids: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.answers not in open_ids:
                return False
            open_ids.discard(message.answers or "")
        elif open_ids and message.role != "system":
            return False
        else:
            open_ids |= {*message.call_ids}
    return not open_ids


ids = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


@st.composite
def transcripts(draw: st.DrawFn) -> list[RawMessage]:
    """Any transcript a provider accepts: plain messages and complete tool exchanges."""
    raw: list[RawMessage] = []
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            call_ids = draw(ids)
            raw.append(assistant("", *call_ids))
            raw += [tool(i) for i in draw(st.permutations(call_ids))]
        else:
            raw.append(draw(st.sampled_from((system(), user(), assistant()))))
    return raw


@st.composite
def broken_transcripts(draw: st.DrawFn) -> list[RawMessage]:
    """Any messages at all, calls and results in any order and number."""
    some_id = st.sampled_from(("a", "b", "c", ""))
    one = st.one_of(
        st.just(system()),
        st.builds(user, st.sampled_from(("Hello", "", " \n"))),
        st.builds(tool, some_id, st.sampled_from(("42", ""))),
        st.lists(some_id, max_size=3).map(lambda call_ids: assistant("", *call_ids)),
    )
    return draw(st.lists(one, max_size=12))


@given(transcripts())
def test_units_tile_the_transcript_behind_its_system_text(raw: list[RawMessage]) -> None:
    transcript = read(parsed(*raw))
    edges = [transcript.system_count] + [unit.stop for unit in transcript.units]
    assert [unit.start for unit in transcript.units] == edges[:-1]
    assert edges[-1] == len(transcript.messages) == len(raw)
    assert not transcript.repairs


@given(transcripts(), st.data())
def test_any_choice_of_units_is_a_legal_transcript(
    raw: list[RawMessage], data: st.DataObject
) -> None:
    """The property trimming rests on. CASES A1 (litellm#4931, #10696)."""
    transcript = read(parsed(*raw))
    chosen = [
        message
        for unit in transcript.units
        if data.draw(st.booleans())
        for message in transcript.messages[unit.start : unit.stop]
    ]
    assert is_legal(chosen)


@given(broken_transcripts())
def test_whatever_arrives_is_mended_into_a_legal_transcript(raw: list[RawMessage]) -> None:
    """CASES A9 (letta#3273, hermes-agent PR#18650), A11 (litellm PR#2549, dirge PR#757)."""
    transcript = read(parsed(*raw))
    assert is_legal(transcript.messages)
    assert all(m.text.strip() or m.call_ids or m.role == "tool" for m in transcript.messages)
    again = read(parsed(*(dict(message.raw) for message in transcript.messages)))
    assert again.repairs == (), "a mended transcript needs no mending"
    assert [m.raw for m in again.messages] == [m.raw for m in transcript.messages]


@given(broken_transcripts())
def test_a_repair_keeps_every_message_that_has_a_place(raw: list[RawMessage]) -> None:
    transcript = read(parsed(*raw))
    kept = {origin for origin in transcript.origins if origin >= 0}
    lost = {*range(len(raw))} - kept
    assert all(raw[index]["role"] == "tool" for index in lost)
    assert (not lost) or transcript.repairs


def test_a_call_without_its_result_is_answered_as_interrupted() -> None:
    """CASES A4, A9 (freebuff PR#1292, letta#3273)."""
    transcript = read(parsed(user(), assistant("", "a", "b"), tool("b"), user("Go on")))
    assert [m.text for m in transcript.messages[2:4]] == [INTERRUPTED, "42"]
    assert transcript.messages[2].answers == "a"
    assert transcript.origins == (0, 1, -1, 2, 3)


def test_a_result_without_its_call_is_left_out() -> None:
    """CASES A4 (freebuff PR#1292)."""
    transcript = read(parsed(user(), tool("gone"), user("Go on")))
    assert [m.text for m in transcript.messages] == ["Hello", "Go on"]
    assert len(transcript.repairs) == 1


def test_a_late_result_moves_behind_its_call() -> None:
    transcript = read(parsed(assistant("", "a"), user("Well?"), tool("a", "late")))
    assert [m.text for m in transcript.messages] == ["f({})", "late", "Well?"]
    assert transcript.repairs == ("messages[2]: a late tool result was moved behind its call",)


def test_empty_ids_are_given_names_and_stay_together() -> None:
    """CASES A9: an empty id (hermes-agent PR#18650)."""
    transcript = read(parsed(assistant("", ""), tool("", "found")))
    call, result = transcript.messages
    assert call.raw["tool_calls"][0]["id"] == result.raw["tool_call_id"] != ""
    assert result.text == "found"


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("content", ["", " \n", None, []])
def test_empty_content_never_goes_out(role: str, content: Any) -> None:
    """CASES A11 (litellm PR#2549, dirge PR#757)."""
    transcript = read(parsed({"role": role, "content": content}, user()))
    assert transcript.messages[0].raw["content"] == EMPTY[role]


def test_a_reminder_of_the_system_belongs_to_the_unit_behind_it() -> None:
    transcript = read(parsed(system(), user(), assistant(), system("Reminder"), user("Next")))
    assert [(unit.start, unit.stop) for unit in transcript.units] == [(1, 2), (2, 3), (3, 5)]
    assert transcript.question == 2


def test_old_style_function_calls_are_one_unit() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    result = {"role": "function", "name": "f", "content": "42"}
    transcript = read(parsed(user(), call, result))
    assert [(unit.start, unit.stop) for unit in transcript.units] == [(0, 1), (1, 3)]
    assert not transcript.repairs
    cut = read(parsed(user(), call, user("Go on")))
    assert cut.messages[2].raw == {"role": "function", "name": "f", "content": INTERRUPTED}


def test_a_legacy_call_beside_calls_with_bad_ids_keeps_its_own() -> None:
    both = {
        **assistant("", "", ""),
        "function_call": {"name": "g", "arguments": "{}"},
    }
    transcript = read(parsed(user(), both, user("Go on")))
    assert transcript.messages[1].call_ids == ("call_1_0", "call_1_1", "function_call:g")
    assert [m.answers for m in transcript.messages[2:5]] == [*transcript.messages[1].call_ids]
