"""Other people's memories, asked the same questions: each in a Python environment of its own.

They are never dependencies of ours: who wants to compare makes an environment in the cache folder,
and without one is told how. `peer_worker.py` runs there and says in which order a peer wants its
messages; the desk is filled here, so that frame, headers and tokens are the same for everybody.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from gateway.bench import peer_worker
from gateway.bench.baselines import CODE, shelf_of
from gateway.bench.conversations import Conversation
from gateway.bench.filling import Piece, Shelf
from gateway.bench.methods import Asker, Desk, code_of, identity_of
from gateway.bench.replay import Replayed
from governor.counting import Counters
from library.embedding.protocol import ROW_MAX, Embedder

PACKAGES = {
    "langchain": "langchain-core",
    "mem0": "mem0ai",
    "acolyterag": "git+https://github.com/pastor0711/AcolyteRAG",
    "ralc": "git+https://github.com/Vivek0x6b/Ralc",
}
"""Peer -> what pip installs."""
DISTRIBUTIONS = {
    "langchain": "langchain_core",
    "mem0": "mem0ai",
    "acolyterag": "acolyterag",
    "ralc": "ralc",
}
"""Peer -> what its package is called once it is installed."""
NEED_ROWS = frozenset({"mem0", "ralc"})
"""They compare vectors, and get ours, so that the same model stands behind all."""
CHOOSE = frozenset({"langchain", "acolyterag", "ralc"})
"""They choose within a budget, where the others give an order of all they have."""
MOST_ROUNDS = 4
"""They know what a record costs and not what headings do: asked again with what is left."""
LINE_BYTES_MAX = 256 * 1024 * 1024
"""A conversation of a million words with its vectors is 60 MB."""


class PeerMissing(Exception):
    """A peer has no environment; the text says how to make it."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(
            f"{name} is not installed; give it an environment of its own:\n"
            f"  {sys.executable} -m venv {folder}\n"
            f"  {_python(folder)} -m pip install '{PACKAGES[name]}'"
        )


class PeerNeedsEmbedder(Exception):
    """A peer compares vectors, and there is nothing that makes them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} compares vectors: name an --embedder")


class PeerFailed(Exception):
    """A peer's program ended."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(f"{name} failed: {said}")


class Peer:
    """One of them."""

    def __init__(
        self, name: str, *, folder: Path, embedder: Embedder | None, counters: Counters
    ) -> None:
        """Find the peer's environment in `folder`.

        Raises:
            PeerMissing: there is none.
            PeerNeedsEmbedder: it cannot work without one.

        """
        if not _python(folder).exists():
            raise PeerMissing(name, folder)
        if embedder is None and name in NEED_ROWS:
            raise PeerNeedsEmbedder(name)
        self.name = name
        self._python = _python(folder)
        self._embedder = embedder if name in NEED_ROWS else None
        self._counters = counters
        code, vectors = code_of(*CODE), identity_of(self._embedder)
        self.identity = f"{name} {code} {vectors} {_packages(folder)}"

    @asynccontextmanager
    async def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AsyncIterator[Asker]:
        shelf = shelf_of(conversation, replayed, self._counters)
        rows = await self._rows([message.text for message in conversation.messages])
        messages = [
            {
                "role": message.role,
                "name": message.name,
                "text": message.text,
                "cost": shelf.cost_tokens(piece) if (piece := shelf.whole(at)) else 0,
                "row": row,
            }
            for at, (message, row) in enumerate(zip(conversation.messages, rows, strict=True))
        ]
        # A file and no pipe: nobody reads what a peer says unless it fails.
        with TemporaryFile() as said:
            process = await asyncio.create_subprocess_exec(
                str(self._python),
                peer_worker.__file__,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                limit=LINE_BYTES_MAX,
            )
            try:
                worker = _Worker(self.name, process, said)
                await worker.told({"peer": self.name, "messages": messages})
                yield _PeerAsker(worker, shelf, self._embedder)
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()

    async def _rows(self, texts: list[str]) -> list[list[float]]:
        if self._embedder is None:
            return [[] for _ in texts]
        return [_floats(row) for row in await self._embedder.embed(texts)]


class _Worker:
    """The other side of the pipe."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, said: IO[bytes]) -> None:
        self.name = name
        self._process = process
        self._said = said

    async def told(self, what: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one line.

        Raises:
            PeerFailed: there is none.

        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        with suppress(ConnectionError):  # It has ended, and has said why.
            await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            self._said.seek(0)
            said = self._said.read().decode("utf-8", "replace")
            raise PeerFailed(self.name, said.strip().rpartition("\n")[2])
        answer: dict[str, Any] = json.loads(line)
        return answer


class _PeerAsker:
    """Asks one conversation's worker, and lays out what it wants."""

    def __init__(self, worker: _Worker, shelf: Shelf, embedder: Embedder | None) -> None:
        self._worker = worker
        self._shelf = shelf
        self._embedder = embedder

    async def lay(self, question: str, budget_tokens: int) -> Desk:
        room_tokens = budget_tokens - self._shelf.frame_tokens
        if room_tokens <= 0:
            return Desk("", 0.0)
        row = await self._embedder.embed_question(question) if self._embedder else b""
        ms = 0.0
        for _ in range(MOST_ROUNDS if self._worker.name in CHOOSE else 1):
            asked = {"question": question, "row": _floats(row), "budget": room_tokens}
            answer = await self._worker.told(asked)
            ms = ms or answer["ms"]
            pieces = (self._shelf.whole(at) for at in answer["order"])
            order: list[Piece] = [piece for piece in pieces if piece is not None]
            over_tokens = self._shelf.tokens(order) - budget_tokens
            if over_tokens < 0 or room_tokens <= over_tokens:
                break
            room_tokens -= over_tokens + 1
        return Desk(self._shelf.filled(order, budget_tokens), ms)


def version(name: str, folder: Path) -> str:
    """Return name and version of the package that a peer's environment holds."""
    start = f"{DISTRIBUTIONS[name]}-"
    return next((one for one in _packages(folder) if one.startswith(start)), DISTRIBUTIONS[name])


def _packages(folder: Path) -> list[str]:
    return sorted(
        one.name.removesuffix(".dist-info") for one in folder.rglob("site-packages/*.dist-info")
    )


def _floats(row: bytes) -> list[float]:
    """Return a row of int8 numbers as numbers up to 1."""
    return [(value - 256 if value > ROW_MAX else value) / ROW_MAX for value in row]


def _python(folder: Path) -> Path:
    if sys.platform == "win32":
        return folder / "Scripts" / "python.exe"
    return folder / "bin" / "python"
