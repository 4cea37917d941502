"""The passages that a search finds, in columns: what is done to hundreds is done to all at once.

A search handles four hundred of them, five times over: it checks their scope, adds how like the
question they are, joins what was found by words with what was found by likeness, and ranks. An
object for each took a third of its time. `Candidate` is one of them, for who looks at few.

Arithmetic alone. Import this module when there is something to hold: numpy costs 11 MB.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from library.passages import ORDINAL_BITS
from library.records import Where
from library.retrieval.ranking import NUMBERS, Candidate
from library.retrieval.scope import Spans, is_on
from library.vectors.matrix import on_ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_ROW_OF = {name: at for at, name in enumerate(NUMBERS)}


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Some passages, in no order of their own."""

    numbers: Ints
    """(len(NUMBERS), count): a row for each field of `Candidate` that is in `NUMBERS`."""
    lexical: Floats
    cosine: Floats

    @classmethod
    def of(cls, some: Sequence[Candidate]) -> Self:
        columns = [*zip(*some, strict=True)] or [()] * len(Candidate._fields)
        return cls(
            np.array(columns[:-2], np.int64),
            np.array(columns[-2], np.float64),
            np.array(columns[-1], np.float64),
        )

    @classmethod
    def of_columns(cls, numbers: Sequence[Sequence[int]], lexical: Sequence[float]) -> Self:
        """Return what an index found: `numbers` has a list for each of `NUMBERS`."""
        scores = np.array(lexical, np.float64)
        return cls(np.array(numbers, np.int64), scores, np.zeros(len(scores)))

    def __len__(self) -> int:
        return len(self.lexical)

    def __getitem__(self, name: str) -> Ints:
        """Return the field of that name of all of them."""
        column: Ints = self.numbers[_ROW_OF[name]]
        return column

    def __iter__(self) -> Iterator[Candidate]:
        columns = (*self.numbers.tolist(), self.lexical.tolist(), self.cosine.tolist())
        return map(Candidate._make, zip(*columns, strict=True))

    @property
    def keys(self) -> Ints:
        """What names each of them, seq before ordinal."""
        keys: Ints = self["seq"] << ORDINAL_BITS | self["ordinal"]
        return keys

    @property
    def mean_chars(self) -> float:
        """How long they are; 0 for none."""
        return float((self["stop"] - self["start"]).sum()) / max(1, len(self))

    @property
    def has_cosines(self) -> bool:
        return bool(self.cosine.any())

    def variety(self) -> int:
        """Return how many events they are of, where copies of a text count once: one huge event, or
        a question that was asked two hundred times, must not pass for enough."""
        return min(len({*self["seq"].tolist()}), len({*self["fingerprint"].tolist()}))

    # -- fewer, or more --------------------------------------------------------------------------
    def take(self, places: Ints | Mask) -> Self:
        """Return those at some places, in that order, or those that a mask says."""
        return replace(
            self,
            numbers=self.numbers[:, places],
            lexical=self.lexical[places],
            cosine=self.cosine[places],
        )

    def joined(self, *others: "Candidates") -> Self:
        return replace(
            self,
            numbers=np.concatenate([self.numbers, *(one.numbers for one in others)], axis=1),
            lexical=np.concatenate([self.lexical, *(one.lexical for one in others)]),
            cosine=np.concatenate([self.cosine, *(one.cosine for one in others)]),
        )

    def unique(self) -> Self:
        """Return each passage once, by key: of several the last."""
        _, at = np.unique(self.keys[::-1], return_index=True)
        return self.take(len(self) - 1 - at)

    def with_cosines(self, cosines: NDArray[np.float32] | Floats) -> Self:
        """Return them with how like the question each is; NaN: that is not known."""
        return replace(self, cosine=np.nan_to_num(cosines.astype(np.float64)))

    def best(self, count: int) -> Self:
        """Return those that hold the most of the question's words, best first, of equals the newer.

        The engine breaks ties by its own document numbers, which a rebuild changes.
        """
        order = np.lexsort((self["ordinal"], -self["seq"], -self.lexical))
        return self.take(order[:count])

    def strongest(self, count: int, *, by_words: float, by_row: float) -> Self:
        """Return those of the highest score, of equals the older."""
        score = by_words * self.lexical + by_row * self.cosine
        return self.take(np.lexsort((self.keys, -score))[:count])

    def by_key(self) -> Self:
        return self.take(np.argsort(self.keys))

    # -- what may be found -----------------------------------------------------------------------
    def in_scope(self, where: Where, owners: Sequence[int]) -> Self:
        """Return those in scope, in their order; `owners` has the collection of each."""
        collections = np.array(owners, np.int64)
        mask: Mask = collections == where.collection_id
        if where.team_ids:
            mask |= np.isin(collections, [*where.team_ids])
        if where.exclude_seqs:
            mask &= ~np.isin(self["seq"], [*where.exclude_seqs])
        if where.since_s is not None:
            mask &= self["at_s"] >= where.since_s
        if where.until_s is not None:
            mask &= self["at_s"] <= where.until_s
        threads = self["thread_no"]
        is_wanted: Mask = np.full(len(self), where.has_others)
        if where.listed:
            is_wanted ^= np.isin(threads, [*where.listed])
        if where.kinds:
            is_wanted &= np.isin(self["kind"], [*where.kinds])
        if where.thread_no is not None:
            is_own = threads == where.thread_no
            is_wanted[is_own] = False
            if where.ranges:
                is_wanted |= is_own & on_ranges(where.ranges, self["branch_id"], self["position"])
        return self.take(mask & is_wanted)

    def on_live(self, own_thread: int | None, paths: Mapping[int, Spans]) -> Self:
        """Return those that stand on the live branch of their thread; the own one is in scope."""
        if not paths:
            return self
        places = (self[name].tolist() for name in ("thread_no", "branch_id", "position"))
        is_live = [
            thread_no == own_thread or is_on(paths[thread_no], branch_id, position)
            for thread_no, branch_id, position in zip(*places, strict=True)
        ]
        return self if all(is_live) else self.take(np.array(is_live, np.bool_))

    def are_of(self, keys: Ints) -> Mask:
        """Tell of each whether it is one of those that some keys name."""
        mask: Mask = np.isin(self.keys, keys)
        return mask

    def threads(self) -> set[int]:
        return {*self["thread_no"].tolist()}
