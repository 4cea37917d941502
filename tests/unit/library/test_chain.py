"""Chain digests (library/chain.py)."""

from hypothesis import given
from hypothesis import strategies as st

from library.chain import ROOT, chains, extend
from library.records import DIGEST_BYTES

DIGESTS = st.lists(st.binary(min_size=16, max_size=16), max_size=20)


@given(DIGESTS, DIGESTS)
def test_chains_are_equal_exactly_as_far_as_the_transcripts_are(
    one: list[bytes], two: list[bytes]
) -> None:
    for index, (left, right) in enumerate(zip(chains(one), chains(two), strict=False)):
        assert (left == right) == (one[: index + 1] == two[: index + 1])


@given(DIGESTS, DIGESTS)
def test_a_chain_goes_on_from_any_of_its_links(before: list[bytes], after: list[bytes]) -> None:
    whole = chains([*before, *after])
    last = whole[len(before) - 1] if before else ROOT
    assert chains(after, after=last) == whole[len(before) :]
    assert all(len(chain) == DIGEST_BYTES for chain in whole)
    if after:
        assert extend(last, after[0]) == whole[len(before)]
