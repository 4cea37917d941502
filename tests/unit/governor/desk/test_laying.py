from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.counting import bound_tokens
from governor.desk import laying
from governor.desk.laying import FRAME, Desk, laid_again, lay_out, swaps
from governor.desk.rendering import parsed_block
from library.reading.questions import QuestionKind
from library.records import Event, Hit, Passage

BEGIN = datetime(2024, 5, 8, tzinfo=UTC)
HERE = 7


def event(seq: int, text: str, *, thread_no: int = HERE, name: str | None = None) -> Event:
    return Event(
        seq=seq,
        id=f"e{seq}",
        collection_id=1,
        thread_no=thread_no,
        thread_id=f"t{thread_no}",
        session_id=None,
        branch_id=1,
        position=seq,
        role="user",
        digest=seq.to_bytes(16, "big"),
        body={"role": "user", "content": text, **({"name": name} if name else {})},
        text=text,
        occurred_at=BEGIN + timedelta(minutes=seq),
        recorded_at=BEGIN,
        turn_id=None,
        is_partial=False,
    )


def hit(
    source: Event, *, score: float = 0.9, ordinal: int = 0, of: int = 1, span: slice | None = None
) -> Hit:
    start, stop, _ = (span or slice(0, len(source.text))).indices(len(source.text))
    passage = Passage(source.seq, ordinal, of, start, stop)
    return Hit(event=source, passage=passage, score=score, signals={"lexical": score})


def words(text: str) -> int:
    return len(text.split())


def laid_out(
    hits: list[Hit],
    room: int = 1_000,
    taken: frozenset[bytes] = frozenset(),
    kind: QuestionKind = "depth",
    certainty: float = 1.0,
    count: Callable[[str], int] = words,
) -> Desk:
    return lay_out(
        hits,
        count=count,
        room_tokens=room,
        minimum_relevance=0.1,
        thread_no=HERE,
        taken_digests=taken,
        kind=kind,
        certainty=certainty,
    )


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), max_size=12), st.integers(0, 300))
def test_a_desk_fits_its_room_and_nothing_left_off_would_still_fit(
    some: list[tuple[int, float]], room: int
) -> None:
    """CASES J9: one oversized record never keeps smaller ones off the desk."""
    hits = [hit(event(at, "word " * size), score=score) for at, (size, score) in enumerate(some)]
    desk = laid_out(hits, room)
    block = desk.block(HERE)
    assert words(block) <= room or not block
    for one in hits:
        if one.score >= 0.1 and one.event.id not in desk.ids:
            assert words(block or FRAME) + one.event.text.count("word") > room - 20


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.sampled_from(["a", "deployment", "x" * 70, "42,", "\u7fa4\u5cf6", " ", "\n"])
            ),
            st.floats(0.2, 1),
        ),
        max_size=12,
    ),
    st.integers(0, 120),
)
def test_a_look_at_the_beginning_of_a_record_leaves_off_only_what_does_not_fit(
    some: list[tuple[list[str], float]], room: int
) -> None:
    hits = [hit(event(at, " ".join(parts)), score=one) for at, (parts, one) in enumerate(some)]
    for count in (words, bound_tokens):
        with pytest.MonkeyPatch.context() as patch:
            quick = laid_out(hits, room, count=count)
            patch.setattr(laying, "OPENING_CHARS_A_TOKEN", 1_000_000)
            assert quick == laid_out(hits, room, count=count)


def test_what_is_too_long_by_its_beginning_is_not_counted_whole() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return words(text)

    long = hit(event(1, "so " * 250))
    assert laid_out([long], room=words(FRAME) + 80, count=count) == Desk()
    assert max(map(len, counted)) < max(len(FRAME) + 1, 80 * laying.OPENING_CHARS_A_TOKEN)


def test_a_record_and_what_replaces_it_stand_together_in_time_order_and_the_newer_says_so() -> None:
    """CASES J8."""
    old, other, new = (
        event(1, "we deploy on Heroku"),
        event(2, "lunch"),
        event(3, "we moved to AWS"),
    )
    desk = laid_out([hit(old), hit(other), hit(new)._replace(replaces=("e1", "e77"))])
    records = parsed_block(desk.block(HERE))
    assert [(one.id, one.replaces) for one in records] == [("e1", ()), ("e2", ()), ("e3", ("e1",))]
    again = laid_again(desk.entries, {1: old, 2: other, 3: new})
    assert again is not None
    assert again.block(HERE) == desk.block(HERE)


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20))
def test_what_no_longer_holds_never_lies_on_the_desk_alone(
    room: int, old_words: int, new_words: int
) -> None:
    """CASES J8."""
    old, new = event(1, "old " * old_words), event(3, "new " * new_words)
    desk = laid_out(
        [hit(old), hit(new, score=0.5)._replace(replaces=("e1",))], len(FRAME.split()) + room
    )
    assert desk.ids != ("e1",)
    assert words(desk.block(HERE)) <= len(FRAME.split()) + room
    while desk.laid:
        desk = desk.without_last()
        assert desk.ids != ("e1",)
        assert all(one.entry.replaces == () for one in desk.laid)


