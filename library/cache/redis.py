"""A cache in Redis, shared by processes. The only importer of redis-py.

Redis-py takes half a second to import, so `connect` does that, on a thread, and not the start of
the process. It tries nothing again by itself: what fails is told at once, and tried again by who
asked (library/cache/tiers.py). One round trip a call, however many keys.
"""

import asyncio
import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from library.cache.contract import CacheUnavailable, Key, Kind
from library.cache.frame import framed, unframed

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")

FORM = 1
"""Of what is stored; another one is looked for under other names."""
ANSWER_TIMEOUT_S = 0.05
"""A hundred times what an answer takes here; what it saves is worth no longer wait."""
CONNECT_TIMEOUT_S = 1.0
"""In the background, and again when a connection is broken."""
MOST_CONNECTIONS = 32
LIVES_S: Mapping[Kind, int] = {"question": 7 * 86_400, "ranking": 3_600}
"""How long a value stays: a question means the same next week; a ranking is of one state of a
collection, and who comes back to that comes back soon."""


class RedisCache:
    """See the module's docstring. Other gateways with the same `keyspace` share what is kept."""

    def __init__(self, url: str, *, keyspace: str) -> None:
        self._url = url
        self._prefix = f"library-of-context:{FORM}:{keyspace}"
        self._redis: Redis | None = None
        self._errors: tuple[type[Exception], ...] = (OSError, TimeoutError)
        self._late: tuple[type[Exception], ...] = (TimeoutError,)
        self.corrupt_count = 0
        """Values that were not what had been stored."""

    async def connect(self) -> None:
        """Make sure that it can be asked and written to.

        Raises:
            CacheUnavailable: not now, or the address is none of a Redis.

        """
        if self._redis is None:
            try:
                await asyncio.to_thread(self._load)
            except ValueError as error:
                raise CacheUnavailable(without_password(str(error)), is_lasting=True) from error
        assert self._redis is not None
        # Those of before may lead to a server that is gone.
        await self._redis.connection_pool.disconnect(inuse_connections=False)
        probe = Key("question", b"is anybody here?")
        await self.put({probe: b"yes"})
        if await self._found([probe], timeout_s=CONNECT_TIMEOUT_S) != {probe: b"yes"}:
            raise CacheUnavailable("it does not keep what it is told", is_lasting=True)

    def _load(self) -> None:
        import redis.exceptions
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        # An address may have options that redis-py does not know, or that change what answers are.
        of_options = (ValueError, TypeError, LookupError)
        self._errors = (OSError, TimeoutError, redis.exceptions.RedisError, *of_options)
        self._late = (TimeoutError, redis.exceptions.TimeoutError)
        pool = BlockingConnectionPool.from_url(
            self._url,
            max_connections=MOST_CONNECTIONS,
            timeout=CONNECT_TIMEOUT_S,  # Whoever waits for one has a limit of its own.
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=CONNECT_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            client_name="library-of-context",
            # Else each new connection reads the version of redis-py from the disk.
            driver_info=None,
        )
        self._redis = Redis(connection_pool=pool)

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """Return what is kept and whole.

        Raises:
            CacheUnavailable: it did not answer, or with an error.

        """
        return await self._found(keys, timeout_s=ANSWER_TIMEOUT_S)

    async def _found(self, keys: Sequence[Key], *, timeout_s: float) -> dict[Key, bytes]:
        if self._redis is None:
            raise CacheUnavailable("not connected", is_lasting=True)
        asking = self._redis.mget([self._name(key) for key in keys])
        stored = await self._answer(asking, timeout_s=timeout_s)
        if not isinstance(stored, list) or len(stored) != len(keys):
            raise CacheUnavailable("what answers there is no Redis", is_lasting=True)
        found = {}
        for key, content in zip(keys, stored, strict=True):
            if isinstance(content, bytes):
                value = unframed(key, content)
                if value is None:
                    self.corrupt_count += 1
                else:
                    found[key] = value
        return found

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        """Store all entries in one round trip, or raise `CacheUnavailable`; some may be stored."""
        if self._redis is None:
            raise CacheUnavailable("not connected", is_lasting=True)
        pipeline = self._redis.pipeline(transaction=False)
        for key, value in entries.items():
            pipeline.set(self._name(key), framed(key, value), ex=LIVES_S[key.kind])
        await self._answer(pipeline.execute(), timeout_s=CONNECT_TIMEOUT_S)

    async def close(self) -> None:
        """Let go of the connections. Idempotent."""
        redis, self._redis = self._redis, None
        if redis is not None:
            await redis.aclose(close_connection_pool=True)

    def _name(self, key: Key) -> str:
        return f"{self._prefix}:{key.kind}:{key.digest.hex()}"

    async def _answer(self, asking: Awaitable[T], *, timeout_s: float) -> T:
        """Return what Redis answers, with errors of redis-py turned into ours.

        A fifth of all cancellations is lost inside redis-py 8.1 (measured: the command ends as if
        nothing had been said); whoever cancelled is waiting, so they are raised here.
        """
        task = asyncio.current_task()
        assert task is not None
        cancellation_count = task.cancelling()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await asking
        except self._errors as error:
            if task.cancelling() > cancellation_count:
                raise asyncio.CancelledError from error
            self._failed(error)
        if task.cancelling() > cancellation_count:
            raise asyncio.CancelledError
        return answer

    def _failed(self, error: Exception) -> NoReturn:
        is_late = isinstance(error, self._late)
        problem = str(error) or f"no answer within {ANSWER_TIMEOUT_S} s"
        raise CacheUnavailable(without_password(problem), is_lasting=not is_late) from error


def without_password(text: str) -> str:
    """Return a text without the user and password of any address in it."""
    return re.sub(r"(\w+://)[^/@\s]*@", r"\1", text)


def is_redis_url(url: str) -> bool:
    """Tell whether an address can be one of a Redis."""
    return re.match(r"(redis|rediss|unix)://", url) is not None
