"""What the bench sends: conversations of real English, cut from the docstrings of Python's library.

Nothing is sent twice, so that every recorded request really records. A *growing* request is the
steady state of a chat: a transcript whose last answer and earlier messages are known, and one new
question. A *new* request is the worst case: a whole transcript that was never seen.
"""

import ast
import itertools
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from scripts.bench.stub import REPLY

Message = dict[str, Any]
MODEL = "gpt-4o-mini"
SYSTEM = (
    "You are a careful assistant for a small engineering team. Answer briefly, name the files you "
    "mean, say when you are not sure, and never invent an interface. Prefer the standard library."
)
MESSAGE_WORDS = 67
"""About 100 tokens; 22 such messages are the 2.2k-token body of the issue."""
LONG_MESSAGE_WORDS = 160
BODY_MESSAGES = 22


@cache
def _words() -> list[str]:
    """Return all words of the docstrings of the standard library, in order."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    words: list[str] = []
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("asyncio/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                words += (ast.get_docstring(node) or "").split()
    assert len(words) > 50_000
    return words


def text(number: int, *, words: int = MESSAGE_WORDS) -> str:
    """Return a text of its own for each number: a run of words from a place that hangs on it."""
    all_words = _words()
    start = number * 7_919 % (len(all_words) - words)
    return f"Note {number}. " + " ".join(all_words[start : start + words])


def transcript(number: int, *, messages: int, words: int = MESSAGE_WORDS) -> list[Message]:
    """Return a transcript that ends with a question; its last answer is the stub's own."""
    assert messages % 2 == 0, "system text, then an odd number of messages"
    talk: list[Message] = [{"role": "system", "content": SYSTEM}]
    for at in range(messages - 1):
        role = "user" if at % 2 == 0 else "assistant"
        is_last_answer = at == messages - 3
        content = REPLY if is_last_answer else text(number * 10_007 + at, words=words)
        talk.append({"role": role, "content": content})
    return talk


def body(messages: list[Message], **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": messages, "temperature": 0.2} | more


def messages_body(messages: list[Message], **more: Any) -> dict[str, Any]:
    """Return the same in Anthropic's Messages API."""
    system, *spoken = messages
    limit = {"max_tokens": 1_024} | more
    return {"model": MODEL, "system": system["content"], "messages": spoken, **limit}


def responses_body(
    messages: list[Message], *, max_tokens: int = 1_024, **more: Any
) -> dict[str, Any]:
    """Return the same in OpenAI's Responses."""
    system, *spoken = messages
    said = {"instructions": system["content"], "input": spoken, "max_output_tokens": max_tokens}
    return {"model": MODEL, **said, "store": False, **more}


class Conversations:
    """Numbers conversations through the whole run, so that none comes twice."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self, count: int, *, messages: int = BODY_MESSAGES) -> Iterator[list[Message]]:
        for _ in range(count):
            yield transcript(next(self._numbers), messages=messages)