@given(st.integers(0, 60), st.permutations([1, 2, 3]))
def test_of_facts_replaced_in_turn_none_lies_there_without_the_newest(
    room: int, ranks: list[int]
) -> None:
    """CASES J8: A, then B instead of it, then C instead of B."""
    facts = [
        hit(event(1, "we deploy on Heroku in one region")),
        hit(event(2, "we moved to AWS"))._replace(replaces=("e1",)),
        hit(event(3, "we moved to our own machines in the cellar"))._replace(replaces=("e2",)),
    ]
    desk = laid_out([facts[rank - 1] for rank in ranks], len(FRAME.split()) + room)
    assert {*desk.ids} in (set(), {"e3"}, {"e2", "e3"}, {"e1", "e2", "e3"})


def words_and_lines(text: str) -> int:
    return words(text) + text.count("\n")


SAID = "Remember that the greenhouse heating is switched to the winter programme every autumn"
TEXTS = (SAID, f"hello again, {SAID}", f"{SAID} and every spring", "short", "something " * 14)


@given(
    st.lists(
        st.tuples(st.sampled_from(TEXTS), st.integers(0, 4), st.integers(0, 600), st.booleans()),
        max_size=8,
    ),
    st.integers(30, 120),
)
def test_headings_are_paid_for_when_a_near_copy_takes_a_place(
    some: list[tuple[str, int, int, bool]], room: int
) -> None:
    hits = []
    for at, (text, days, minutes, is_here) in enumerate(some):
        one = event(at, text, thread_no=HERE if is_here else 2)
        later = BEGIN + timedelta(days=days, minutes=minutes)
        hits.append(hit(replace(one, occurred_at=later)))
    assert words_and_lines(laid_out(hits, room, count=words_and_lines).block(HERE)) <= room


def test_records_are_read_in_time_order_conversation_by_conversation() -> None:
    hits = [
        hit(event(9, "late", thread_no=2)),
        hit(event(4, "here, second")),
        hit(event(1, "early", thread_no=2)),
        hit(event(3, "here, first", name="Ann")),
    ]
    records = parsed_block(laid_out(hits).block(HERE))
    assert [record.text for record in records] == ["early", "late", "here, first", "here, second"]
    assert [record.thread for record in records] == ["t2", "t2", "this", "this"]
    assert records[2].who == "Ann"
    assert records[0].at == BEGIN


def test_neighbouring_passages_are_laid_out_as_one() -> None:
    source = event(1, "aaabbbccc")
    hits = [
        hit(source, ordinal=2, of=4, span=slice(6, 9)),
        hit(source, ordinal=0, of=4, span=slice(0, 3)),
        hit(source, ordinal=1, of=4, span=slice(3, 6)),
    ]
    [record] = parsed_block(laid_out(hits).block(HERE))
    assert (record.text, record.part) == ("aaabbbccc", "part 1-3 of 4")


def test_what_is_in_the_prompt_or_beside_the_point_stays_off() -> None:
    """CASES J10."""
    known, weak, good = event(1, "known"), event(2, "weak"), event(3, "good")
    desk = laid_out([hit(known), hit(weak, score=0.05), hit(good)], taken=frozenset({known.digest}))
    assert desk.ids == ("e3",)


def test_a_remembered_desk_is_laid_out_byte_for_byte() -> None:
    """CASES G2 (bifrost#2347)."""
    events = [event(at, f"record {at}") for at in (1, 2)]
    desk = laid_out([hit(one) for one in events])
    again = laid_again(desk.entries, {one.seq: one for one in events})
    assert again.block(HERE) == desk.block(HERE)


def test_the_report_says_what_came_went_and_stayed() -> None:
    desk = laid_out([hit(event(1, "stays")), hit(event(2, "comes"))])
    told = swaps(desk, ["e1", "e9"])
    assert [one["id"] for one in told["swapped_in"]] == ["e2"]
    assert told["swapped_in"][0]["reason"] == {"lexical": 0.9}
    assert told["swapped_in"][0]["tokens"] > 1
    assert (told["swapped_out"], told["retained"]) == (["e9"], ["e1"])
    assert laid_out([]).block(HERE) == ""


