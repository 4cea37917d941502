"""An embedder that remembers, across runs, what it made of every passage.

Telling a set to a library again, because a line of its code changed, would cost a model ten
minutes a million words; the rows would be the same. Questions are not remembered: what they take is
measured.

A file of records of one size: the digest of a text, the seconds its row took, the row. A batch is
one write to the end of the file, so that runs beside each other may share it.
"""

import struct
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from library.embedding.protocol import Embedder

_HEAD = struct.Struct("<16sf")
MOST_BATCH = 32
"""Texts embedded at once, so that a stopped run has lost little."""


class RememberingEmbedder:
    """Makes the rows of another embedder, each text's only once."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner = inner
        self.identity = inner.identity
        self.dim = inner.dim
        self.remembered_s = 0.0
        """What the rows that were remembered had taken when they were made."""
        self._path = folder / f"{slug(inner.identity)}.rows"
        self._known: dict[bytes, tuple[float, bytes]] = {}
        size = _HEAD.size + inner.dim
        data = self._path.read_bytes() if self._path.exists() else b""
        if len(data) % size:  # A write was torn, and what follows it cannot be told apart.
            self._path.unlink()
            data = b""
        for at in range(0, len(data), size):
            digest, took_s = _HEAD.unpack_from(data, at)
            self._known[digest] = took_s, data[at + _HEAD.size : at + size]

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one row a text, as `Embedder.embed`."""
        digests = [blake2b(text.encode("utf-8", "replace"), digest_size=16) for text in texts]
        keys = [digest.digest() for digest in digests]
        remembered = [key for key in keys if key in self._known]
        self.remembered_s += sum(self._known[key][0] for key in remembered)
        missing = dict(zip(keys, texts, strict=True))
        missing = {key: text for key, text in missing.items() if key not in self._known}
        new = list(missing.items())
        for at in range(0, len(new), MOST_BATCH):
            await self._make(new[at : at + MOST_BATCH])
        return [self._known[key][1] for key in keys]

    async def embed_question(self, text: str) -> bytes:
        return await self._inner.embed_question(text)

    async def close(self) -> None:
        """Do nothing: many libraries are opened with it, one after another."""

    async def _make(self, new: Sequence[tuple[bytes, str]]) -> None:
        started_s = time.monotonic()
        rows = await self._inner.embed([text for _, text in new])
        each_s = (time.monotonic() - started_s) / len(new)
        made = {key: (each_s, row) for (key, _), row in zip(new, rows, strict=True)}
        self._known |= made
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab", buffering=0) as file:
            file.write(b"".join(_HEAD.pack(key, s) + row for key, (s, row) in made.items()))


def slug(identity: str) -> str:
    """Return an identity as a part of a file's name, on every system."""
    return "".join(char if char.isalnum() else "-" for char in identity)
