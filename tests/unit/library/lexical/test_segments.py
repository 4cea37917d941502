"""Which files of an index hold deleted words still (library/lexical/segments.py)."""

import json
from pathlib import Path

import pytest

from library.lexical import Document, Lexical, LexicalUnavailable, stems
from library.retrieval.ranking import Candidate


def document(seq: int, words: str, *, thread: int) -> Document:
    passage = Candidate(seq, 0, 1, 0, 9, thread, thread, seq, 0, 0, seq, 0, 0, 0.0)
    return Document(passage, 1, words)


@pytest.fixture
def lexical(tmp_path: Path) -> Lexical:
    """Three files: 1-40 of threads 0 and 1, 41-80 of thread 2, 81-120 of thread 3."""
    made = Lexical(tmp_path / "index")
    for first, threads in ((1, (0, 1)), (41, (2, 2)), (81, (3, 3))):
        seqs = range(first, first + 40)
        made.add(
            [document(seq, f"word{seq} thread{threads[seq % 2]}", thread=threads[seq % 2])
             for seq in seqs],
            replaced=(),
        )  # fmt: skip
        made.commit()
    return made


def knows(lexical: Lexical, word: str) -> bool:
    """Tell whether a word stands in any file, even of deleted passages only."""
    [stem] = stems([word])
    rarity = Lexical(lexical.folder).rarity([stem, "neversaid"])
    return rarity[stem] != rarity["neversaid"]


def test_without_a_deletion_no_file_has_to_be_rewritten(lexical: Lexical) -> None:
    assert lexical.beside_deleted() is None


def test_a_deleted_word_stays_in_its_file_until_what_stands_beside_it_is_added_anew(
    lexical: Lexical,
) -> None:
    before = {path.name for path in lexical.folder.glob("*.idx")}
    lexical.forget([1])
    lexical.commit()
    assert knows(lexical, "word7")
    beside = lexical.beside_deleted()
    assert beside == set(range(2, 41, 2))
    lexical.add([document(seq, f"word{seq} thread0", thread=0) for seq in beside], replaced=beside)
    lexical.commit()
    assert lexical.beside_deleted() is None
    assert not knows(lexical, "word7")
    assert knows(lexical, "word8") and knows(lexical, "word100")
    after = {path.name for path in lexical.folder.glob("*.idx")}
    assert len(before & after) == 2, "the two other files are as they were"
    assert lexical.document_count == 100


def test_a_file_of_which_nothing_is_left_is_gone_with_the_commit(lexical: Lexical) -> None:
    lexical.forget([2])
    lexical.commit()
    assert lexical.beside_deleted() is None
    assert not knows(lexical, "word50")


def test_files_that_the_searcher_does_not_see_are_said(lexical: Lexical) -> None:
    lexical.forget([1])
    lexical.commit()
    meta = lexical.folder / "meta.json"
    said = json.loads(meta.read_bytes())
    [marked] = [one for one in said["segments"] if one["deletes"]]
    lexical.release_writer()
    wrong = marked | {"max_doc": 41}
    said["segments"] = [wrong if one is marked else one for one in said["segments"]]
    meta.write_text(json.dumps(said))
    with pytest.raises(LexicalUnavailable):
        lexical.beside_deleted()
