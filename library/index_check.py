"""Check the lexical index of a database against what its store says is indexed, from outside.

Runs beside a running owner: searching needs no lock. An index may hold more than a snapshot of the
store does (what is indexed is settled a moment later), never less.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from library.catalogue import is_sound
from library.lexical import Lexical, LexicalUnavailable
from library.verify import Break, CheckIndex

_BLOCK_EVENTS = 2_048
KIND = "index"


def index_check(db: Path) -> CheckIndex:
    """Return the check of the index beside `db` that `library.verify.verify` asks for."""

    def check(indexed: Iterator[tuple[int, int]]) -> Break | str | None:
        folders = sorted(db.with_name(f"{db.name}.index").glob("lexical-*"))
        if not folders:
            return "there is no index yet: the next start builds it"
        if len(folders) > 1:
            return "the index is being renewed, and was not checked"
        (folder,) = folders
        if not is_sound(folder):
            return Break(KIND, folder.name, "a file has another checksum than it says")
        if not os.access(folder, os.W_OK):  # Whoever opens it locks it, and makes a file for that.
            return "the index is on a read-only file system: its checksums alone were checked"
        try:
            return _first_lack(Lexical(folder), indexed)
        except LexicalUnavailable as error:
            return Break(KIND, folder.name, str(error))

    return check


def _first_lack(lexical: Lexical, indexed: Iterator[tuple[int, int]]) -> Break | None:
    while block := list(islice(indexed, _BLOCK_EVENTS)):
        counts = lexical.passage_counts(block[0][0], block[-1][0])
        for seq, count in block:
            if counts[seq] != count:
                detail = f"{counts[seq]} of {count} passages are in the index"
                return Break(KIND, f"event {seq}", detail)
    return None
