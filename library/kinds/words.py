"""What callers write of a record, checked and made one spelling. Pure.

Names come from people and from models: each has a length, no control characters and one spelling,
so that a filter finds what was shelved and a name can stand in a line of its own.

Raises, all of them: `Unacceptable`.
"""

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
_ALLOWED_CONTROLS = "\n\t\r\f"

T = TypeVar("T", bound=str)


def text_of(value: str, *, name: str = "text", most_chars: int = LONGEST_INSIGHT_CHARS) -> str:
    """Return a text as it is, if it holds words and no control characters."""
    if not value.strip():
        raise Unacceptable(name, "words")
    if len(value) > most_chars:
        raise Unacceptable(name, f"at most {most_chars:,} characters, not {len(value):,}")
    for char in value:
        if (char < " " and char not in _ALLOWED_CONTROLS) or char == "\x7f":
            raise Unacceptable(name, f"without control characters, as U+{ord(char):04X}")
        if "\ud800" <= char <= "\udfff":
            raise Unacceptable(name, "whole Unicode, without half of a surrogate pair")
    return value


def name_of(value: str, *, name: str, most_chars: int = LONGEST_NAME_CHARS) -> str:
    """Return a name in one spelling: a line without surrounding space; empty is none."""
    spelled = unicodedata.normalize("NFC", value).strip()
    if len(spelled) > most_chars:
        raise Unacceptable(name, f"at most {most_chars} characters")
    if not spelled.isprintable():
        raise Unacceptable(name, "one line of printable characters")
    return spelled


def tags_of(values: Sequence[str]) -> tuple[str, ...]:
    """Return tags in order, each once: lower case, spaces made one."""
    found = {" ".join(name_of(value, name="tags").lower().split()) for value in values} - {""}
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
