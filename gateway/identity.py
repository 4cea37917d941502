"""Which session a request says it belongs to. Pure.

The client's own words only: a header made for us, headers that known clients send, then fields of
the body (DESIGN 4.2). When none is there the thread is found by content, which is the library's
work. `conversation` stands before the other fields, since it is what the past is asked for by.
`previous_response_id` is not read here: it names the reply before, another one every turn, and the
store knows which thread that is of (gateway/routes/continuing.py).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

SESSION_CHARS_MAX = 256
BY_CONTENT = "content"
_HEADERS = (
    "x-library-session",
    "x-claude-code-session-id",
    "x-session-affinity",
    "x-session-id",
    "x-opencode-session",
    "session_id",
)
_METADATA_FIELDS = ("session_id", "conversation_id", "thread_id")
_USER_ID_MARK = "_session_"
"""Claude Code's `metadata.user_id` is `user_HASH_account_UUID_session_UUID`."""


class BadSession(Exception):
    """The session named by `source` is longer than the limit or holds unprintable characters."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"the session id in {source!r} must be 1 to {SESSION_CHARS_MAX} printable characters"
        )
        self.source = source


def session_of(headers: Mapping[str, str], fields: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the session id, or None, and what named it.

    `headers` has lower-case names.

    Raises:
        BadSession: the first session named is not fit to be one.

    """
    for name in _HEADERS:
        if name in headers:
            return _checked(headers[name], name), name
    for name, value in _named_in_body(fields):
        if isinstance(value, str):
            return _checked(value, name), name
    return None, BY_CONTENT


def _named_in_body(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what may name a session, in order, with its name."""
    conversation = fields.get("conversation")
    yield (
        "conversation",
        conversation.get("id") if isinstance(conversation, dict) else conversation,
    )
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for name in _METADATA_FIELDS:
        yield f"metadata.{name}", metadata.get(name)
    yield "prompt_cache_key", fields.get("prompt_cache_key")
    user_id = metadata.get("user_id")
    yield "metadata.user_id", _session_part(user_id) if isinstance(user_id, str) else None


def _session_part(user_id: str) -> str | None:
    """Return the session in a `user_id`; one without a session names a person, not a thread."""
    if user_id.startswith("{"):
        try:
            fields = orjson.loads(user_id)
        except orjson.JSONDecodeError:
            return None
        session = fields.get("session_id")
        return session if isinstance(session, str) else None
    _, mark, session = user_id.rpartition(_USER_ID_MARK)
    return session if mark else None


def _checked(session: str, source: str) -> str:
    if not 0 < len(session) <= SESSION_CHARS_MAX or not session.isprintable():
        raise BadSession(source)
    return session
