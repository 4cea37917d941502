"""Codex's session files: rollouts, JSON lines under `~/.codex/sessions`. Pure.

Each line has `timestamp`, `type` and `payload`. `session_meta` names the session (the first one
counts: a fork copies its parent's behind it), `response_item` holds an item of the Responses API.
`event_msg` repeats them for the screen, but for `thread_rolled_back`, which says how many turns of
the user were taken back. `compacted` repeats what stands before it. Files of the first versions
have the items bare, without `payload`.

What the model does between two items of the client's is one message, as one answer is.

Source: lin-guanguo.github.io "Codex Session Files - Detailed Schema"; kvsankar/agent-history
docs/codex-format.md; openai/codex codex-rs/protocol (RolloutItem, ResponseItem), November 2026.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import orjson

from library.importing.anthropic_blocks import joined
from library.importing.items import EMPTY, SYSTEM, Ended, Item, Items, Row, Said, Unread
from library.importing.times import moment

Body = dict[str, Any]
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_NO_MESSAGES = frozenset({"ghost_snapshot", "compaction", "other"})
_CLIENT_WORDS = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""Begin messages of role user that the program wrote: they open no turn of the user's."""


def session(rows: Iterable[Row], name: str) -> Items:
    """Yield the messages of a rollout."""
    chat = _Chat(name)
    for row in rows:
        line = row.value
        if row.error or not isinstance(line, dict):
            yield Unread(row.place, row.error or "it is no JSON object")
            continue
        try:
            yield from chat.take(line, row.place)
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            yield Unread(row.place, f"it cannot be read: {error!r}")
    yield from chat.flush()
    yield Ended(chat.session_id, chat.last)


class _Chat:
    def __init__(self, name: str) -> None:
        self.session_id = name
        self.last: str | None = None
        self._is_named = False
        self._run: list[Body] = []
        self._run_at: datetime | None = None
        self._count = 0
        self._turns: list[str | None] = []
        """What stood before each turn of the user."""

    def take(self, line: Body, place: str) -> Items:
        kind = line.get("type")
        payload = line.get("payload")
        if kind == "session_meta" or (kind is None and "id" in line):
            self._name(payload if isinstance(payload, dict) else line)
        elif kind == "event_msg" and isinstance(payload, dict):
            if payload.get("type") == "thread_rolled_back":
                yield from self.flush()
                self._roll_back(int(payload.get("num_turns") or 0))
        elif kind == "response_item" and isinstance(payload, dict):
            yield from self._item(payload, moment(line.get("timestamp")), place)
        elif payload is None and kind is not None and (kind == "message" or kind in _KNOWN):
            yield from self._item(line, moment(line.get("timestamp")), place)

    def _name(self, meta: Body) -> None:
        inner = meta.get("meta")  # Some versions put it one deeper, beside the state of git.
        meta = inner if isinstance(inner, dict) else meta
        identifier = meta.get("id") or meta.get("session_id")
        if isinstance(identifier, str) and identifier and not self._is_named:
            self.session_id = identifier
            self._is_named = True

    def _roll_back(self, count: int) -> None:
        if 0 < count <= len(self._turns):
            self.last = self._turns[-count]
            del self._turns[-count:]

    def _item(self, item: Body, at: datetime | None, place: str) -> Items:
        kind = item.get("type")
        if kind in _OUTPUTS:
            yield from self.flush()
            yield self._said(_output(item), at)
        elif kind == "message" and item.get("role") in {"system", "developer"}:
            yield SYSTEM
        elif kind == "message" and item.get("role") == "user":
            yield from self.flush()
            yield self._user(item, at)
        elif kind in _NO_MESSAGES:
            return
        elif isinstance(kind, str):
            _answer([item])  # What is wrong with it is said here, and costs no other.
            self._run_at = self._run_at or at
            self._run.append(item)
        else:
            yield Unread(place, "an item without a type")

    def _user(self, item: Body, at: datetime | None) -> Item:
        words = joined(_parts(item.get("content")))
        if not words:
            return EMPTY
        if not (isinstance(words, str) and words.startswith(_CLIENT_WORDS)):
            self._turns.append(self.last)
        return self._said({"role": "user", "content": words}, at)

    def flush(self) -> Items:
        """Yield what the model did since the client's last item."""
        run, self._run = self._run, []
        at, self._run_at = self._run_at, None
        if not run:
            return
        body = _answer(run)
        yield EMPTY if body is None else self._said(body, at)

    def _said(self, body: Body, at: datetime | None) -> Said:
        self._count += 1
        item = Said(self.session_id, str(self._count), self.last, body, at)
        self.last = item.ref
        return item


_KNOWN = _OUTPUTS | _CALLS | {"reasoning"}


def _answer(run: list[Body]) -> Body | None:
    """Return a run of the model's items as one message; None: it holds reasoning alone."""
    parts: list[Body] = []
    calls: list[Body] = []
    thoughts: list[str] = []
    for item in run:
        if item["type"] == "message":
            parts += _parts(item.get("content"))
        elif item["type"] in _CALLS:
            calls.append(_call(item))
        elif item["type"] == "reasoning":
            thoughts += [part["text"] for part in _parts(item.get("summary")) if "text" in part]
        else:
            parts.append(item)
    if not parts and not calls:
        return None
    body: Body = {"role": "assistant", "content": joined(parts)}
    if calls:
        body["tool_calls"] = calls
    if thoughts:
        body["reasoning_content"] = "\n".join(thoughts)
    return body


def _call(item: Body) -> Body:
    identifier = str(item.get("call_id") or item.get("id") or "")
    if item["type"] == "custom_tool_call":
        custom = {"name": str(item.get("name")), "input": _string(item.get("input"))}
        return {"id": identifier, "type": "custom", "custom": custom}
    name = str(item.get("name") or "local_shell")
    arguments = _string(item["arguments"] if "arguments" in item else item.get("action"))
    function = {"name": name, "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


def _output(item: Body) -> Body:
    output = item.get("output")
    if isinstance(output, dict):  # As the first versions wrote it, with `success` beside it.
        output = output.get("content", output)
    words = joined(_parts(output)) if isinstance(output, list) else _string(output)
    return {"role": "tool", "tool_call_id": str(item.get("call_id") or ""), "content": words or ""}


def _parts(content: Any) -> list[Body]:
    """Return content parts of the Responses API as those of chat completions."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    found = []
    for part in content or ():
        kind = part.get("type")
        if isinstance(part.get("text"), str):
            found.append({"type": "text", "text": part["text"]})
        elif isinstance(part.get("refusal"), str):
            found.append({"type": "refusal", "refusal": part["refusal"]})
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            found.append({"type": "image_url", "image_url": {"url": part["image_url"]}})
        else:
            found.append(part)
    return found


def _string(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
