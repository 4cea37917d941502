"""Full-text search in a folder of its own, derived from the store. The only seam to tantivy.

The index holds words and numbers, never a text: what a search returns is read from the store, so
what was deleted there cannot come back from here. One document is one passage.

Scope stands inside the query, with a constant score of zero, so that it narrows what is found
without touching how it is scored; it is looked at afterwards only where nothing can be crowded
out. `Lexical` is synchronous and not for the event loop: searches may run in several threads;
everything that writes must be called by one at a time.

Rejected: SQLite's FTS5, 133 ms at 100,000 passages against 1.4 here (PACKAGES.md), and one index a
collection, which would commit once for each collection instead of once for all.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tantivy
from tantivy import Occur, Query

from library.lexical.errors import mapped
from library.lexical.runs import RUNS, SPACES, Held, Holders, held_clauses, newest_holders
from library.lexical.scope import scope_clauses
from library.lexical.scope import term as term_of
from library.lexical.segments import beside_deleted, folder_bytes
from library.passages import ORDINAL_BITS
from library.records import Where
from library.retrieval.ranking import NUMBERS, Candidate
from library.runtime.allocator import give_back

if TYPE_CHECKING:
    from library.retrieval.candidates import Candidates

SCHEMA_VERSION = 6
"""Part of the folder's name: another version is another index, built anew."""
WRITER_HEAP_BYTES = 15_000_000
"""The least that tantivy accepts for one thread."""
NEARLY_ALL = 0.8
"""A scope with so much of the index is looked at after the search, and not in it."""
SPARE = 1.5
"""So many times the passages wanted are then asked for, since some will be out of scope."""
NEARLY_LIMIT = 1.05
"""Of what was asked for so much is looked at first: where nearly all is in scope it is enough."""
LISTED_IN_QUERY = 500
"""A longer list of threads is looked at after the search first: to put 1,000 numbers into a query
of 100,000 passages takes 20 ms, 100,000 of them 100."""
LISTED_SPARE = 8
"""So many times the passages wanted are then asked for, and again so many times as often."""
LISTED_ROUNDS = 2
_WORDS = "words"
_KEYS = ("seq", "ordinal", "thread_no", "branch_id", "collection_id", "position", "at_s", "kind")
_NUMBERS = ("part_count", "start", "stop", "role", "fingerprint", "speaker")


_ANALYZER = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    .filter(tantivy.Filter.stemmer("english"))
    .build()
)


class Document(NamedTuple):
    """One passage as it is indexed; thousands are made."""

    passage: Candidate
    """As it is found, unscored."""
    collection_id: int
    words: str
    """Its words with spaces between, the key prefix included."""
    runs: str = ""
    """What it holds letter for letter, see library/grep/runs.py, with spaces between."""


def stems(words: Sequence[str]) -> list[str]:
    """Return the term of each word, in order."""
    return _ANALYZER.analyze(" ".join(words))


