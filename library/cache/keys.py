"""Keys: digests of everything that a value depends on. Pure.

A key is made of whole objects, never of chosen fields: a field that is added to a query or to the
weights is in the key from that day on, and a type that cannot be told apart here is an error.
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from hashlib import blake2b
from typing import Any

import msgspec

from library.cache.contract import Key, Kind

DIGEST_BYTES = 16


def key_of(kind: Kind, *depends_on: Any) -> Key:
    """Return the key of what depends on these values and on nothing else.

    Raises:
        TypeError: one of them is of a type whose equality is not known here.

    """
    spelled = msgspec.msgpack.encode([canonical(value) for value in depends_on])
    return Key(kind, blake2b(spelled, digest_size=DIGEST_BYTES).digest())


def canonical(value: Any) -> Any:
    """Return a value as lists and scalars: equal for equal values, different for others."""
    if isinstance(value, str):
        # Not every string is valid Unicode: a client's JSON may hold half of a surrogate pair.
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return ["bytes", value]
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date):  # And datetime, which is one.
        return [type(value).__name__, value.isoformat()]
    if dataclasses.is_dataclass(value):
        fields = [(f.name, canonical(getattr(value, f.name))) for f in dataclasses.fields(value)]
        return [type(value).__name__, fields]
    if isinstance(value, Mapping):
        return ["mapping", _sorted([(canonical(k), canonical(v)) for k, v in value.items()])]
    if isinstance(value, AbstractSet):
        if all(type(one) is int for one in value):
            return ["set", sorted(value)]
        return ["set", _sorted([canonical(one) for one in value])]
    if isinstance(value, tuple | list):
        return [canonical(one) for one in value]
    raise TypeError(f"a {type(value).__name__} has no place in a cache key yet")


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=msgspec.msgpack.encode)
