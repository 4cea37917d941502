"""Random names, from the system's generator, some hundred at a time.

A request needs five, and each call into the system lets go of the interpreter's lock: a thread that
waits for it takes it, and the event loop has to ask for it again, for eight bytes.
"""

import os

TOKEN_BYTES_MAX = 16
_POOL_BYTES = 4_096

_ready: list[str] = []
"""Drawn ahead. Taken from the end, which is one step, so that threads need no lock."""

if hasattr(os, "register_at_fork"):  # Else a child would draw what its parent draws.
    os.register_at_fork(after_in_child=_ready.clear)


def random_token(size_bytes: int) -> str:
    """Return random bytes in hexadecimal, as `secrets.token_hex` does; at most 16."""
    assert 0 < size_bytes <= TOKEN_BYTES_MAX
    while True:
        try:
            return _ready.pop()[: 2 * size_bytes]
        except IndexError:
            drawn = os.urandom(_POOL_BYTES).hex()
            step = 2 * TOKEN_BYTES_MAX
            _ready.extend(drawn[at : at + step] for at in range(0, len(drawn), step))
