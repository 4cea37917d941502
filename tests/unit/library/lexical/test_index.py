import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from library.lexical import Document, Lexical, LexicalUnavailable, stems
from library.lexical import index as module
from library.passages import ORDINAL_BITS
from library.records import Range, Where
from library.retrieval.ranking import Candidate


def document(seq: int, words: str, *, branch: int = 1, position: int | None = None) -> Document:
    place = seq if position is None else position
    passage = Candidate(seq, 0, 1, 0, 9, branch, branch, place, 0, 0, seq, 0, 0, 0.0)
    return Document(passage, branch % 2, words)


def where(*ranges: Range, collection: int = 1, thread: int | None = 1, **more: object) -> Where:
    excluded = more.get("exclude", frozenset())
    assert isinstance(excluded, frozenset)
    return Where(collection, thread, ranges, bool(more.get("others")), excluded)


def found(lexical: Lexical, scope: Where, *words: str) -> list[tuple[int, float]]:
    some = lexical.search(scope, dict.fromkeys(stems(words), 1.0), full_score=1.0, limit=100)
    return [(one.seq, one.lexical) for one in some]


@pytest.fixture
def lexical(tmp_path: Path) -> Lexical:
    made = Lexical(tmp_path / "index")
    made.add(
        [document(seq, f"we deploy rockets number{seq} to mars{seq % 3}") for seq in range(1, 40)],
        replaced=(),
    )
    made.add([document(99, "deploy elsewhere", branch=2)], replaced=())
    made.commit()
    return made


