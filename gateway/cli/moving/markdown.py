"""A thread as a Markdown page for people. Pure.

Messages stand in the order in which they were stored, word for word. Where one does not follow the
one above it, because a branch was opened or taken up again, a line says which one it follows.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from library.chain import ROOT, extend
from library.moving.lines import TextOf

Line = Mapping[str, Any]
NAME_CHARS_MAX = 80


def file_name(thread: Line) -> str:
    """Return a name that every file system takes and that no other thread has."""
    day = str(thread.get("created_at") or "")[:10]
    title = re.sub(r"[^\w.-]+", "-", thread.get("session_id") or "")[:NAME_CHARS_MAX].strip("-.")
    return "-".join(part for part in (day, title, thread["thread"]) if part) + ".md"


class Page:
    """One thread's page, written message by message."""

    def __init__(self, thread: Line, text_of: TextOf) -> None:
        self._thread = thread
        self._text_of = text_of
        self._ids: dict[str, str] = {}
        self._last = ""

    def head(self) -> str:
        thread = self._thread
        rows = [f"# {_line(thread.get('session_id') or thread['thread'])}", ""]
        rows += [
            f"- {name}: {_line(str(thread[key]))}"
            for name, key in (
                ("collection", "collection"),
                ("thread", "thread"),
                ("begun", "created_at"),
                ("last used", "updated_at"),
                ("budget", "budget_tokens"),
            )
            if thread.get(key) is not None
        ]
        return "\n".join(rows) + "\n"

    def message(self, line: Line) -> str:
        after = line.get("after", "")
        name = line.get("id") or f"e{line['seq']}"
        note = "" if after == self._last else f"\n> follows {self._ids.get(after, 'nothing')}\n"
        chain = extend(bytes.fromhex(after) if after else ROOT, bytes.fromhex(line["digest"]))
        self._last = chain.hex()
        self._ids[self._last] = name
        cut = " · cut" if line.get("is_partial") else ""
        text = line.get("text")
        words = self._text_of(line["body"]) if text is None else text
        return f"\n## {line['role']} · {_minute(line.get('at'))} · {name}{cut}\n{note}\n{words}\n"

    def foot(self) -> str:
        head = self._thread.get("head", "")
        if head == self._last or head not in self._ids:
            return ""
        return f"\n---\n\nThe conversation goes on from {self._ids[head]}.\n"


def _minute(at: str | None) -> str:
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M") if at else ""


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
