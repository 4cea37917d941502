"""One collection's rows of vectors in memory, searched whole. The seam to numpy.

A row stands for one passage: `dim` int8 numbers, the signs of them as one bit each, and what its
scope needs. A search first marks the rows in scope, then counts in how many signs each of them
differs from the question, and computes the true cosine of the nearest by that count only. Signs
are an eighth of the bytes and need no multiplication; what they get wrong the second look mends.

* Scope, exclusions and deletions are marked before anything is cut off, so that what must not be
  found can never use up the places of what may.
* Rows lie in blocks that never move: there is no moment with two copies of a large array, and
  threads read on while the event loop adds. Words of signs lie one below the other (all first
  words of a block, then all second ones), because a long run of equal operations on one column is
  what numpy does at the speed of memory.
* What comes out depends on the rows, and not on the order in which they came.

Measured on one core of an AMD EPYC: 0.65 ms to compare 100,000 rows of 384 numbers, 7 ms for a
million (faiss's binary index: 0.62 and 5.2).

Rejected: float32 rows in one array (24 ms at 100,000), dictionaries from key to place (200 bytes a
passage where the rest is 450), and an index over the rows: faiss's inverted file takes 10 s to
build for 100,000 rows, HNSW two minutes, to answer in 0.5 ms; to scan takes a few tenths more,
begins at once, and knows scope and deletions. At a million rows the scan is 8 of a search's 45 ms.

Import this module when there is a row to keep: numpy costs 11 MB.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from library.passages import ORDINAL_BITS
from library.records import EventRows, Range, Where

BLOCK_ROWS = 32_768
"""What is made of a block's rows on the way, a word for each, stays in the processor's cache and
below `runtime.allocator.MMAP_BYTES`: memory that comes from the system anew for every operation
makes a search take three times as long."""
LEAST_RESCORED, RESCORED_SHARE = 1_024, 256
"""Rows whose cosine is computed: one in so many of those in scope, at least the other number. Of
the ten nearest to a question these hold all ten among 12,226 passages of BEAM and LoCoMo, and 9.6
and 9.7 among 100,000 and a million copies of passages that differ by noise alone (of a million
with 1,024 only: 8.2)."""
EQUALS_MOST = 256
"""Of rows as far as the last one that is wanted."""
WIDENED_NUMBERS = 65_536
"""Made floats at once, a quarter of a megabyte: below the bound of the allocator, see above."""
FEW = 16
"""Where at most one in so many rows of a block is in scope, those are picked out first."""
_WORD_BITS = 64
_NOBODY = -1
"""Thread of a row that was replaced or deleted."""
_LEAST_LENGTH = 1e-9
"""Instead of zero, so that a row of zeros is like nothing."""

Ints = NDArray[np.int64]
Cosines = NDArray[np.float32]


class Matrix:
    """See the module's docstring. One writer at a time; searches may run in several threads."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._blocks: list[_Block] = []
        self._highest_seq = -1
        self._dead_count = 0

    def __len__(self) -> int:
        return sum(block.count for block in self._blocks) - self._dead_count

    @property
    def size_bytes(self) -> int:
        """What the rows take, without the room kept for more, which no memory stands behind."""
        return sum(block.size_bytes for block in self._blocks)

    # -- writing --------------------------------------------------------------------------------
    def add(self, events: Sequence[EventRows]) -> None:
        """Add the rows of events; those of an event that is there already are replaced."""
        newest = {each.seq: each for each in events}
        # Rows of another size are no rows of this embedder: `verify` finds and names them.
        events = [each for each in newest.values() if each.rows and not len(each.rows) % self._dim]
        if not events:
            return
        known = [each.seq for each in events if each.seq <= self._highest_seq]
        if known:
            self._kill(known)
        self._highest_seq = max(self._highest_seq, *(each.seq for each in events))
        rows = np.frombuffer(b"".join([each.rows for each in events]), np.int8)
        rows = rows.reshape(-1, self._dim)
        counts = np.array([len(each.rows) // self._dim for each in events])
        heads = np.array([[*each[:4], *each[5:]] for each in events], np.int64)
        heads = heads.repeat(counts, axis=0)
        ordinals = np.arange(len(rows)) - (counts.cumsum() - counts).repeat(counts)
        at = 0
        while at < len(rows):
            is_full = not self._blocks or self._blocks[-1].count == BLOCK_ROWS
            block = _Block(self._dim) if is_full else self._blocks[-1]
            stop = min(len(rows), at + BLOCK_ROWS - block.count)
            block.add(rows[at:stop], heads[at:stop], ordinals[at:stop])
            if is_full:  # Afterwards, so that a block that is searched is never empty.
                self._blocks.append(block)
            at = stop

    def forget_threads(self, thread_nos: Collection[int]) -> None:
        """Never find the rows of some threads again."""
        gone = np.fromiter(thread_nos, np.int64)
        for block in self._blocks:
            self._dead_count += block.kill(np.isin(block.threads[: block.count], gone))

    def forget_events(self, seqs: Iterable[int]) -> None:
        """Never find the rows of some events again."""
        self._kill(seqs)

    def _kill(self, seqs: Iterable[int]) -> None:
        wanted = np.unique(np.fromiter(seqs, np.int64))
        for block in self._blocks:
            self._dead_count += block.kill(block.places_of(wanted))

    # -- searching, from any thread -------------------------------------------------------------
    def search(self, question: bytes, where: Where, *, limit: int) -> tuple[Ints, Cosines]:
        """Return the keys (seq << ORDINAL_BITS | ordinal) of the passages in scope that are most
        like the question, best first, and their cosines.

        Exact while at most `LEAST_RESCORED` rows are in scope. Cost: one look at every row of the
        collection.
        """
        asked = np.frombuffer(question, np.int8)
        blocks = list(self._blocks)
        masks = [block.in_scope(where) for block in blocks]
        count = sum(map(int, map(np.count_nonzero, masks)))
        nearest = _Nearest(
            _signs(asked[np.newaxis])[:, 0], wanted=max(LEAST_RESCORED, count // RESCORED_SHARE)
        )
        for number, (block, mask) in enumerate(zip(blocks, masks, strict=True)):
            nearest.look_at(block, mask, first_place=number * BLOCK_ROWS)
        places = nearest.places()
        # Places rise, so those of a block stand together.
        bounds = np.searchsorted(places, np.arange(len(blocks) + 1) * BLOCK_ROWS)
        pieces = [
            (block, places[low:high] - number * BLOCK_ROWS)
            for number, (block, low, high) in enumerate(
                zip(blocks, bounds, bounds[1:], strict=False)
            )
            if low < high
        ]
        if not pieces:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        keys = np.concatenate([block.keys[own] for block, own in pieces])
        values = np.concatenate([_cosines(block, own, asked) for block, own in pieces])
        best = np.lexsort((-keys, -values))[:limit]
        return keys[best], values[best]

    def cosines(self, question: bytes, keys: Ints) -> Cosines:
        """Return how like the question each passage is; NaN for one that has no row."""
        asked = np.frombuffer(question, np.int8)
        found: Cosines = np.full(len(keys), np.nan, np.float32)
        for block in list(self._blocks):
            numbers, places = block.find(keys)
            if len(numbers):
                found[numbers] = _cosines(block, places, asked)
        return found


class _Block:
    """Rows that came one after another, column by column."""

    def __init__(self, dim: int) -> None:
        words = -(-dim // _WORD_BITS)
        # `empty` and not `zeros`: no memory stands behind what was never written.
        self.rows: NDArray[np.int8] = np.empty((BLOCK_ROWS, dim), np.int8)
        self.signs: NDArray[np.uint64] = np.empty((words, BLOCK_ROWS), np.uint64)
        self.scales: NDArray[np.float32] = np.empty(BLOCK_ROWS, np.float32)
        """1 / length of a row."""
        self.keys: Ints = np.empty(BLOCK_ROWS, np.int64)
        """seq << ORDINAL_BITS | ordinal."""
        self.threads: NDArray[np.int32] = np.empty(BLOCK_ROWS, np.int32)
        self.branches: NDArray[np.int32] = np.empty(BLOCK_ROWS, np.int32)
        self.positions: NDArray[np.int32] = np.empty(BLOCK_ROWS, np.int32)
        self.times: Ints = np.empty(BLOCK_ROWS, np.int64)
        self.kinds: NDArray[np.int8] = np.empty(BLOCK_ROWS, np.int8)
        self.count = 0
        self._sorted: Ints | None = None
        """Places in order of key, where that is not the order of the places."""
        self._is_rising = True

    @property
    def size_bytes(self) -> int:
        columns = (self.rows, self.signs, self.scales, self.keys)
        places = (self.threads, self.branches, self.positions, self.times, self.kinds)
        return self.count * sum(column.nbytes for column in (*columns, *places)) // BLOCK_ROWS

    def add(self, rows: NDArray[np.int8], heads: Ints, ordinals: Ints) -> None:
        """Add rows; `heads` is (row_count, 6): seq, thread, branch, position, time, kind."""
        span = slice(self.count, self.count + len(rows))
        self.rows[span] = rows
        self.signs[:, span] = _signs(rows)
        wide = rows.astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        self.scales[span] = 1.0 / np.maximum(lengths, _LEAST_LENGTH)
        self.keys[span] = heads[:, 0] << ORDINAL_BITS | ordinals
        self.threads[span] = heads[:, 1]
        self.branches[span] = heads[:, 2]
        self.positions[span] = heads[:, 3]
        self.times[span] = heads[:, 4]
        self.kinds[span] = heads[:, 5]
        own = self.keys[max(0, self.count - 1) : span.stop]
        self._is_rising = self._is_rising and bool(np.all(own[1:] > own[:-1]))
        self._sorted = None
        # Last, so that who reads meanwhile sees whole rows or none.
        self.count = span.stop

    def kill(self, places: NDArray[np.bool_] | Ints) -> int:
        """Mark rows as nobody's; return how many were somebody's."""
        threads = self.threads[: self.count]
        count = int(np.count_nonzero(threads[places] != _NOBODY))
        threads[places] = _NOBODY
        return count

    def places_of(self, seqs: Ints) -> Ints:
        """Return the places of all rows of events, given in order."""
        order, keys = self._order()
        lows = np.searchsorted(keys, seqs << ORDINAL_BITS)
        highs = np.searchsorted(keys, seqs + 1 << ORDINAL_BITS)
        has_some = lows < highs
        spans = map(np.arange, lows[has_some], highs[has_some])
        places: Ints = np.concatenate([np.empty(0, np.int64), *spans])
        return places if order is None else order[places]

    def find(self, wanted: Ints) -> tuple[Ints, Ints]:
        """Return which of some keys have a living row here, and the places of those rows."""
        order, keys = self._order()
        # Of equal keys the last is the newest.
        at = np.searchsorted(keys, wanted, side="right") - 1
        is_known = (at >= 0) & (keys[at] == wanted)
        places = at if order is None else order[at]
        numbers = np.flatnonzero(is_known & (self.threads[places] != _NOBODY))
        return numbers, places[numbers]

    def _order(self) -> tuple[Ints | None, Ints]:
        """Return places in order of key (None: as they are), and the keys in that order."""
        count = self.count
        keys = self.keys[:count]
        if self._is_rising:
            return None, keys
        order = self._sorted
        if order is None or len(order) != count:
            order = self._sorted = np.argsort(keys, kind="stable")
        return order, keys[order]

    def in_scope(self, where: Where) -> NDArray[np.bool_]:
        """Return for each row whether it may be found."""
        count = self.count
        threads = self.threads[:count]
        mask: NDArray[np.bool_] = np.zeros(count, np.bool_)
        if where.has_others or where.listed:
            mask = threads != _NOBODY
            if where.listed:
                is_listed = np.isin(threads, np.fromiter(where.listed, np.int32))
                mask &= ~is_listed if where.has_others else is_listed
            if where.kinds:
                mask &= np.isin(self.kinds[:count], np.fromiter(where.kinds, np.int8))
            if where.thread_no is not None:
                mask &= threads != where.thread_no
        if where.ranges:
            own = np.flatnonzero(threads == where.thread_no)
            mask[own[on_ranges(where.ranges, self.branches[own], self.positions[own])]] = True
        if where.since_s is not None:
            mask &= self.times[:count] >= where.since_s
        if where.until_s is not None:
            mask &= self.times[:count] <= where.until_s
        if where.exclude_seqs:
            places = self.places_of(np.array(sorted(where.exclude_seqs), np.int64))
            # Rows that came since the count was read have places, and are not in the mask.
            mask[places[places < count]] = False
        return mask


class _Nearest:
    """Collects the rows that differ least from a question, block after block."""

    def __init__(self, signs: NDArray[np.uint64], *, wanted: int) -> None:
        self._signs = signs
        self._wanted = wanted
        self._differing = np.empty(BLOCK_ROWS, np.uint64)
        self._counts = np.empty(BLOCK_ROWS, np.uint8)
        self._most = len(signs) * _WORD_BITS
        """Further away than this is of no use any more."""
        self._places: list[Ints] = []
        self._distances: list[NDArray[np.uint16]] = []
        self._count = 0

    def look_at(self, block: _Block, mask: NDArray[np.bool_], *, first_place: int) -> None:
        """Take in the rows of a block that `mask` allows."""
        count = int(np.count_nonzero(mask))
        if not count:
            return
        if count * FEW < len(mask):
            places = np.flatnonzero(mask)
            distances = self._count_differences(block.signs[:, places])
            near = distances <= self._most
            places, distances = places[near], distances[near]
        else:
            distances = self._count_differences(block.signs[:, : len(mask)])
            if self._count == 0 and count > self._wanted:
                self._most = _nth(distances[mask], self._wanted)
            places = np.flatnonzero((distances <= self._most) & mask)
            distances = distances[places]
        self._places.append(places + first_place)
        self._distances.append(distances)
        self._count += len(places)
        if self._count > 3 * self._wanted:
            self._narrow()

    def places(self) -> Ints:
        """Return the places of those that are worth a second look, in order."""
        if self._count > self._wanted:
            self._narrow()
        return np.concatenate([np.empty(0, np.int64), *self._places])

    def _narrow(self) -> None:
        """Drop what is further away than the first `wanted` are.

        Of those that are as far as the last of them some of the newest stay: a line that is logged
        for ever makes a crowd of equals.
        """
        places, distances = np.concatenate(self._places), np.concatenate(self._distances)
        self._most = _nth(distances, self._wanted)
        is_kept = distances < self._most
        is_kept[np.flatnonzero(distances == self._most)[-EQUALS_MOST:]] = True
        self._places, self._distances = [places[is_kept]], [distances[is_kept]]
        self._count = len(self._places[0])

    def _count_differences(self, signs: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return in how many signs each column of `signs` differs from the question."""
        count = signs.shape[1]
        total = np.zeros(count, np.uint16)
        differing, counts = self._differing[:count], self._counts[:count]
        for word, asked in zip(signs, self._signs, strict=True):
            np.bitwise_xor(word, asked, out=differing)
            np.bitwise_count(differing, out=counts)
            total += counts
        return total


def on_ranges(
    ranges: Sequence[Range],
    branches: NDArray[np.int32] | Ints,
    positions: NDArray[np.int32] | Ints,
) -> NDArray[np.bool_]:
    """Tell of each of some places whether one of the ranges, of a branch each, has it."""
    spans = sorted((one.branch_id, one.low, one.high) for one in ranges)
    ids, lows, highs = np.array(spans, np.int64).T
    at = np.minimum(np.searchsorted(ids, branches), len(ids) - 1)
    is_on: NDArray[np.bool_] = ids[at] == branches
    is_on &= (lows[at] <= positions) & (positions <= highs[at])
    return is_on


def _nth(distances: NDArray[np.uint16], count: int) -> int:
    """Return the least distance that at least `count` of them do not exceed."""
    # They are few numbers: to count how often each occurs is quicker than any sorting.
    return int(np.searchsorted(np.bincount(distances).cumsum(), count))


def _signs(rows: NDArray[np.int8]) -> NDArray[np.uint64]:
    """Return the signs of rows as bits, (word_count, row_count)."""
    packed = np.packbits(rows > 0, axis=1)
    word_count = -(-rows.shape[1] // _WORD_BITS)
    padded: NDArray[np.uint8] = np.zeros((len(rows), word_count * _WORD_BITS // 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64).T


def _cosines(block: _Block, places: Ints, asked: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the cosines of the rows at some places with `asked`."""
    one = asked.astype(np.float32)
    one /= max(float(np.sqrt(np.einsum("j,j->", one, one))), _LEAST_LENGTH)
    values: NDArray[np.float32] = np.empty(len(places), np.float32)
    step = WIDENED_NUMBERS // len(one) + 1
    wide = np.empty((min(len(places), step), len(one)), np.float32)
    for at in range(0, len(places), step):
        span = slice(at, at + step)
        some = wide[: len(places[span])]
        some[:] = block.rows[places[span]]
        # `einsum` and not `@`: for so little, to wake the threads of the algebra library costs
        # more than it saves.
        np.einsum("ij,j->i", some, one, out=values[span])
    values *= block.scales[places]
    return values
