"""The latest plan of an agent, which it goes on with long after the step that made it. Pure.

A coding agent writes down its plan once in a while, by a tool for that or in a list, and then works
for a hundred steps. When the recent window has moved past it, nobody asks for it by its words. So
it is held like a pin, and it is chosen only when the window moves: a plan that is written meanwhile
is in the window, and the prompt keeps its prefix.

Source: the tools of Claude Code (TodoWrite), opencode (todowrite), Codex (update_plan), Gemini CLI
and LangChain's deep agents (write_todos), VS Code (manage_todo_list), Roo Code (update_todo_list).
"""

import re

from governor.message import Message
from governor.transcript import Transcript

UNITS_MAX = 2_000
"""So far back a plan is looked for: some days of an agent's steps, in a few milliseconds."""
WORDS_MAX = 8_000
"""Characters of a message that may say a plan; a longer text is an essay."""
ITEMS_MIN = 3
"""A list of fewer is no plan."""
_TOOL = re.compile(
    r"^(?:todo_?write|update_plan|write_todos?|(?:manage|update)_todo_?list|set_plan)\(",
    re.MULTILINE | re.IGNORECASE,
)
_CALL = re.compile(r"^[\w.:-]+\(", re.MULTILINE)
"""Where a message's calls begin, behind its words."""
_TITLE = re.compile(r"\b(?:plan|todos?|to-do list|next steps)\b", re.IGNORECASE)
# Blank, but no line break: to look through thousands of those once for each takes a second.
_INDENT = r"^[^\S\n]*"
_BOX = re.compile(_INDENT + r"(?:[-*]|\d+[.)]) \[[ xX~-]\] ", re.MULTILINE)
_BULLET = re.compile(_INDENT + r"[-*] \S", re.MULTILINE)


def says_plan(message: Message) -> bool:
    """Tell whether the assistant writes down a plan in a message; linear in its length."""
    if message.role != "assistant":
        return False
    if message.call_ids and _TOOL.search(message.text):
        return True
    words = message.text
    if message.call_ids and (call := _CALL.search(words)):
        words = words[: call.start()]
    words = words[:WORDS_MAX]
    if len(_BOX.findall(words)) >= ITEMS_MIN:
        return True
    title = _TITLE.search(words)
    return title is not None and _is_list(words[title.end() :])


def _is_list(text: str) -> bool:
    """Tell whether a text has the numbers of a list in their order, in lines or in a row, or
    bullets."""
    at = 0
    for number in range(1, ITEMS_MIN + 1):
        found = re.compile(rf"(?:^|\s){number}[.)]\s").search(text, at)
        if found is None:
            return len(_BULLET.findall(text)) >= ITEMS_MIN
        at = found.end() - 1
    return True


def latest_plan(transcript: Transcript) -> int | None:
    """Return the newest message that says a plan; None: there is none in the newest units."""
    for unit in reversed(transcript.units[-UNITS_MAX:]):
        for at in reversed(range(unit.start, unit.stop)):
            if says_plan(transcript.messages[at]):
                return at
    return None
