"""The scope of a search as clauses of a tantivy query: no score, nothing but a limit to what may be
found. Beside index.py, and like it a seam to tantivy."""

from collections.abc import Collection

import tantivy
from tantivy import Occur, Query

from library.records import Where

_LOWEST, _HIGHEST = -(2**62), 2**62

Clause = tuple[Occur, Query]


def term(schema: tantivy.Schema, field: str, value: int) -> Query:
    return Query.term_query(schema, field, value)


def terms_of(schema: tantivy.Schema, field: str, values: Collection[int]) -> Query:
    return Query.term_set_query(schema, field, sorted(values))


def between(schema: tantivy.Schema, field: str, low: int | None, high: int | None) -> Query:
    """Return what matches from `low` to `high`, both included; None: without end."""
    lowest = _LOWEST if low is None else low
    highest = _HIGHEST if high is None else high
    return Query.range_query(schema, field, tantivy.FieldType.Integer, lowest, highest)


def scope_clauses(schema: tantivy.Schema, where: Where) -> list[Clause]:
    """Return the clauses that keep a query inside its scope, whatever else it asks."""
    allowed = [
        Query.boolean_query(
            [
                (Occur.Must, term(schema, "branch_id", span.branch_id)),
                (Occur.Must, between(schema, "position", span.low, span.high)),
            ]
        )
        for span in where.ranges
    ]
    if where.has_others or where.listed:
        allowed.append(Query.boolean_query(_others(schema, where)))
    queries = [
        terms_of(schema, "collection_id", where.reach)
        if where.team_ids
        else term(schema, "collection_id", where.collection_id),
        Query.boolean_query([(Occur.Should, query) for query in allowed]),
    ]
    if where.since_s is not None or where.until_s is not None:
        queries.append(between(schema, "at_s", where.since_s, where.until_s))
    clauses = [(Occur.Must, Query.const_score_query(query, 0.0)) for query in queries]
    if where.exclude_seqs:
        clauses.append((Occur.MustNot, terms_of(schema, "seq", where.exclude_seqs)))
    return clauses


def _others(schema: tantivy.Schema, where: Where) -> list[Clause]:
    """Return the clauses for what may be found of threads that do not ask."""
    clauses = [(Occur.Must, Query.all_query())]
    if where.listed:
        listed = terms_of(schema, "thread_no", where.listed)
        clauses.append((Occur.MustNot if where.has_others else Occur.Must, listed))
    if where.kinds:
        clauses.append((Occur.Must, terms_of(schema, "kind", where.kinds)))
    if where.thread_no is not None:
        clauses.append((Occur.MustNot, term(schema, "thread_no", where.thread_no)))
    return clauses
