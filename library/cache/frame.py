"""How a value lies in a cache outside this process: so that nothing else is taken for it. Pure.

A digest of key and content stands in front: a value that was cut, changed in any bit, or put under
another key is no value. It guards against faults, not against somebody who can write there.
"""

import zlib
from hashlib import blake2b

from library.cache.contract import VALUE_BYTES_MAX, Key

COMPRESS_BYTES = 1_024
"""Smaller values gain too little: a vector nothing, a short ranking some hundred bytes."""
DIGEST_BYTES = 16
_PLAIN, _PACKED = b"p", b"z"


def framed(key: Key, value: bytes) -> bytes:
    """Return what to store for a value."""
    form, content = _PLAIN, value
    if len(value) >= COMPRESS_BYTES:
        packed = zlib.compress(value, 1)
        if len(packed) < len(value):
            form, content = _PACKED, packed
    return _digest(key, form, content) + form + content


def unframed(key: Key, stored: bytes) -> bytes | None:
    """Return the value that was stored; None: this is not what was stored for that key."""
    digest, form = stored[:DIGEST_BYTES], stored[DIGEST_BYTES : DIGEST_BYTES + 1]
    content = stored[DIGEST_BYTES + 1 :]
    if digest != _digest(key, form, content):
        return None
    if form == _PLAIN:
        return content
    unpacking = zlib.decompressobj()
    value = unpacking.decompress(content, VALUE_BYTES_MAX)
    return value if unpacking.eof else None


def _digest(key: Key, form: bytes, content: bytes) -> bytes:
    digest = blake2b(key.kind.encode(), digest_size=DIGEST_BYTES)
    for part in (key.digest, form, content):
        digest.update(part)
    return digest.digest()
