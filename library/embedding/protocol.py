"""What makes a vector of a text. Rows of two identities are never compared."""

from collections.abc import Sequence
from typing import Protocol

from library.errors import LibraryError


class EmbedderUnavailable(LibraryError):
    """The embedder cannot answer now; what it owes stays owed, and search goes on without it."""


class Embedder(Protocol):
    """Makes unit rows: float32, little-endian, `dim` numbers each."""

    identity: str
    """Names the model, its version and everything else that changes a row."""
    dim: int

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one row a text; never blocks the event loop.

        Raises:
            EmbedderUnavailable: try again later.

        """

    async def embed_question(self, text: str) -> bytes:
        """Return the row to compare with those of `embed`; some models ask in another form."""
