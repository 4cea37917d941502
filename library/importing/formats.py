"""The formats that can be imported, by name, and what reads each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from library.importing import (
    chatgpt,
    claude_account,
    claude_code,
    codex,
    openai_chat,
    rlm_claude,
)
from library.importing.databases import seed_library, seed_ralc
from library.importing.items import Items, Row

EXPORT = "library"
"""Our own export, which is no list of messages: see library/moving."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    title: str
    read: Callable[[Iterable[Row], str], Items] | None = None
    """Reads the JSON values of a file of some name; None: it is read from its path."""
    read_path: Callable[[Path], Items] | None = None


FORMATS = {
    EXPORT: Format("what `export` wrote"),
    "openai-chat": Format("chats with `messages`: one, a list, or one a line", openai_chat.chats),
    "messages": Format("messages: a list, or one a line", openai_chat.messages),
    "chatgpt": Format("ChatGPT's account export, zipped or not", chatgpt.conversations),
    "claude": Format("Claude's account export, zipped or not", claude_account.conversations),
    "claude-code": Format("session files of Claude Code", claude_code.session),
    "codex": Format("session files of Codex", codex.session),
    "rlm-claude": Format("rlm-claude's folder", read_path=rlm_claude.folder),
    "seed-library": Format("The Library of Context's database", read_path=seed_library),
    "ralc": Format("RALC's database", read_path=seed_ralc),
}
