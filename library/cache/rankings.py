"""Searches whose answer is known: the same question about the same state of the same collection.

What is kept is which passages were found, in which order and why: numbers and ids, never a text.
Texts are read for every answer, from the store and in the query's scope, so that nothing in a cache
can show what the asker may not see, or what was deleted.

An answer that lacked something (`degraded`, `is_torn`) is not kept: the next one may lack nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from library.cache.contract import Cache, Key
from library.cache.generations import Generations
from library.cache.keys import key_of
from library.records import Hit, Passage, SearchQuery, SearchResult
from library.store.contract import ReadEvents

Answer = Callable[[SearchQuery], Awaitable[SearchResult]]


class _Found(msgspec.Struct, array_like=True, frozen=True):
    """A hit without its event."""

    seq: int
    ordinal: int
    part_count: int
    start: int
    stop: int
    score: float
    signals: dict[str, float]
    replaces: tuple[str, ...]


class _Ranking(msgspec.Struct, array_like=True, frozen=True):
    found: list[_Found]
    indexed_seq: int
    certainty: float


_DECODER = msgspec.msgpack.Decoder(_Ranking)


class Rankings:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        answer: Answer,
        events: ReadEvents,
        cache: Cache,
        generations: Generations,
        rests_on: Callable[[], Sequence[Any]],
    ) -> None:
        """`rests_on` returns what else an answer depends on now, read from memory: how candidates
        are weighed, which embedder serves, how far the indexes are."""
        self._answer = answer
        self._events = events
        self._cache = cache
        self._generations = generations
        self._rests_on = rests_on

    async def run(self, query: SearchQuery) -> SearchResult:
        """Return what the search returns, whether it is run or not."""
        state = self._state(query)
        if state is None:
            return await self._answer(query)
        key = key_of("ranking", *state, query)
        kept = (await self._cache.get([key])).get(key)
        result = None if kept is None else await self._read(query, kept)
        if result is None:
            result = await self._answer(query)
            # As things stand still: what the search saw is what the key names.
            if not (result.degraded or result.is_torn) and self._state(query) == state:
                await self._cache.put({key: packed(result)})
        return result

    def key(self, query: SearchQuery) -> Key | None:
        """Return the name of a query's answer as things stand; None: they are not known."""
        state = self._state(query)
        return None if state is None else key_of("ranking", *state, query)

    def _state(self, query: SearchQuery) -> tuple[Any, Any] | None:
        """Return all that an answer depends on besides its query; None: it is not known."""
        reach = sorted({query.collection_id, *query.team_ids})
        generations = [self._generations.of(one) for one in reach]
        return None if None in generations else (generations, self._rests_on())

    async def _read(self, query: SearchQuery, kept: bytes) -> SearchResult | None:
        """Return a kept answer with its events; None: it does not stand any more."""
        try:
            ranking = _DECODER.decode(kept)
        except msgspec.MsgspecError:
            return None
        seqs = list(dict.fromkeys(one.seq for one in ranking.found))
        read = await self._events(seqs, collection_id=query.team_ids | {query.collection_id})
        events = {event.seq: event for event in read}
        if len(events) < len(seqs) or len(ranking.found) > query.limit:
            return None
        hits = [
            Hit(
                events[one.seq],
                Passage(one.seq, one.ordinal, one.part_count, one.start, one.stop),
                one.score,
                one.signals,
                one.replaces,
            )
            for one in ranking.found
        ]
        return SearchResult(tuple(hits), (), ranking.indexed_seq, ranking.certainty)


def packed(result: SearchResult) -> bytes:
    """Return an answer that lacks nothing without its events."""
    assert not result.degraded
    found = [
        _Found(
            hit.passage.seq,
            hit.passage.ordinal,
            hit.passage.part_count,
            hit.passage.start,
            hit.passage.stop,
            hit.score,
            dict(hit.signals),
            hit.replaces,
        )
        for hit in result.hits
    ]
    return msgspec.msgpack.encode(_Ranking(found, result.indexed_seq, result.certainty))


def code_digest() -> bytes:
    """Return a digest of the library's own code: another version may rank otherwise."""
    digest = blake2b(digest_size=16)
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()
