"""What a cache must do, wherever it keeps things; one class of contract tests runs on each. Pure.

A cache may lose what it was given, at any time, and must never answer with anything else. So that
nothing has to be looked up to know whether a found value still holds, a key is a digest of all that
the value depends on (library/cache/keys.py): what has changed is asked for under another key, and
the old value is dropped as everything is that nobody asks for.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from library.errors import LibraryError

Kind = Literal["question", "ranking"]
"""`question`: the vector of a question; `ranking`: which passages answer a query, in which order.
Never the text of a message: that is read from the store, in scope, whatever a cache says."""
VALUE_BYTES_MAX = 1 << 20
"""A larger value is not kept: the longest ranking takes 60 KB."""


class Key(NamedTuple):
    """Names a value by everything that it depends on."""

    kind: Kind
    digest: bytes
    """16 bytes."""


class CacheUnavailable(LibraryError):
    """The cache cannot be asked now."""

    def __init__(self, problem: str, *, is_lasting: bool) -> None:
        super().__init__(problem)
        self.is_lasting = is_lasting
        """Asking again at once would be answered likewise; False: it was only late."""


class Cache(Protocol):
    """Bytes by key."""

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """Return what is kept under these keys; others are left out.

        Raises:
            CacheUnavailable: it cannot be asked.

        """

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        """Keep these, as long as there is room; a key that is there already is replaced.

        Raises:
            CacheUnavailable: it cannot be asked.

        """
