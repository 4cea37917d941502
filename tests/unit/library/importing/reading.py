"""A reader's items as one can compare them."""

from collections.abc import Iterable
from typing import Any

from library.importing.items import Ended, Item, LeftOut, Row, Said, Unread


def rows(*values: Any) -> list[Row]:
    return [Row(f"line {number}", value) for number, value in enumerate(values, 1)]


def said(items: Iterable[Item]) -> list[Said]:
    return [item for item in items if isinstance(item, Said)]


def paths(items: Iterable[Item]) -> dict[str, list[str]]:
    """Return, for each message that nothing follows, the words on the way to it."""
    messages = {(item.session_id, item.ref): item for item in said(items)}
    followed = {(item.session_id, item.after) for item in messages.values()}
    found = {}
    for session_id, ref in messages.keys() - followed:
        words: list[str] = []
        at: str | None = ref
        while at is not None:
            words.insert(0, str(messages[session_id, at].body.get("content")))
            at = messages[session_id, at].after
        found[ref] = words
    return found


def left_out(items: Iterable[Item]) -> list[str]:
    return [item.what for item in items if isinstance(item, LeftOut)]


def unread(items: Iterable[Item]) -> list[tuple[str, str]]:
    return [(item.place, item.reason) for item in items if isinstance(item, Unread)]


def heads(items: Iterable[Item]) -> dict[str, str | None]:
    return {item.session_id: item.head for item in items if isinstance(item, Ended)}
