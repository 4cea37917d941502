"""The catalog of a Library of Context (library/importing/seed_catalog.py)."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from library.importing.items import Record
from library.importing.seed_catalog import EXPIRED, Card, joined, records

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def card(text: str, *, about: dict[str, Any] | None = None, **more: Any) -> Card:
    plain = Card("home", "r1", text, "{}", "manual", 0.5, 100.0, 200.0, None, "project", None, None)
    return plain._replace(metadata=json.dumps(about or {}), **more)


def windows(text: str, size: int, overlap: int) -> list[str]:
    """Source: hwillGIT/library-of-context context_cache/engine.py, `chunk_text`."""
    words, chunks, start = text.split(), [], 0
    while start < len(words):
        end = min(len(words), start + size)
        chunks.append(" ".join(words[start:end]))
        if end == len(words):
            break
        start = max(start + 1, end - overlap)
    return chunks


@given(st.lists(st.text("abcdef", min_size=1), unique=True), st.integers(2, 9), st.data())
def test_chapters_that_overlap_are_put_together_with_each_word_once(
    words: list[str], size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    text = " ".join(words)
    assert joined(windows(text, size, overlap)) == text


def test_a_document_is_one_record_of_its_chapters_in_order() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    chapters = [
        card(part, id=str(at), source="docs/guide.md", importance=0.9, updated_at=float(at + 1),
             about={"chunk_index": at, "source": "docs/guide.md", "topic": "herons"})
        for at, part in enumerate(windows(text, 40, 10))
    ]  # fmt: skip
    old = card("stale", source="docs/guide.md", about={"chunk_index": 1}, updated_at=0.5)
    [one] = records([*reversed(chapters), old], now=NOW)
    assert isinstance(one, Record)
    assert (one.kind, one.source, one.text) == ("document", "docs/guide.md", text)
    assert (one.importance, one.tags) == ("high", ("topic: herons",))
    assert one.at == datetime.fromtimestamp(3, UTC)


def test_a_note_is_an_insight_with_its_card_as_tags_and_project() -> None:
    about = {"tags": ["a", 3], "project": "shop", "level": 2, "deep": {"x": 1}, "is_x": True}
    [one] = records([card("A note.", about=about, importance=0.1)], now=NOW)
    assert one == Record(
        ref='library-of-context record ["home", "r1"]',
        kind="insight",
        text="A note.",
        type="fact",
        importance="low",
        tags=("a", "level: 2"),
        at=datetime.fromtimestamp(100, UTC),
        project="shop",
        source="manual",
        collection="home",
    )


def test_a_long_note_is_a_chunk_and_a_note_of_a_thread_belongs_to_it() -> None:
    [one] = records([card("x" * 9_000, scope="thread", owner_session_id="s1")], now=NOW)
    assert isinstance(one, Record)
    assert (one.kind, one.type, one.owner) == ("chunk", "snapshot", "s1")


def test_what_a_team_owns_bears_its_name() -> None:
    [one] = records([card("x", scope="team", team_id="blue")], now=NOW)
    assert isinstance(one, Record)
    assert one.tags == ("team: blue",)


def test_what_has_expired_is_left_out_and_broken_cards_are_read_without_them() -> None:
    fresh, gone, broken, deep = records(
        [
            card("later", expires_at=NOW.timestamp() + 1),
            card("gone", expires_at=NOW.timestamp()),
            card("x")._replace(metadata="no json"),
            card("y")._replace(metadata="[" * 100_000),
        ],
        now=NOW,
    )
    assert gone is EXPIRED
    assert all(isinstance(one, Record) for one in (fresh, broken, deep))
