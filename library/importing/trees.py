"""Messages that name the one they follow, some of which are no messages to us. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def ref_of(value: Any) -> str | None:
    """Return what names another message; None: it names none, whatever else it is."""
    return value if isinstance(value, str) else None


class Links:
    """Which message a reference leads to, past references that hold none."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}
        self._before: dict[str, str | None] = {}

    def stands(self, ref: str, message: str) -> None:
        """Note that what names `ref` as its predecessor follows `message`."""
        self._messages[ref] = message

    def passes(self, ref: str, before: str | None) -> None:
        """Note that `ref` holds no message: what follows it follows what `before` leads to, which
        may be known later only."""
        self._before[ref] = before

    def message(self, ref: str | None) -> str | None:
        """Return the message at a reference; None: there is none at it, nor before it."""
        passed: list[tuple[str, str | None]] = []
        while ref is not None and ref not in self._messages:
            before = self._before.pop(ref, None)  # Taken out meanwhile, so that a circle ends.
            passed.append((ref, before))
            ref = before
        found = None if ref is None else self._messages[ref]
        for one, before in passed:
            if found is not None:
                self._messages[one] = found  # A long run is walked once.
            elif before is not None:
                self._before[one] = before
        return found


def parents_first(
    parents: Mapping[str, str | None], order: Sequence[str] | None = None
) -> Iterable[str]:
    """Return the nodes of a forest, each after its parent and otherwise in `order` (the mapping's
    own); a node whose parent is missing, or that is its own ancestor, counts as a root."""
    children: dict[str | None, list[str]] = {}
    for node in order if order is not None else parents:
        parent = parents[node]
        children.setdefault(parent if parent in parents else None, []).append(node)
    found: list[str] = []
    seen: set[str] = set()
    for start in [*children.get(None, ()), *parents]:
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                found.append(node)
                waiting.extend(reversed(children.get(node, ())))
    return found
