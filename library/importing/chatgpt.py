"""ChatGPT's account export: `conversations.json`, or its parts, with one tree a conversation. Pure.

A conversation's `mapping` holds nodes with `parent`, `children` and a message or none;
`current_node` is where its live branch ends. A message to a `recipient` other than `all` is a call
of that tool, and a message of role `tool` behind it is the result.

Source: exports as parsers of them in public repositories read them in November 2026
(mitkury/chatgpt-export-parser docs/chatgpt-data-export-format.md, josephjohncox/chatgpt-json-to-md,
Sinity/polylogue, mohamed-chs/convoviz docs/dev/chatgpt-spec.md v3.0); OpenAI publishes no schema.
Content types that those name and that are no words
(`thoughts`, `reasoning_recap`, `user_editable_context`) are left out.
"""

from collections.abc import Iterable
from typing import Any

from library.importing.anthropic_blocks import joined
from library.importing.items import (
    EMPTY,
    HIDDEN,
    REASONING,
    SYSTEM,
    Ended,
    Item,
    Items,
    LeftOut,
    Row,
    Said,
    Unread,
)
from library.importing.times import moment
from library.importing.trees import Links, parents_first, ref_of
from library.importing.wrapping import unwrapped

_TEXT_TYPES = frozenset(
    {"text", "multimodal_text", "code", "execution_output", "system_error", "tether_quote"}
    | {"tether_browsing_display", "sonic_webpage", "computer_output", "citable_code_output"}
)
_REASONING_TYPES = frozenset({"thoughts", "reasoning_recap"})
_ROLES = frozenset({"user", "assistant", "tool"})


def conversations(rows: Iterable[Row], name: str) -> Items:
    """Yield the messages of each conversation, every branch of it."""
    for row in unwrapped(rows):
        value = row.value
        if row.error or not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
            yield Unread(row.place, row.error or "it has no 'mapping'")
            continue
        session_id = value.get("conversation_id") or value.get("id")
        if not isinstance(session_id, str) or not session_id:
            yield Unread(row.place, "it has no 'conversation_id'")
            continue
        yield from _Conversation(session_id, value, row.place).items()


class _Conversation:
    def __init__(self, session_id: str, value: dict[str, Any], place: str) -> None:
        self._session_id = session_id
        self._place = place
        self._value = value
        self._nodes = {
            key: node for key, node in value["mapping"].items() if isinstance(node, dict)
        }
        self._links = Links()
        self._calls: dict[str, str] = {}
        """Message -> the call that a result behind it answers."""
        self._at = moment(value.get("create_time"))

    def items(self) -> Items:
        parents = {key: ref_of(node.get("parent")) for key, node in self._nodes.items()}
        for key in parents_first(parents, self._in_order()):
            item = self._item(key, self._nodes[key].get("message"), parents[key])
            if isinstance(item, Said):
                self._links.stands(key, key)
            else:
                self._links.passes(key, parents[key])
            if item is not None:
                yield item
        yield Ended(self._session_id, self._links.message(ref_of(self._value.get("current_node"))))

    def _in_order(self) -> list[str]:
        """Return the nodes with siblings as their parent lists them."""
        listed = [
            child
            for node in self._nodes.values()
            if isinstance(node.get("children"), list)
            for child in node["children"]
            if isinstance(child, str) and child in self._nodes
        ]
        return list(dict.fromkeys([*listed, *self._nodes]))

    def _item(self, key: str, message: Any, parent: str | None) -> Item | None:
        """Return what a node holds; None: nothing at all."""
        if message is None:
            return None
        try:
            return self._said(key, message, self._links.message(parent))
        except (AttributeError, TypeError, LookupError, ValueError) as error:
            return Unread(f"{self._place}, node {key}", f"its message cannot be read: {error!r}")

    def _said(self, key: str, message: dict[str, Any], after: str | None) -> Item:
        role = message["author"]["role"]
        content = message.get("content") or {}
        metadata = message.get("metadata") or {}
        kind = content.get("content_type")
        if role == "system" or kind in {"user_editable_context", "model_editable_context"}:
            return SYSTEM
        if metadata.get("is_visually_hidden_from_conversation"):
            return HIDDEN
        if kind in _REASONING_TYPES:
            return REASONING
        if role not in _ROLES:
            return Unread(f"{self._place}, node {key}", f"nobody is known as {role!r}")
        words = joined([*_parts(content), *_attached(metadata)])
        if not words:
            return EMPTY if kind in _TEXT_TYPES else LeftOut(f"contents of type {kind}")
        at = self._at = moment(message.get("create_time")) or self._at
        body = self._body(key, role, words, message, after)
        return Said(self._session_id, key, after, body, at)

    def _body(
        self, key: str, role: str, words: Any, message: dict[str, Any], after: str | None
    ) -> dict[str, Any]:
        answers = self._calls.get(after or "", "")
        recipient = message.get("recipient") or "all"
        if role == "tool":
            self._calls[key] = answers  # What comes next may be one more result of the call.
            return {"role": "tool", "tool_call_id": answers, "content": words}
        if role == "assistant" and recipient != "all":
            self._calls[key] = key
            arguments = words if isinstance(words, str) else str(words)
            function = {"name": recipient, "arguments": arguments}
            call = {"id": key, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"role": role, "content": words}


def _parts(content: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    quoted = (content.get("title"), content.get("url"), content.get("text"), content.get("result"))
    for part in [*(content.get("parts") or ()), *quoted]:
        if isinstance(part, str):
            found += [{"type": "text", "text": part}] if part.strip() else []
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            found.append({"type": "text", "text": part["text"]})  # What a voice said.
        elif isinstance(part, dict):
            found.append({"type": str(part.get("content_type") or "unknown")} | part)
    return found


def _attached(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the names of attached files as parts: the export holds the files themselves apart."""
    return [
        {"type": "file", "file": {"filename": one.get("name"), "file_id": one.get("id")}}
        for one in metadata.get("attachments") or ()
        if isinstance(one, dict)
    ]
