"""What a desk is laid out for, and how several searches become one order. Pure.

Within a tool loop three things count: the task, the names that the latest step turns on - the file,
the symbol, the error - and what the step is about. They are looked for apart and their finds are
taken in turn. One search for all words together was rejected: the page that a tool printed drowns
the one line that asks, and the record that the task needs leaves the desk in the middle of the
work. Names stand alone because steps are like one another: a search for all of a step's words finds
the hundred steps before that called the same tool.
"""

import re
from collections.abc import Iterator, Sequence

from governor.layout import Layout
from governor.message import Message
from library.records import Hit

QUESTION_CHARS_MAX = 4_000
"""A focus is a question; the start and the end of a longer text say what it is about."""
STEP_CHARS_MAX = 1_000
"""Of the latest step of a tool loop."""
NAMES_MAX = 12
"""A step that names more is a listing, and turns on none of them."""
CALL_CHARS_MAX = 4_000
"""A call that writes a whole file is no list of names; its path stands at one of the ends."""
ERROR_LINES_MAX = 4
_NAME = re.compile(r"[A-Za-z_][\w./-]*[\w]")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_ERROR_LINE = re.compile(
    r"^.*(?:[A-Za-z]Error|Exception|error:|FAILED|panic|fatal).*$", re.MULTILINE
)
_ERROR_LINE_CHARS_MAX = 300


def focuses(layout: Layout, *, asked: str | None = None) -> tuple[str, ...]:
    """Return what to look for, the most important first: what is asked for by the caller, or else
    the question, and of the latest step its names and what it is about."""
    if asked is not None:
        return (_ends(asked, QUESTION_CHARS_MAX),) if asked.strip() else ()
    transcript = layout.transcript
    question = layout.question_message()
    found = [] if question is None else [_ends(question.text, QUESTION_CHARS_MAX)]
    if layout.last != transcript.question:
        step = transcript.unit_messages(layout.last)
        words = "\n".join(message.text for message in step)
        found += [" ".join(names_in_step(layout)), _ends(words, STEP_CHARS_MAX)]
    return tuple(words for words in found if words.strip())


def names_in_step(layout: Layout) -> list[str]:
    """Return the names that the latest step turns on: those of what the assistant says and calls,
    and of the lines of the results that report an error; none where there are too many."""
    names: dict[str, None] = {}
    for text in _telling(layout.transcript.unit_messages(layout.last)):
        names |= dict.fromkeys(name for name in _NAME.findall(text) if _is_name(name))
    return list(names) if len(names) <= NAMES_MAX else []


def _telling(step: Sequence[Message]) -> Iterator[str]:
    for message in step:
        if message.role == "assistant":
            yield _ends(message.text, CALL_CHARS_MAX)
        elif message.role == "tool":
            ends = _ends(message.text, CALL_CHARS_MAX)
            for line in _ERROR_LINE.findall(ends)[-ERROR_LINES_MAX:]:
                yield line[:_ERROR_LINE_CHARS_MAX]


def _is_name(word: str) -> bool:
    """Tell whether a word is a path, an identifier or an error, and not of plain language."""
    if len(word) < 4:
        return False
    has_digit = any(char.isdigit() for char in word)
    return has_digit or "_" in word or "/" in word or bool(_CAMEL.search(word)) or "." in word


def in_turn(ranked: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return the hits of several orders in one: all their first ones, all their second ones, ...

    A hit that several of them have stands where it is first.
    """
    merged: dict[tuple[int, int], Hit] = {}
    for place in range(max(map(len, ranked), default=0)):
        for hits in ranked:
            if place < len(hits):
                hit = hits[place]
                merged.setdefault((hit.passage.seq, hit.passage.ordinal), hit)
    return list(merged.values())


def _ends(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    return f"{text[: chars // 2]}\n{text[-chars // 2 :]}"
