"""Which shared cache a library uses, and under which names."""

import secrets

from library.cache.redis import RedisCache
from library.store.contract import Store

KEYSPACE = "cache_keyspace"
"""Under this key the store keeps the random name of its own keyspace."""


async def opened_far(store: Store, *, url: str, keyspace: str) -> RedisCache | None:
    """Return the cache at `url`, not connected yet; None for an empty one.

    Without a `keyspace` it is a random one that belongs to the database: nobody else finds what is
    kept there, and the next process on the same database does.
    """
    if not url:
        return None
    if not keyspace:
        keyspace = await store.meta(KEYSPACE) or ""
    if not keyspace:
        keyspace = secrets.token_hex(8)
        await store.set_meta(KEYSPACE, keyspace)
    return RedisCache(url, keyspace=keyspace)
