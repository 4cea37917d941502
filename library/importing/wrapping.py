"""Account exports whose list stands under a key of one object, instead of being the file. Pure.

Source: mohamed-chs/convoviz docs/dev/chatgpt-spec.md v3.0 (2026), 2.
"""

from collections.abc import Iterable, Iterator

from library.importing.items import Row

WRAPPER = "conversations"


def unwrapped(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield conversations: the rows, or those in the list `conversations` of a row, as some account
    exports wrap them."""
    for row in rows:
        listed = row.value.get(WRAPPER) if isinstance(row.value, dict) else None
        if not isinstance(listed, list):
            yield row
            continue
        for number, value in enumerate(listed, 1):
            yield Row(f"{row.place}, conversation {number}", value)
