"""Claude's account export: `conversations.json` with `chat_messages`. Pure.

Source: exports as parsers of them in public repositories read them in November 2026
(Sinity/polylogue docs/providers/claude-ai.md and its typed model; withLinda and socketteer's
exporters); Anthropic publishes no schema. A message has `uuid`, `sender` (human or assistant),
`text`, `content` blocks, `attachments` with what was read out of them, `files` by name, and in
newer exports `parent_message_uuid`, which makes a tree.
"""

from collections.abc import Iterable
from typing import Any

from library.importing.anthropic_blocks import bodies
from library.importing.items import EMPTY, Ended, Items, Row, Said, Unread
from library.importing.times import moment
from library.importing.trees import Links, parents_first, ref_of
from library.importing.wrapping import unwrapped

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def conversations(rows: Iterable[Row], name: str) -> Items:
    """Yield the messages of each conversation, every branch of it."""
    for row in unwrapped(rows):
        value = row.value
        if row.error or not isinstance(value, dict):
            yield Unread(row.place, row.error or "it is no JSON object")
        elif not isinstance(value.get("chat_messages"), list):
            yield Unread(row.place, "it has no 'chat_messages'")
        elif not isinstance(value.get("uuid"), str):
            yield Unread(row.place, "it has no 'uuid'")
        else:
            yield from _conversation(value, row.place)


def _conversation(value: dict[str, Any], place: str) -> Items:
    session_id = value["uuid"]
    messages: dict[str, dict[str, Any]] = {}
    parents: dict[str, str | None] = {}
    before = None
    for number, message in enumerate(value["chat_messages"]):
        if not isinstance(message, dict):
            yield Unread(f"{place}, message {number + 1}", "it is no JSON object")
            continue
        key = str(message.get("uuid") or number)
        messages[key] = message
        parents[key] = ref_of(message.get("parent_message_uuid", before))
        before = key
    links = Links()
    for key in parents_first(parents):
        after = links.message(parents[key])
        try:
            made = _bodies(key, messages[key])
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            yield Unread(f"{place}, message {key}", f"it cannot be read: {error!r}")
            made = None
        at = moment(messages[key].get("created_at"))
        for number, body in enumerate(made or ()):
            ref = key if number == 0 else f"{key}/{number}"
            yield Said(session_id, ref, after, body, at)
            after = ref
        if made == []:
            yield EMPTY
        links.passes(key, parents[key]) if after is None else links.stands(key, after)
    yield Ended(session_id, links.message(ref_of(value.get("current_leaf_message_uuid"))))


def _bodies(key: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    role = _ROLES[message["sender"]]
    blocks: list[Any] = [*(message.get("content") or ())]
    if not any(isinstance(one, dict) and one.get("text") for one in blocks) and message.get("text"):
        blocks.append({"type": "text", "text": message["text"]})
    for one in message.get("attachments") or ():
        text = f"{one.get('file_name') or 'attachment'}:\n{one.get('extracted_content') or ''}"
        blocks.append({"type": "text", "text": text})
    names = [one.get("file_name") for one in message.get("files") or ()]
    blocks += [{"type": "file", "file": {"filename": name}} for name in names]
    return bodies(role, blocks, names=key)
