"""What the bench with a real model sends, and says of its figures."""

from typing import Any

from scripts.bench.conversations import text
from scripts.bench.llama import (
    BUDGET_TOKENS,
    SLIDING_MESSAGES,
    USER_WORDS,
    Turn,
    newest,
    row,
    said,
    shown,
)


def talk(count: int) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[at % 2], "content": str(at)} for at in range(count)]


def test_a_sliding_window_sends_the_newest_that_fit_from_one_of_the_users_on() -> None:
    messages = talk(41)
    assert newest(messages, [1] * 41) == messages[-SLIDING_MESSAGES + 1 :]
    assert newest(messages, [BUDGET_TOKENS // 4] * 41) == messages[-3:]
    assert newest(messages[:3], [1, 1, 1]) == messages[:3]


def test_a_later_message_asks_for_what_an_earlier_note_said() -> None:
    _, _, words = said(9).rstrip("?").partition("about ")
    assert "note 3" in said(9)
    assert words in text(3, words=USER_WORDS)


def test_figures_are_ratios_of_what_the_server_told() -> None:
    ours = row([Turn(100, 10, 100.0), Turn(100, 30, 300.0)])
    theirs = row([Turn(100, 80, 800.0), Turn(100, 80, 800.0)])
    said = shown({"through us": ours, "sliding window": theirs})
    assert "read: 1/4.0; first token: 1/4.0 at the mean, 1/4.0 at the median" in said
