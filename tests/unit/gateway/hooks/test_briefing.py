import pytest

from gateway.hooks.briefing import brief
from gateway.hooks.command import is_memory
from gateway.hooks.words import LANGUAGES, language_of, said
from governor.counting.bound import bound_tokens


def insight(name: str, text: str) -> dict[str, str]:
    return {"id": name, "event_id": f"e{name}", "text": text}


def briefed(most_tokens: int, language: str = "en", count: int = 20) -> str:
    rules = [insight(str(at), f"Rule {at}: never deploy on day {at}.") for at in range(count)]
    todos = [insight("0", "Rule 0: never deploy on day 0."), insight("t", "Finish\nthe docs.")]
    return brief(
        {"rules": rules, "unfinished": todos},
        count=bound_tokens,
        language=language,
        most_tokens=most_tokens,
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("most", [50, 120, 300, 5_000])
def test_a_briefing_keeps_to_its_tokens_and_says_what_it_left_out(most: int, language: str) -> None:
    text = briefed(most, language)
    assert bound_tokens(text) <= most if text else most < 200
    shown = text.count("\n- [")
    assert not text or shown == 21 or said("left_out", language, count=21 - shown) in text


def test_each_insight_stands_once_on_one_line_rules_first() -> None:
    lines = briefed(5_000).splitlines()
    assert lines[1:3] == ["Rules that must hold:", "- [e0] Rule 0: never deploy on day 0."]
    assert lines[-2:] == ["Unfinished:", "- [et] Finish the docs."]
    assert len([line for line in lines if "Rule 0:" in line]) == 1


def test_nothing_is_said_where_nothing_is_remembered() -> None:
    assert brief({"rules": []}, count=len, language="en", most_tokens=100) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_there_in_every_language(language: str) -> None:
    values = {"added": 3, "what": "x", "why": "y", "count": 4, "file": "CLAUDE.md"}
    names = ("saved", "saving", "failed", "briefing", "rules", "unfinished", "left_out", "remind")
    assert all(said(name, language, **values) for name in names)


def test_the_language_is_that_of_the_terminal() -> None:
    assert language_of({"LANG": "fr_FR.UTF-8"}) == "fr"
    assert language_of({"LC_ALL": "ja_JP", "LANG": "fr_FR"}) == "ja"
    assert language_of({"LANG": "C.UTF-8"}) == language_of({}) == "en"


def test_files_that_agents_keep_as_their_memory_are_known() -> None:
    for file in ("/a/CLAUDE.md", "AGENTS.md", "C:\\x\\MEMORY.md", "/h/.claude/memory/notes.md"):
        assert is_memory(file), file
    for file in ("/a/README.md", "/memory/code.py", "/a/claude.md.txt"):
        assert not is_memory(file), file