def test_of_near_copies_the_newest_lies_there_in_the_place_of_the_best() -> None:
    """CASES J7 (engram#163)."""
    said = "Remember that the greenhouse heating is switched to the winter programme every autumn."
    old, new = event(1, said), event(9, f"Hello again! {said}")
    other = event(5, "The greenhouse heating was installed by Bergmann and Sons of Uppsala.")
    desk = laid_out([hit(old), hit(other, score=0.5), hit(new, score=0.4)])
    assert desk.ids == ("e9", "e5")
    assert {one.event.id: one.score for one in desk.laid} == {"e9": 0.9, "e5": 0.5}


@pytest.mark.parametrize("is_newer_first", [True, False])
def test_a_fact_and_what_replaced_it_in_nearly_its_words_are_no_copies(
    is_newer_first: bool,
) -> None:
    """Issue 3, near-duplicates: linked pairs are exempt."""
    words_of = (
        "Anna drives the {} car from her house beside the northern lake through the old village "
        "and across the narrow bridge to the office where she designs furniture every working day"
    )
    old, new = event(1, words_of.format("red")), event(2, words_of.format("blue"))
    assert laid_out([hit(new), hit(old)]).ids == ("e2",), "near copies, where nothing links them"
    hits = [hit(new)._replace(replaces=("e1",)), hit(old)]
    desk = laid_out(hits if is_newer_first else hits[::-1])
    records = parsed_block(desk.block(HERE))
    assert [(one.id, one.replaces) for one in records] == [("e1", ()), ("e2", ("e1",))]


def test_texts_that_differ_in_a_number_are_no_copies() -> None:
    said = "The greenhouse heating is set to {} degrees every autumn by the caretaker."
    desk = laid_out([hit(event(at, said.format(18 + at))) for at in (1, 2)])
    assert desk.ids == ("e1", "e2")


def test_where_nothing_surely_bears_on_the_question_the_desk_is_small() -> None:
    hits = [hit(event(at, f"Record {at} says {at} things.")) for at in range(40)]
    sizes = [words(laid_out(hits, 400, certainty=sure).block(HERE)) for sure in (1.0, 0.8, 0.1)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert len(laid_out(hits, 400, certainty=0.1).ids) == 1
    assert len(laid_out(hits, 400, certainty=0.1, kind="order").ids) == 1


def test_the_best_record_lies_there_however_doubtful_it_is_and_bounds_what_follows() -> None:
    hits = [hit(event(1, "long " * 100)), hit(event(2, "short")), hit(event(3, "too"))]
    assert laid_out(hits, 400, certainty=0.0).ids == ("e1",)
    assert laid_out(hits, 100, certainty=0.0).ids == ("e2",), "the first that fits is the best"
    assert laid_out(hits, 400, certainty=1.0).ids == ("e1", "e2", "e3")


def test_insights_and_documents_lie_there_with_who_when_and_from_where() -> None:
    """Not under the ids of their threads: each insight has one of its own."""
    told = [
        replace(
            event(seq, text, thread_no=100 + seq, name=name),
            kind="insight",
            role="insight",
            body={"role": "insight", "type": kind, "content": text, "name": name},
        )
        for seq, text, kind, name in (
            (1, "We use PostgreSQL.", "decision", "Ada"),
            (3, "Never on Fridays.", "rule", None),
        )
    ]
    part = replace(
        event(4, "def f(): ...", thread_no=200),
        kind="document",
        role="document",
        body={
            "role": "document",
            "content": "def f(): ...",
            "source": "a folder/app.py",
            "lines": [10, 42],
        },
    )
    desk = laid_out([hit(one) for one in (*told, part, event(2, "And Redis?"))])
    lines = desk.block(HERE).splitlines()[2:-1]
    assert lines == [
        "¶ 2024-05-08, insights",
        "¶e1 decision by Ada: We use PostgreSQL.",
        "¶e3 rule: Never on Fridays.",
        "¶ 2024-05-08",
        "¶e2 user: And Redis?",
        "¶ 2024-05-08, documents",
        "¶e4 a folder/app.py:10-42: def f(): ...",
    ]
    read = parsed_block(desk.block(HERE))
    assert [(one.kind, one.who) for one in read] == [
        ("insight", "decision by Ada"),
        ("insight", "rule"),
        ("chat", "user"),
        ("document", "a folder/app.py:10-42"),
    ]
