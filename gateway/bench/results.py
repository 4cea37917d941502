"""Finished conversations, kept so that a stopped run goes on where it was; and what ends that.

One file for what one method answered on one conversation, named after all that the answers depend
on: the data, the questions as they were spelled, the method's code and weights, the budgets. It
appears whole or not at all.

Code changes, and with it the names of all files. What nobody has used for a week is deleted.
"""

import os
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from gateway.bench.scoring import Answered

KEY_CHARS = 24
MOST_AGE = timedelta(days=7)


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
        finished = _DECODER.decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    path.touch()
    return finished


def keep(path: Path, finished: Finished) -> None:
    """Keep a conversation's answers, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(msgspec.json.encode(finished))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tidy(folder: Path, *, now: datetime) -> None:
    """Delete what was kept in `folder` and not used since `MOST_AGE`."""
    oldest_s = (now - MOST_AGE).timestamp()
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.stat().st_mtime >= oldest_s:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
