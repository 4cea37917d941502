import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of
from governor.identity import canonical_arguments, identity_digest

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1, "y": 2}'}}
PLAIN: dict[str, Any] = {"role": "assistant", "content": "It is done."}
CALLING: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    "again",
    [
        {**PLAIN, "refusal": None, "annotations": [], "audio": None, "tool_calls": None},
        {**PLAIN, "content": "It is done.\n"},
        {**PLAIN, "content": [{"type": "text", "text": "It is done."}]},
        {**PLAIN, "content": "<think>Hm.</think>\nIt is done."},
        {**PLAIN, "reasoning_content": "Hm."},
        {
            **PLAIN,
            "content": [
                {"type": "text", "text": "It is done.", "cache_control": {"type": "ephemeral"}}
            ],
        },
    ],
)
def test_one_message_in_another_spelling_is_the_same_message(again: dict[str, Any]) -> None:
    assert message_of(again).digest == message_of(PLAIN).digest


def test_tool_arguments_may_be_written_in_any_way() -> None:
    rewritten = {**CALL, "index": 0, "function": {"name": "f", "arguments": '{"y":2,"x":1}'}}
    again = {"role": "assistant", "content": "", "tool_calls": [rewritten]}
    assert message_of(again).digest == message_of(CALLING).digest
    assert canonical_arguments("not JSON") == "not JSON"


@pytest.mark.parametrize(
    "other",
    [
        {**PLAIN, "role": "user"},
        {**PLAIN, "content": "It is not done."},
        {**PLAIN, "content": "it is done."},
        CALLING,
        {**CALLING, "tool_calls": [{**CALL, "id": "b"}]},
        {**CALLING, "tool_calls": [CALL, CALL]},
    ],
)
def test_other_words_are_another_message(other: dict[str, Any]) -> None:
    assert message_of(other).digest != message_of(PLAIN).digest


def test_two_images_are_two_messages() -> None:
    def shown(url: str) -> bytes:
        part = {"type": "image_url", "image_url": {"url": url}}
        return message_of({"role": "user", "content": [part]}).digest

    assert shown("https://example.com/a.png") != shown("https://example.com/b.png")


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_two_lists_of_fields_never_run_together(one: list[str], other: list[str]) -> None:
    def digest(media: list[str]) -> bytes:
        return identity_digest(role="user", text="", media=media)

    assert (digest(one) == digest(other)) == (one == other)


@pytest.mark.parametrize("thought", ["\n" * 50_000, "<think>" * 5_000])
def test_a_thought_without_an_end_costs_no_time(thought: str) -> None:
    """Models that lose themselves end so, at their reply's limit."""
    started = time.process_time()
    identity_digest(role="assistant", text=f"<think>{thought}")
    assert time.process_time() - started < 0.2


def test_only_the_thought_at_the_start_is_left_out() -> None:
    def digest(text: str) -> bytes:
        return identity_digest(role="assistant", text=text)

    assert digest("\n <think>a</think> Done.") == digest("Done.")
    assert digest("<think>a</think><think>b</think>Done.") != digest("Done.")
    assert digest("<think>a") != digest("")
