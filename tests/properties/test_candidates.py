"""Many passages in columns are told from others as one passage is."""

from hypothesis import given, settings
from hypothesis import strategies as st

from library.records import Range, Where
from library.retrieval.candidates import Candidates
from library.retrieval.ranking import Candidate
from library.retrieval.scope import is_in

SMALL, TWO = st.integers(0, 3), st.integers(1, 2)


def passage(seq: int, thread_no: int, branch_id: int, position: int, at_s: int) -> Candidate:
    """Return a passage of one of two kinds."""
    return Candidate(
        *(seq, 0, 1, 0, 9, thread_no, branch_id, position, at_s), role=0, fingerprint=seq,
        speaker=0, kind=seq % 2,
    )  # fmt: skip


passages = st.builds(passage, st.integers(1, 12), TWO, TWO, SMALL, SMALL)
ranges = st.lists(st.builds(Range, TWO, SMALL, SMALL), max_size=3, unique_by=lambda s: s.branch_id)
some = st.frozensets(TWO)


@st.composite
def scopes(draw: st.DrawFn) -> Where:
    thread_no = draw(st.none() | TWO)
    return Where(
        collection_id=1,
        thread_no=thread_no,
        ranges=() if thread_no is None else tuple(draw(ranges)),
        has_others=draw(st.booleans()),
        exclude_seqs=draw(st.frozensets(st.integers(1, 12), max_size=3)),
        listed=draw(some),
        kinds=draw(st.frozensets(st.integers(0, 1), max_size=1)),
        since_s=draw(st.none() | SMALL),
        until_s=draw(st.none() | SMALL),
        team_ids=draw(some),
    )


@settings(max_examples=200)
@given(st.lists(st.tuples(passages, TWO), min_size=5, max_size=20), scopes())
def test_what_is_in_scope_in_columns_is_in_scope_one_by_one(
    stored: list[tuple[Candidate, int]], where: Where
) -> None:
    """DESIGN 1.8: nothing crosses a collection; each passage has the collection it is of."""
    spans = {span.branch_id: span for span in where.ranges}
    owners = [owner for _, owner in stored]
    found = Candidates.of([one for one, _ in stored]).in_scope(where, owners)
    wanted = [one for one, owner in stored if owner in where.reach and is_in(where, spans, one)]
    assert list(found) == wanted
