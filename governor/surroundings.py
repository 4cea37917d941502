"""What a client says of its surroundings inside a message: no part of what was said. Pure.

Coding agents put the date, the working folder, open files and reminders between tags into the
user's messages and their tools' results, and take them out or change them in the next request. Such
a block is stored and sent on as it came, but does not tell one message from another: a thread would
split at midnight (CASES H2, billion-context#61).

Only tags that clients write themselves are known here. A tag that people use in prompts of their
own (`<context>`, `<document>`) must not be: two questions about two documents are two.

Source: the prompts of Claude Code and OpenCode (system-reminder, env), Codex (environment_context),
Cline, Roo Code and Kilo Code (environment_details), VS Code's agent (environment_info,
workspace_info), read in their public repositories in November 2026.
"""

import re

TAGS = (
    "system-reminder",
    "env",
    "environment_context",
    "environment_details",
    "environment_info",
    "workspace_info",
)
_OPENING = re.compile(f"<({'|'.join(TAGS)})>")


def without_surroundings(text: str) -> str:
    """Return the text without such blocks; itself where there is none. Linear in the text."""
    if "<" not in text:
        return text
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    """Tags that nothing closes any more: each is looked for to the end once."""
    while found := _OPENING.search(text, at):
        tag = found[1]
        end = -1 if tag in unclosed else text.find(f"</{tag}>", found.end())
        if end < 0:
            unclosed.add(tag)
            kept.append(text[at : found.end()])
            at = found.end()
        else:
            kept.append(text[at : found.start()])
            at = end + len(tag) + 3
    return "".join((*kept, text[at:])) if kept else text


def has_surroundings(text: str) -> bool:
    """Tell whether there is such a block in a text."""
    return len(without_surroundings(text)) < len(text)


def is_surroundings(text: str) -> bool:
    """Tell whether a text holds such blocks and nothing else."""
    return text.lstrip().startswith("<") and not without_surroundings(text).strip()
