"""Chain digests: one value that stands for a message and everything before it. Pure.

`chain(k) = blake2b(chain(k - 1) + digest(k))`, from `ROOT` on. Two transcripts have an equal chain
at a position exactly when they are equal up to it, so "the longest stored transcript that this one
extends" is a look-up of its chains from the end, not a comparison of messages. Because every
stored event's parent is stored too, "is chain k stored" is true up to some k and false from there
on, which makes a search by bisection right.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from library.records import DIGEST_BYTES

ROOT = bytes(DIGEST_BYTES)
"""Stands before the first message."""
_CACHED = 8_192
"""About 2 MB. A transcript comes again with each request, a message longer: a chain that is known
costs a tenth of one that is made."""


@lru_cache(maxsize=_CACHED)
def extend(chain: bytes, digest: bytes) -> bytes:
    """Return the chain of a message with `digest` that follows the message with `chain`."""
    return blake2b(chain + digest, digest_size=DIGEST_BYTES).digest()


def chains(digests: Iterable[bytes], *, after: bytes = ROOT) -> list[bytes]:
    """Return the chain of each message of a run that follows the message with chain `after`."""
    found: list[bytes] = []
    add = found.append
    for digest in digests:
        after = extend(after, digest)
        add(after)
    return found
