"""Searching rows by their signs first finds what looking at every row finds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from library.passages import ORDINAL_BITS
from library.records import EventRows, Range, Where
from library.vectors import matrix as module
from library.vectors.matrices import cosines, keys_of, nearest
from library.vectors.matrix import Matrix

DIM = 64
Key = tuple[int, int]
"""(seq, ordinal) of a passage."""


def row(number: int) -> NDArray[np.int8]:
    return np.random.default_rng(number).integers(-127, 128, DIM).astype(np.int8)


def searched(
    matrix: Matrix, question: NDArray[np.int8], where: Where, *, limit: int
) -> list[tuple[Key, float]]:
    keys, values = matrix.search(question.tobytes(), where, limit=limit)
    return list(zip(map(key_of, keys.tolist()), values.tolist(), strict=True))


def key_of(packed: int) -> Key:
    return packed >> ORDINAL_BITS, packed & (1 << ORDINAL_BITS) - 1


@st.composite
def events(draw: st.DrawFn) -> list[EventRows]:
    """Events of three threads with three branches each, some of them stored twice."""
    seqs = draw(st.lists(st.integers(1, 60), min_size=1, max_size=60))
    found = []
    for at, seq in enumerate(seqs):
        thread_no = seq % 3
        rows = b"".join(row(seq * 1_000 + at * 10 + n).tobytes() for n in range(1 + seq % 4))
        found.append(EventRows(seq, thread_no, thread_no * 3 + seq % 7 % 3, seq // 3, rows))
    return found


ranges = st.builds(Range, st.integers(0, 10), st.integers(0, 20), st.integers(0, 20))


@st.composite
def scopes(draw: st.DrawFn) -> Where:
    thread_no = draw(st.none() | st.integers(0, 4))
    own = st.just(()) if thread_no is None else st.lists(ranges, max_size=4, unique_by=_branch)
    return Where(
        collection_id=1,
        thread_no=thread_no,
        ranges=tuple(draw(own)),
        has_others=draw(st.booleans()),
        exclude_seqs=draw(st.frozensets(st.integers(1, 60), max_size=20)),
    )


def _branch(span: Range) -> int:
    return span.branch_id


def is_in(where: Where, each: EventRows) -> bool:
    """Say the scope as DESIGN.md has it, once more and slowly."""
    if each.seq in where.exclude_seqs:
        return False
    if where.thread_no is None or each.thread_no != where.thread_no:
        return where.has_others
    return any(
        span.branch_id == each.branch_id and span.low <= each.position <= span.high
        for span in where.ranges
    )


def brute(
    stored: Sequence[EventRows], question: NDArray[np.int8], where: Where
) -> dict[Key, float]:
    newest = {each.seq: each for each in stored}
    found: dict[Key, float] = {}
    asked = question.astype(np.float64)
    for each in newest.values():
        if is_in(where, each):
            own = np.frombuffer(each.rows, np.int8).reshape(-1, DIM).astype(np.float64)
            values = own @ asked / np.linalg.norm(own, axis=1) / np.linalg.norm(asked)
            found |= {(each.seq, at): float(value) for at, value in enumerate(values)}
    return found


@settings(max_examples=200, deadline=None)
@given(events(), scopes(), st.data())
def test_a_search_equals_looking_at_every_row_in_scope(
    stored: list[EventRows], where: Where, data: st.DataObject
) -> None:
    question = row(data.draw(st.integers(0, 9)))
    # Tiny blocks, so that events span them and blocks come that nothing of the scope is in.
    with _sizes(BLOCK_ROWS=data.draw(st.sampled_from([4, 7, 1_024]))):
        matrix = Matrix(DIM)
        at = data.draw(st.integers(0, len(stored)))
        for part in (stored[:at], stored[at:]):
            for each in part if data.draw(st.booleans()) else []:
                matrix.add([each])
            matrix.add(part)
        expected = brute(stored, question, where)
        found = dict(searched(matrix, question, where, limit=10_000))
        everything = brute(stored, question, Where(1, None, (), True, frozenset()))
        known = matrix.cosines(question.tobytes(), keys_of([*everything, (99, 0)]))
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - value) < 1e-3 for key, value in expected.items())
    assert known[:-1] == pytest.approx([*everything.values()], abs=1e-3)
    assert np.isnan(known[-1])
    assert len(matrix) == len(everything)


@settings(deadline=None)
@given(events(), scopes(), st.integers(1, 12), st.integers(0, 9))
def test_a_cut_search_returns_the_first_of_a_whole_one_out_of_scope_or_not(
    stored: list[EventRows], where: Where, limit: int, seed: int
) -> None:
    """CASES J10: what is excluded uses up no candidate."""
    question = row(seed)
    matrix = Matrix(DIM)
    for each in stored:
        matrix.add([each])
    whole = searched(matrix, question, where, limit=10_000)
    assert searched(matrix, question, where, limit=limit) == whole[:limit]
    assert [value for _, value in whole] == sorted((value for _, value in whole), reverse=True)


@settings(deadline=None)
@given(st.permutations(range(12)), scopes())
def test_the_order_in_which_rows_came_changes_nothing(order: list[int], where: Where) -> None:
    stored = [
        EventRows(seq, seq % 3, seq % 3 * 3, seq // 3, row(seq).tobytes()) for seq in range(1, 13)
    ]
    question = row(5)
    found = []
    for some in (stored, [stored[at] for at in order]):
        with _sizes(BLOCK_ROWS=5, LEAST_RESCORED=4):
            matrix = Matrix(DIM)
            for each in some:
                matrix.add([each])
            found.append(searched(matrix, question, where, limit=3))
    assert found[0] == found[1]


def test_rows_of_several_collections_are_compared_with_one_another() -> None:
    asked = row(1)
    matrices = [Matrix(DIM), Matrix(DIM)]
    for seq in range(1, 9):
        near = asked.copy()
        near[:seq] *= -1
        matrices[seq % 2].add([EventRows(seq, 1, 1, seq, near.tobytes())])
    everywhere = Where(1, None, (), True, frozenset())
    found = nearest(matrices, asked.tobytes(), everywhere, limit=5)
    likeness = cosines(matrices, asked.tobytes(), keys_of([(seq, 0) for seq in (*range(1, 9), 99)]))
    assert [key_of(key)[0] for key in found.tolist()] == [*np.argsort(-likeness[:8])[:5] + 1]
    assert np.flatnonzero(np.isnan(likeness)).tolist() == [8]


def test_a_crowd_of_equals_hides_nothing_that_is_nearer() -> None:
    question = row(1)
    near, far = question.copy(), -question
    near[:8] *= -1
    crowd = question.copy()
    crowd[:16] *= -1
    matrix = Matrix(DIM)
    matrix.add([EventRows(1, 1, 1, 0, near.tobytes())])
    matrix.add([EventRows(2, 1, 1, 1, crowd.tobytes() * 5_000)])
    matrix.add([EventRows(3, 1, 1, 2, far.tobytes())])
    where = Where(1, 1, (Range(1, 0, 9),), False, frozenset())
    found = searched(matrix, question, where, limit=3)
    assert [key for key, _ in found] == [(1, 0), (2, 4_999), (2, 4_998)]


def test_what_a_forgotten_thread_had_takes_no_place_from_others() -> None:
    matrix = Matrix(DIM)
    asked = row(1)
    for seq in range(1, 40):
        matrix.add([EventRows(seq, seq % 2, seq % 2, seq, asked.tobytes())])
    matrix.forget_threads([1])
    everywhere = Where(1, None, (), True, frozenset())
    found = searched(matrix, asked, everywhere, limit=3)
    assert [seq for (seq, _), _ in found] == [38, 36, 34]
    assert len(matrix) == 19


def test_rows_of_another_size_are_left_out() -> None:
    matrix = Matrix(DIM)
    matrix.add([EventRows(1, 1, 1, 0, b"\1" * (DIM - 1)), EventRows(2, 1, 1, 1, b"\1" * DIM)])
    assert len(matrix) == 1


def test_rows_that_come_while_a_search_runs_are_no_fault_of_it() -> None:
    """A replayed agent session met it: what is excluded was embedded between two looks."""
    matrix = Matrix(DIM)
    asked = row(1)
    matrix.add([EventRows(seq, 1, 1, seq, asked.tobytes()) for seq in range(1, 9)])

    class Growing(frozenset[int]):
        """What is excluded; to be read is the moment at which its rows come."""

        def __iter__(self) -> Iterator[int]:
            matrix.add([EventRows(seq, 1, 1, seq, asked.tobytes()) for seq in self.late])
            return super().__iter__()

        late = (20, 21)

    excluded = Growing({1, 2, 20, 21})
    found = searched(matrix, asked, Where(1, None, (), True, excluded), limit=99)
    assert sorted(seq for (seq, _), _ in found) == [3, 4, 5, 6, 7, 8]


@contextmanager
def _sizes(**sizes: int) -> Iterator[None]:
    """Set sizes of the module for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(module, name, size)
        yield
