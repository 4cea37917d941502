"""What a desk is laid out for, and how several searches become one order. Pure.

Within a tool loop both count: the task, and what the latest step is about. They are looked for
apart and their finds are taken in turn. One search for both words together was rejected: the page
that a tool printed drowns the one line that asks, and the record that the task needs leaves the
desk in the middle of the work.
"""

from collections.abc import Sequence

from governor.layout import Layout
from library.records import Hit

QUESTION_CHARS_MAX = 4_000
"""A focus is a question; the start and the end of a longer text say what it is about."""
STEP_CHARS_MAX = 1_000
"""Of the latest step of a tool loop."""


def focuses(layout: Layout, *, asked: str | None = None) -> tuple[str, ...]:
    """Return what to look for, the most important first: what is asked for by the caller, or else
    the question, and the latest step."""
    if asked is not None:
        return (_ends(asked, QUESTION_CHARS_MAX),) if asked.strip() else ()
    transcript = layout.transcript
    question = layout.question_message()
    found = [] if question is None else [_ends(question.text, QUESTION_CHARS_MAX)]
    if layout.last != transcript.question:
        step = "\n".join(message.text for message in transcript.unit_messages(layout.last))
        found.append(_ends(step, STEP_CHARS_MAX))
    return tuple(words for words in found if words.strip())


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