def test_a_file_that_a_merge_deletes_while_sizes_are_added_up_counts_nothing(
    lexical: Lexical, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/library/status` answered 500 once in some hundred runs of a test."""
    size_bytes = lexical.size_bytes
    (lexical.folder / "gone.store").symlink_to("nowhere")
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert lexical.size_bytes == size_bytes > 0


def test_scope_narrows_what_is_found_and_changes_no_score(lexical: Lexical) -> None:
    everything = dict(found(lexical, where(thread=None, others=True), "deployed", "number7"))
    scope = where(Range(1, 5, 9), exclude=frozenset({6}))
    narrow = dict(found(lexical, scope, "deployed", "number7"))
    assert narrow.keys() == {5, 7, 8, 9}
    assert all(everything[seq] == score for seq, score in narrow.items())


def test_another_collection_is_never_found(lexical: Lexical) -> None:
    assert found(lexical, where(collection=0, thread=None, others=True), "deploy")[0][0] == 99
    assert 99 not in dict(found(lexical, where(thread=None, others=True), "deploy"))
    assert found(lexical, where(Range(2, 0, 999)), "deploy") == []


def test_it_knows_the_terms_that_some_passage_has(lexical: Lexical) -> None:
    assert lexical.known(["deploy", "deploi", "number7", ""]) == ["deploy", "number7"]


def test_adding_an_event_again_replaces_it(lexical: Lexical) -> None:
    lexical.add([document(7, "something new")], replaced=(7,))
    lexical.commit()
    scope = where(Range(1, 0, 99))
    assert found(lexical, scope, "number7") == []
    assert [seq for seq, _score in found(lexical, scope, "new")] == [7]
    assert lexical.document_count == 40


def test_nothing_is_written_any_more_once_the_writer_is_released(tmp_path: Path) -> None:
    """A merge that went on in secret left a file behind that no commit knows, with words in it
    that were deleted since."""
    lexical = Lexical(tmp_path / "index")
    for bite in range(24):
        seqs = range(200 * bite, 200 * bite + 200)
        said = (" ".join(f"w{seq * at % 7919}" for at in range(1, 40)) for seq in seqs)
        lexical.add([document(*one) for one in zip(seqs, said, strict=True)], replaced=())
        lexical.commit()
        if bite % 8 == 7:
            lexical.release_writer()
            left = {file.name: file.stat().st_mtime_ns for file in lexical.folder.iterdir()}
            time.sleep(0.2)
            assert {f.name: f.stat().st_mtime_ns for f in lexical.folder.iterdir()} == left
    segments = json.loads((lexical.folder / "meta.json").read_bytes())["segments"]
    assert len(segments) < 24, "some were merged"


def test_what_was_not_committed_is_gone(lexical: Lexical) -> None:
    lexical.add([document(50, "unfinished")], replaced=(50,))
    lexical.release_writer()
    again = Lexical(lexical.folder)
    assert again.highest_seq == 99
    assert found(again, where(Range(1, 0, 99)), "unfinished") == []


def test_neighbours_are_fetched_by_their_place(lexical: Lexical) -> None:
    scope = where(Range(1, 0, 20))
    places: Sequence[tuple[int, int]] = [(1, 3), (1, 4), (1, 30), (2, 99)]
    around = lexical.around(scope, places, limit=9)
    assert [(one.seq, one.lexical) for one in around] == [(3, 0.0), (4, 0.0)]
    elsewhere = replace(scope, collection_id=2)
    without = replace(scope, exclude_seqs=frozenset({3}))
    assert not len(lexical.around(elsewhere, places, limit=9))
    assert [one.seq for one in lexical.around(without, places, limit=9)] == [4]


def test_a_rarer_word_weighs_more_and_an_unknown_one_most(lexical: Lexical) -> None:
    rarity = lexical.rarity(["deploy", "mars1", "number7", "unknown"])
    assert list(rarity.values()) == sorted(rarity.values())


def test_the_engines_errors_are_ours(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "meta.json").write_text("{")
    with pytest.raises(LexicalUnavailable):
        Lexical(folder)


def test_passages_are_fetched_by_their_keys(lexical: Lexical) -> None:
    keys = [seq << ORDINAL_BITS | ordinal for seq, ordinal in ((39, 0), (7, 0), (7, 1), (999, 0))]
    found = lexical.passages(keys)
    assert [(one.seq, one.position, one.lexical) for one in found] == [(7, 7, 0.0), (39, 39, 0.0)]
    assert not len(lexical.passages([]))


SCOPES = (
    where(thread=None, others=True),
    where(Range(1, 5, 30), Range(3, 0, 9), others=True),
    where(Range(1, 5, 30), exclude=frozenset(range(8, 20))),
    where(Range(1, 0, 99), thread=1),
    where(collection=0, thread=7, others=True),
    where(Range(2, 0, 99), collection=0, thread=2, exclude=frozenset({99})),
)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("limit", [3, 10, 100])
def test_a_scope_looked_at_afterwards_finds_what_a_scope_in_the_query_finds(
    lexical: Lexical, monkeypatch: pytest.MonkeyPatch, scope: Where, limit: int
) -> None:
    scores = []
    for share in (0.0, 2.0):
        monkeypatch.setattr(module, "NEARLY_ALL", share)
        # Terms of different rarity, so that no two passages score alike.
        terms = stems(["deploy", "mars1", *(f"number{seq}" for seq in range(1, 40))])
        some = dict.fromkeys(terms[: 2 + limit], 1.0)
        one = lexical.search(scope, some, full_score=1.0, limit=limit)
        scores.append([each.lexical for each in one])
    assert scores[0] == scores[1]


def test_of_equal_finds_the_newest_are_taken_however_few_are_looked_at_first(
    tmp_path: Path,
) -> None:
    lexical = Lexical(tmp_path / "index")
    lexical.add([document(seq, "deploy rockets") for seq in range(1, 61)], replaced=())
    lexical.commit()
    everything = where(thread=None, others=True)
    best = lexical.search(everything, {"deploy": 1.0}, full_score=1.0, limit=40)
    assert [one.seq for one in best] == [*range(60, 20, -1)]


def test_an_index_shared_with_others_gives_only_the_own_collection(
    lexical: Lexical, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEARLY_ALL", 0.0)
    for collection, seqs in ((0, {99}), (1, set(range(1, 40))), (5, set())):
        scope = where(collection=collection, thread=None, others=True)
        assert {seq for seq, _ in found(lexical, scope, "deploy")} == seqs
