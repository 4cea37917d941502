"""Finished conversations, kept so that a stopped run goes on where it was.

One file for what one method answered on one conversation, named after all that the answers depend
on: the data, the questions as they were spelled, the method's code and weights, the budgets. It
appears whole or not at all.
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


_DECODER = msgspec.json.Decoder(Finished)


def place(folder: Path, depends_on: Sequence[str]) -> Path:
    """Return the file of answers that depend on this."""
    key = sha256("\0".join(depends_on).encode("utf-8", "replace")).hexdigest()[:KEY_CHARS]
    return folder / f"{key}.json"


def kept(path: Path) -> Finished | None:
    """Return what an earlier run answered; None: nothing that can be read."""
    try:
        return _DECODER.decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def keep(path: Path, finished: Finished) -> None:
    """Keep a conversation's answers, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(msgspec.json.encode(finished))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
