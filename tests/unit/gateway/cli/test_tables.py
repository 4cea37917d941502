"""gateway/cli/tables.py: what people read at 80 columns."""

import pytest

from gateway.cli.paging.savings import COLUMNS, _row
from gateway.cli.running.run import saved
from gateway.cli.shelf.overview import _print_sessions
from gateway.cli.shelf.retention import _tell_plan
from gateway.cli.tables import counted, print_table

UUID = "3f1c8a52-9be1-4c00-8000-000000000001"
THREAD = "0123456789abcdef"
LONG = "it was the best of times, it was the worst of times, it was the age of wisdom " * 2


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_ids_are_whole_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """In `savings`, `sessions` and `retention preview` they were broken in two: no copying."""
    saving = {
        "thread_id": THREAD,
        "upstream": "openrouter-two",
        "turn_count": 1_234,
        "client_tokens": 12_345_678,
        "forwarded_tokens": 1_234_567,
        "cached_tokens": 1_034_567,
        "cost": 12.3456,
        "whole_cost": 123.4568,
    }
    print_table(COLUMNS, [_row(saving)], right=COLUMNS[1:], whole=COLUMNS[:1])
    said = {"session_id": UUID, "turn_count": 1_234, "updated_at": "2026-11-30T10:00:00"}
    _print_sessions([{**said, "id": THREAD, "collection": "default", "title": LONG}])
    collections = ("default", "another-collection")
    _print_sessions(
        [{**said, "id": THREAD, "collection": name, "title": LONG} for name in collections]
    )
    step = {"action": "archive", "id": THREAD, "kind": "document", "title": LONG, "used_at": None}
    step |= {"changed_at": "2026-11-30T10:00:00", "reason": "untouched for 90 d"}
    counts = {"archive": 1, "restore": 0, "purge": 0, "seen": 1, "kept": {}}
    _tell_plan({"steps": [step], **counts}, is_json=False)
    shown = capsys.readouterr().out
    for whole in ("openrouter-two", "12,345,678", "1,234,567", "12.3456", "123.46"):
        assert whole in shown
    assert shown.count(UUID) == 3
    assert shown.count(THREAD) == 2
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("name", [UUID, "日本語のセッション名" * 2])
def test_a_table_that_80_columns_cannot_hold_is_wider_and_not_cut(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    numbers = tuple(f"{10**at:,}" for at in range(5, 12))
    columns = ("thread", *(f"column {at}" for at in range(7)), "text")
    print_table(columns, [(name, *numbers, LONG)], right=columns[1:8], whole=columns[:1])
    shown = capsys.readouterr().out
    assert all(whole in shown for whole in (name, *numbers, *columns))
    assert all(shown.count(word) >= LONG.count(word) for word in ("best", "worst", "wisdom"))


def test_an_id_that_is_too_long_for_a_line_is_broken_and_not_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "x" * 120 + "y"
    print_table(("id", "text"), [(name, "a")], whole=("id",))
    shown = capsys.readouterr().out
    assert (shown.count("x"), shown.count("y")) == (121, 1)  # With that of "text".


def test_one_thing_is_told_as_one() -> None:
    assert [counted(number, "request") for number in (0, 1, 2, 1_000)] == [
        "0 requests",
        "1 request",
        "2 requests",
        "1,000 requests",
    ]
    assert "1 request of 1 thread, recorded" in saved([{"thread_id": "a"}], database="a.db")


def test_what_was_sent_beyond_what_came_is_told() -> None:
    """With pins it was `24,920 came, 25,608 were sent, 0 saved`."""
    for came, sent, told in ((10, 4, "6 saved (60%)"), (4, 4, "0 saved"), (4, 10, "6 more than")):
        turn = {"thread_id": "a", "client_tokens": came, "prompt_tokens": sent}
        assert f"{sent} were sent, {told}" in saved([turn], database="a.db")


def test_what_was_refused_is_told_with_the_reason_and_saved_nothing() -> None:
    """Claude Code at the default budget: `39,876 came, 0 were sent, 39,876 saved (100%)`."""
    small, large = (
        {"thread_id": "a", "state": "refused", "client_tokens": count, "error": f"needs {count}"}
        for count in (9_000, 39_876)
    )
    done = {"thread_id": "a", "state": "done", "client_tokens": 10, "prompt_tokens": 10}
    first, second = saved([done, large, small], database="a.db").splitlines()
    assert first.endswith("recorded in a.db; 10 tokens came, 10 were sent, 0 saved")
    assert second == "library-of-context: 2 requests refused: needs 39876"