class Lexical:
    """One index folder. Raises `LexicalUnavailable` from every method."""

    def __init__(self, folder: Path) -> None:
        """Open the index in `folder`, or begin an empty one there."""
        self.folder = folder
        self._schema = _schema()
        self._writer: tantivy.IndexWriter | None = None
        with mapped():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=str(folder))
            self._index.register_tokenizer(_WORDS, _ANALYZER)
            self._index.register_tokenizer(RUNS, SPACES)
            self._index.config_reader("manual")
        # A damaged segment shows itself only when it is read.
        self.highest_seq = self._highest_seq()
        self._added_upto = self.highest_seq

    # -- writing, one caller at a time ----------------------------------------------------------
    def add(self, documents: Sequence[Document], *, replaced: Iterable[int]) -> None:
        """Put documents in place of all that the index has of the `replaced` seqs."""
        with mapped():
            writer = self._open_writer()
            for seq in replaced:
                # A new event has nothing to delete, and each deletion is looked up in every
                # segment at the commit.
                if seq <= self._added_upto:
                    writer.delete_documents_by_term("seq", seq)
            for document in documents:
                passage = document.passage
                self._added_upto = max(self._added_upto, passage.seq)
                fields: dict[str, Any] = dict(zip(NUMBERS, passage, strict=False))
                fields["collection_id"] = document.collection_id
                fields[_WORDS] = document.words
                fields[RUNS] = document.runs
                fields["place"] = _place(passage.branch_id, passage.position)
                fields["key"] = passage.seq << ORDINAL_BITS | passage.ordinal
                writer.add_document(tantivy.Document.from_dict(fields, self._schema))

    def forget(self, thread_nos: Iterable[int]) -> None:
        """Delete all that the index has of threads, with the next commit."""
        with mapped():
            writer = self._open_writer()
            for thread_no in thread_nos:
                writer.delete_documents_by_term("thread_no", thread_no)

    def beside_deleted(self) -> set[int] | None:
        """Return the events with passages in files that still hold words of deleted ones; None:
        there is no such file. Ends the merging of files first, so that there is none unseen."""
        self.release_writer()
        with mapped():
            self._index.reload()
            searcher = self._index.searcher()
            return beside_deleted(searcher, self._schema, self.folder, highest_seq=self.highest_seq)

    def commit(self) -> None:
        """Make what was added durable and visible. About 15 ms, however little it was."""
        with mapped():
            if self._writer is not None:
                self._writer.commit()
                self._index.reload()
        self.highest_seq = self._added_upto
        give_back()

    def release_writer(self) -> None:
        """Give the writer's memory back, once its merges have ended, and drop what was not
        committed.

        Without a rollback: that leaves merges running where nothing waits for them any more.
        """
        with mapped():
            if self._writer is not None:
                writer, self._writer = self._writer, None
                self._added_upto = self.highest_seq
                writer.wait_merging_threads()
        give_back()

    # -- searching, from any thread -------------------------------------------------------------
    def rarity(self, terms: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, float]:
        """Return each term's inverse document frequency as BM25 weighs it: highest if unknown,
        but an unknown `optional` term is left out."""
        with mapped():
            searcher = self._index.searcher()
            total = searcher.num_docs
            frequencies = {
                term: min(searcher.doc_freq(_WORDS, term), total) for term in (*terms, *optional)
            }
        return {
            term: math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
            for term, frequency in frequencies.items()
            if frequency or term in terms
        }

    def known(self, terms: Collection[str]) -> list[str]:
        """Return those of the terms that some passage has, of whatever collection."""
        with mapped():
            searcher = self._index.searcher()
            return [term for term in terms if searcher.doc_freq(_WORDS, term)]

    def count(self, where: Where) -> int:
        """Return about how many passages are in scope; what was deleted may count for a while."""
        with mapped():
            return _count(self._index.searcher(), where)

    def search(
        self, where: Where, terms: Mapping[str, float], *, full_score: float, limit: int
    ) -> "Candidates":
        """Return the best passages in scope that hold any of the terms, best first; each term
        counts as much as its weight says.

        Their `lexical` is BM25 divided by `full_score`.
        """
        if not terms or not (where.ranges or where.has_others or where.listed):
            return _candidates_type().of([])
        with mapped():
            wanted = [(Occur.Should, self._word(term, weight)) for term, weight in terms.items()]
            if self._is_nearly_all(where):
                found = self._fetch_checked(wanted, where, full_score, limit, asked=SPARE * limit)
                if found is not None:
                    return found
            if len(where.listed) > LISTED_IN_QUERY:
                for turn in range(LISTED_ROUNDS):
                    asked = limit * LISTED_SPARE ** (turn + 1)
                    found = self._fetch_checked(wanted, where, full_score, limit, asked=asked)
                    if found is not None:
                        return found
            clauses = [
                (Occur.Must, Query.boolean_query(wanted)),
                *scope_clauses(self._schema, where),
            ]
            return self._fetch(clauses, full_score, limit)

    def around(
        self, where: Where, places: Sequence[tuple[int, int]], *, limit: int
    ) -> "Candidates":
        """Return first passages in scope at (branch, position), unscored, by seq.

        A place names one event of one thread, so that what is out of scope crowds nothing out
        before it is looked at.
        """
        if not places:
            return _candidates_type().of([])
        with mapped():
            wanted = Query.boolean_query(
                [(Occur.Should, term_of(self._schema, "place", _place(*place))) for place in places]
            )
            clauses = [
                (Occur.Must, Query.const_score_query(query, 0.0))
                for query in (wanted, term_of(self._schema, "ordinal", 0))
            ]
            searcher = self._index.searcher()
            hits = searcher.search(Query.boolean_query(clauses), limit=limit, count=False).hits
            return self._in_scope(searcher, hits, where, 1.0).by_key()

    def passages(self, keys: Sequence[int]) -> "Candidates":
        """Return the passages that the index holds, unscored, by key: seq << ORDINAL_BITS |
        ordinal."""
        if not keys:
            return _candidates_type().of([])
        with mapped():
            # One term each: a set of as many takes more than twice the time.
            wanted = Query.boolean_query(
                [(Occur.Should, term_of(self._schema, "key", key)) for key in keys]
            )
            clauses = [(Occur.Must, Query.const_score_query(wanted, 0.0))]
            return self._fetch(clauses, 1.0, len(keys)).by_key()

    def passage_counts(self, low_seq: int, high_seq: int) -> Counter[int]:
        """Return how many passages the index has of each event in a span of seqs."""
        with mapped():
            wanted = Query.range_query(
                self._schema, "seq", tantivy.FieldType.Integer, low_seq, high_seq
            )
            searcher = self._index.searcher()
            hits = searcher.search(wanted, limit=max(1, searcher.num_docs), count=False).hits
            places = [place for _score, place in hits]
            seqs = searcher.fast_field_values("seq", places)
            return Counter(seq for seq in seqs if isinstance(seq, int))

    def holders(self, where: Where, asked: Held, *, before: int, limit: int) -> Holders:
        """Return the newest events in scope and below a seq that may hold a text."""
        with mapped():
            clauses = [
                *held_clauses(self._schema, asked, before=before),
                *scope_clauses(self._schema, where),
            ]
            return newest_holders(self._index.searcher(), clauses, limit=limit)

    # -- upkeep ---------------------------------------------------------------------------------
    @property
    def document_count(self) -> int:
        with mapped():
            return int(self._index.searcher().num_docs)

    @property
    def size_bytes(self) -> int:
        return folder_bytes(self.folder)

    def _highest_seq(self) -> int:
        """Return the highest seq that has a document, 0 for none."""
        with mapped():
            searcher = self._index.searcher()
            hits = searcher.search(
                Query.all_query(), limit=1, count=False, order_by_field="seq"
            ).hits
            return int(hits[0][0]) if hits else 0

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(WRITER_HEAP_BYTES, 1)
        return self._writer

    def _word(self, term: str, weight: float) -> Query:
        query = Query.term_query(self._schema, _WORDS, term, "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _is_nearly_all(self, where: Where) -> bool:
        """Tell whether little of the index can be out of scope; what was deleted counts too."""
        if where.since_s is not None or where.until_s is not None:
            return False
        searcher = self._index.searcher()
        return _count(searcher, where) > NEARLY_ALL * int(searcher.num_docs)

    def _fetch_checked(
        self,
        words: list[tuple[Occur, Query]],
        where: Where,
        full_score: float,
        limit: int,
        *,
        asked: float,
    ) -> "Candidates | None":
        """Return the best passages in scope, the scope looked at afterwards; None: too few.

        For a query of nothing but words the engine skips what cannot be among the best: at a
        million passages 2.4 ms, where with the scope as a part of the query it takes 7.1.
        """
        searcher = self._index.searcher()
        most = int(asked)
        hits = searcher.search(Query.boolean_query(words), limit=most, count=False).hits
        found = _candidates_type().of([])
        step = int(limit * NEARLY_LIMIT) + 1
        for at in range(0, len(hits), step):
            found = found.joined(self._in_scope(searcher, hits[at : at + step], where, full_score))
            # Those that are left score no more than the last; equal ones are told apart by seq.
            if len(found) > limit and found.lexical[-1] < found.lexical[limit - 1]:
                break
        if len(found) < limit and len(hits) == most:
            return None
        return found.best(limit)

    def _fetch(
        self, clauses: list[tuple[Occur, Query]], full_score: float, limit: int
    ) -> "Candidates":
        searcher = self._index.searcher()
        hits = searcher.search(Query.boolean_query(clauses), limit=limit, count=False).hits
        return self._candidates(searcher, hits, full_score).best(limit)

    def _in_scope(
        self,
        searcher: tantivy.Searcher,
        hits: Sequence[tuple[Any, Any]],
        where: Where,
        full_score: float,
    ) -> "Candidates":
        """Return what of the hits is in scope, in their order."""
        places = [place for _score, place in hits]
        owners: Sequence[Any] = searcher.fast_field_values("collection_id", places)
        return self._candidates(searcher, hits, full_score).in_scope(where, owners)

    @staticmethod
    def _candidates(
        searcher: tantivy.Searcher, hits: Sequence[tuple[Any, Any]], full_score: float
    ) -> "Candidates":
        """Return what this searcher hit, in the order of the hits."""
        places = [place for _score, place in hits]
        numbers: list[Sequence[Any]] = [
            searcher.fast_field_values(name, places) for name in NUMBERS
        ]
        return _candidates_type().of_columns(
            numbers, [score / full_score for score, _place in hits]
        )


def _count(searcher: tantivy.Searcher, where: Where) -> int:
    """Return how many passages its scope leaves of an index at most, listed threads left out."""
    if not where.has_others:
        return sum(searcher.doc_freq("branch_id", span.branch_id) for span in where.ranges)
    count = sum(searcher.doc_freq("collection_id", one) for one in where.reach)
    if where.kinds:
        count = min(count, sum(searcher.doc_freq("kind", kind) for kind in where.kinds))
    return count


def _candidates_type() -> "type[Candidates]":
    # Here and not at the start: numpy costs 11 MB, owed by the first search only.
    from library.retrieval.candidates import Candidates

    return Candidates


def _place(branch_id: int, position: int) -> int:
    """Return branch and position as one term: to look one up costs a tenth of a set of each."""
    return branch_id << 32 | position + 1


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(_WORDS, tokenizer_name=_WORDS, index_option="freq")
    builder.add_text_field(RUNS, tokenizer_name=RUNS, index_option="basic")
    for name in _KEYS:
        builder.add_integer_field(name, indexed=True, fast=True)
    builder.add_integer_field("place", indexed=True)
    builder.add_integer_field("key", indexed=True)
    for name in _NUMBERS:
        builder.add_integer_field(name, fast=True)
    return builder.build()
