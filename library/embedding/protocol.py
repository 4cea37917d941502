"""What makes a vector of a text. Rows of two identities are never compared."""

from collections.abc import Sequence
from typing import Protocol

from library.errors import LibraryError

ROW_MAX = 127
"""Of the numbers of a row, so that they fit one byte each with either sign."""


class EmbedderUnavailable(LibraryError):
    """The embedder cannot answer now; what it owes stays owed, and search goes on without it."""


class EmbedderChanged(EmbedderUnavailable):
    """It makes other rows than it did when it was opened; open it again."""


class Embedder(Protocol):
    """Makes rows of `dim` int8 numbers; only their direction counts.

    A byte a number and not the four of float32: the order of some hundred candidates does not
    change by it, and rows are most of what a passage costs on disk, in the log and in memory.
    """

    identity: str
    """Names the model, its version and everything else that changes a row."""
    dim: int

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one row a text, all zeros for one that the model cannot read; never blocks the
        event loop.

        Raises:
            EmbedderUnavailable: try again later.

        """

    async def embed_question(self, text: str) -> bytes:
        """Return the row to compare with those of `embed`; some models ask in another form. All
        zeros: it cannot read the question, and vectors have no say."""

    async def close(self) -> None:
        """Let go of what it holds; idempotent."""
