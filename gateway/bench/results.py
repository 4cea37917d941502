"""Finished conversations of a run, kept so that a stopped run goes on where it was.

One file a method and set, named after all that its answers depend on, one conversation a line. A
line is on disk before the next conversation begins; a torn last line is that of a conversation that
is asked again.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from gateway.bench.scoring import Answered

KEY_CHARS = 24


class Finished(msgspec.Struct, frozen=True):
    """All questions of one conversation, asked."""

    conversation: str
    index_s: float
    answers: tuple[Answered, ...]


_LINE = msgspec.json.Decoder(Finished)


class Kept:
    """The finished conversations of one method on one set."""

    def __init__(self, folder: Path, depends_on: Sequence[str]) -> None:
        key = sha256("\0".join(depends_on).encode()).hexdigest()[:KEY_CHARS]
        self._path = folder / f"{key}.jsonl"
        self._found: dict[str, Finished] = {}
        if self._path.exists():
            for line in self._path.read_bytes().splitlines():
                try:
                    finished = _LINE.decode(line)
                except msgspec.DecodeError:
                    continue
                self._found[finished.conversation] = finished

    def get(self, conversation: str) -> Finished | None:
        return self._found.get(conversation)

    def add(self, finished: Finished) -> None:
        """Keep a conversation, durably."""
        self._found[finished.conversation] = finished
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # In front too, so that what a torn line left does not take this one with it.
            file.write(b"\n" + msgspec.json.encode(finished) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def drop(self) -> None:
        """Forget all of them."""
        self._path.unlink(missing_ok=True)
        self._found.clear()
