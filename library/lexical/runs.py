"""The part of the full-text index that knows exact words: its field, and how it is asked.

A text that must hold a literal has a run with the literal somewhere in it, so the index's list of
distinct runs is gone through for those: 7 ms where 30,000 are known, 120 where half a million are.
Rejected: an index of three-letter pieces, which finds them at once and is several times as large
as all the rest.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tantivy
from tantivy import Occur, Query

RUNS = "runs"
SPACES = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


@dataclass(frozen=True, slots=True)
class Held:
    """What a passage has to hold."""

    any_of: tuple[str, ...] = ()
    """Literals of which one must be there; () for anything."""
    near: tuple[tuple[str, int], ...] = ()
    """Words that must each be there, with at most so many (0 to 2) slips."""


class Holders(NamedTuple):
    """Where a text may be."""

    seqs: list[int]
    """Events, newest first."""
    passage_count: int
    """Of all that may hold it, these and older ones."""


def newest_holders(
    searcher: tantivy.Searcher, clauses: list[tuple[Occur, Query]], *, limit: int
) -> Holders:
    """Return the events of the newest `limit` passages that a query finds."""
    found = searcher.search(Query.boolean_query(clauses), limit=limit, order_by_field="seq")
    seqs = dict.fromkeys(int(seq) for seq, _place in found.hits)
    return Holders([*seqs], int(found.count))  # type: ignore[attr-defined]


def held_clauses(schema: tantivy.Schema, asked: Held, *, before: int) -> list[tuple[Occur, Query]]:
    """Return the clauses of a query for passages of events below a seq that may hold a text."""
    clauses: list[tuple[Occur, Query]] = [
        (
            Occur.Must,
            Query.range_query(schema, "seq", tantivy.FieldType.Integer, 0, max(0, before - 1)),
        )
    ]
    if asked.any_of:
        clauses.append((Occur.Must, _any([_containing(schema, one) for one in asked.any_of])))
    clauses += [(Occur.Must, _near(schema, word, slips)) for word, slips in asked.near]
    return clauses


def _containing(schema: tantivy.Schema, literal: str) -> Query:
    return Query.regex_query(schema, RUNS, f".*{re.escape(literal)}.*")


def _near(schema: tantivy.Schema, word: str, slips: int) -> Query:
    if slips == 0:
        return Query.term_query(schema, RUNS, word, "basic")
    return Query.fuzzy_term_query(schema, RUNS, word, slips, True, False)


def _any(queries: Sequence[Any]) -> Query:
    return Query.boolean_query([(Occur.Should, one) for one in queries])
