"""SQLite's own full-text search, as one would use it who has nothing else. The seam to sqlite3.

Porter stemming, any word of the question, BM25. Source: sqlite.org/fts5.html, 4.3.3 and 5.1.1.
"""

import re
import sqlite3
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
MOST_FOUND = 1_000
"""More than any desk holds."""


class Fts5:
    """Texts by number, in memory."""

    def __init__(self, texts: Iterable[str]) -> None:
        # Made on the event loop, asked in threads, never both at once.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')"
        )
        self._connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts)
        )

    def find(self, question: str) -> list[int]:
        """Return the numbers of the texts that hold a word of the question, best first."""
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
        if not words:
            return []
        rows = self._connection.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?",
            (words, MOST_FOUND),
        )
        return [number for (number,) in rows]

    def close(self) -> None:
        self._connection.close()
