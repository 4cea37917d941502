"""What callers write of a record, checked and made one spelling. Pure.

Names come from people and from models: each has a length, no control characters and one spelling,
so that a filter finds what was shelved and a name can stand in a line of its own.

Raises, all of them: `Unacceptable`.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

from library.errors import Unacceptable

LONGEST_INSIGHT_CHARS = 8_000
"""An insight is one thing to know; what is longer is a document or a chunk."""
LONGEST_NAME_CHARS = 200
LONGEST_SOURCE_CHARS = 1_000
LONGEST_TAG_CHARS = 64
MOST_TAGS = 32
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
"""Controls but tab, line feed, form feed and carriage return, and halves of surrogate pairs. A
pattern, since a chunk may have ten million characters and is looked at on the event loop."""

T = TypeVar("T", bound=str)


def text_of(value: str, *, name: str = "text", most_chars: int = LONGEST_INSIGHT_CHARS) -> str:
    """Return a text as it is, if it holds words and no control characters."""
    if not value.strip():
        raise Unacceptable(name, "words")
    if len(value) > most_chars:
        raise Unacceptable(name, f"at most {most_chars:,} characters, not {len(value):,}")
    if found := _FORBIDDEN.search(value):
        if found[0] >= "\ud800":
            raise Unacceptable(name, "whole Unicode, without half of a surrogate pair")
        raise Unacceptable(name, f"without control characters, as U+{ord(found[0]):04X}")
    return value


def name_of(value: str, *, name: str, most_chars: int = LONGEST_NAME_CHARS) -> str:
    """Return a name in one spelling: a line without surrounding space; empty is none."""
    spelled = unicodedata.normalize("NFC", value).strip()
    if len(spelled) > most_chars:
        raise Unacceptable(name, f"at most {most_chars} characters")
    if not spelled.isprintable():
        raise Unacceptable(name, "one line of printable characters")
    return spelled


def tag_of(value: str) -> str:
    """Return a tag in the one spelling that is kept and looked for: lower case, spaces made one."""
    return " ".join(unicodedata.normalize("NFC", value).lower().split())


def tags_of(values: Sequence[str]) -> tuple[str, ...]:
    """Return tags in order, each once, in their one spelling."""
    found = {tag_of(name_of(value, name="tags")) for value in values} - {""}
    if len(found) > MOST_TAGS:
        raise Unacceptable("tags", f"at most {MOST_TAGS}")
    if any(len(tag) > LONGEST_TAG_CHARS for tag in found):
        raise Unacceptable("tags", f"of at most {LONGEST_TAG_CHARS} characters each")
    return tuple(sorted(found))


def one_of(value: str, known: Sequence[T], *, name: str) -> T:
    """Return a value that is one of the known ones."""
    for one in known:
        if one == value:
            return one
    raise Unacceptable(name, f"one of {', '.join(known)}")
