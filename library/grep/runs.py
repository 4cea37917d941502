"""Runs of letters and digits: what the index knows of a text's exact words. Pure.

A pattern that must match `boathouse` can only match a text that has a run with `boathouse` in it.
The index holds the runs of each passage, lower-cased and otherwise as they were, so that a grep
reads the few texts that may match instead of all.

A run is cut into pieces that overlap by half, so that any `LITERAL_CHARS_MAX` characters of it
stand in one piece, and terms stay short whatever a text holds (base64, say).
"""

import re
from collections.abc import Iterator

PIECE_CHARS = 64
LITERAL_CHARS_MAX = PIECE_CHARS // 2
"""As much of a literal as is looked up."""
_RUN = re.compile(r"\w+")
_ASCII = "".join(one.lower() if _RUN.match(one) else " " for one in map(chr, range(128)))
"""For `str.translate`: folds a text, and makes a space of what is in no run."""


def runs_of(text: str, start: int, stop: int) -> set[str]:
    """Return the pieces of all runs of a passage; one that a passage's end parts counts to both."""
    part = text[max(0, start - PIECE_CHARS) : stop + PIECE_CHARS]
    runs = ascii_runs(part) if part.isascii() else {fold(run) for run in _RUN.findall(part)}
    if max(map(len, runs), default=0) <= PIECE_CHARS:
        return runs
    return {piece for run in runs for piece in _pieces(run)}


def ascii_runs(text: str) -> set[str]:
    """Return the runs of a text that is ASCII, folded, however long each is: found in a fifth of
    the time that others take."""
    return {*text.translate(_ASCII).split()}


def folded(literal: str) -> str:
    """Return a literal as it stands in the index, or the beginning of it."""
    return fold(literal)[:LITERAL_CHARS_MAX]


def fold(text: str) -> str:
    """Return a text without case; all four letters i are one, as they are to `regex`."""
    return text.casefold().replace("\u0131", "i").replace("\u0307", "")


def _pieces(run: str) -> Iterator[str]:
    if len(run) <= PIECE_CHARS:
        yield run
        return
    step = PIECE_CHARS - LITERAL_CHARS_MAX
    for at in range(0, len(run) - LITERAL_CHARS_MAX, step):
        yield run[at : at + PIECE_CHARS]
