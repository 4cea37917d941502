"""How a request names its session."""

from typing import Any

import pytest
from hypothesis import given, strategies

from gateway.identity import BadSession, session_of


@pytest.mark.parametrize(
    ("headers", "fields", "expected"),
    [
        ({"x-library-session": "a", "x-session-id": "b"}, {}, ("a", "x-library-session")),
        ({"x-session-id": "b"}, {"prompt_cache_key": "c"}, ("b", "x-session-id")),
        ({"session_id": "d"}, {}, ("d", "session_id")),
        ({}, {"metadata": {"thread_id": "t"}}, ("t", "metadata.thread_id")),
        ({}, {"prompt_cache_key": "c", "conversation": "v"}, ("v", "conversation")),
        ({}, {"conversation": {"id": "v"}}, ("v", "conversation")),
        ({}, {"metadata": {"user_id": "user_1_account_2_session_9"}}, ("9", "metadata.user_id")),
        ({}, {"metadata": {"user_id": '{"session_id": "8"}'}}, ("8", "metadata.user_id")),
        ({}, {"metadata": {"user_id": "alice"}, "user": "alice"}, (None, "content")),
        ({}, {"metadata": None, "conversation": None, "prompt_cache_key": 3}, (None, "content")),
    ],
)
def test_the_first_that_is_named_counts(
    headers: dict[str, str], fields: dict[str, Any], expected: tuple[str | None, str]
) -> None:
    assert session_of(headers, fields) == expected


HEADERS = (
    "x-library-session",
    "x-claude-code-session-id",
    "x-session-affinity",
    "x-session-id",
    "x-opencode-session",
    "session_id",
)
FIELDS = (
    "conversation",
    "metadata.session_id",
    "metadata.conversation_id",
    "metadata.thread_id",
    "prompt_cache_key",
    "metadata.user_id",
)


def test_the_most_trusted_counts_whatever_else_is_named() -> None:
    """Issue 5 and DESIGN 4.2: our header, those of known clients, fields of the body, content."""
    headers = {name: f"of {name}" for name in HEADERS}
    metadata = {
        name.partition(".")[2]: f"of {name}" for name in FIELDS if name.startswith("metadata.")
    }
    metadata["user_id"] = "user_1_account_2_session_of metadata.user_id"
    fields: dict[str, Any] = {
        "conversation": "of conversation",
        "metadata": metadata,
        "prompt_cache_key": "of prompt_cache_key",
    }
    found = []
    while (named := session_of(headers, fields))[0] is not None:
        session, source = named
        assert session == f"of {source}"
        found.append(source)
        headers.pop(source, None)
        fields.pop(source, None)
        metadata.pop(source.partition(".")[2], None)
    assert found == [*HEADERS, *FIELDS]
    assert named == (None, "content")


def test_a_session_may_have_256_characters_of_any_script() -> None:
    session = "漢" * 256
    assert session_of({"x-library-session": session}, {})[0] == session


@pytest.mark.parametrize("session", ["", "x" * 257, "a\x00b", "a\nb"])
def test_a_session_that_is_not_fit_to_be_one_is_refused(session: str) -> None:
    with pytest.raises(BadSession, match="x-library-session"):
        session_of({"x-library-session": session}, {})
    with pytest.raises(BadSession):
        session_of({}, {"metadata": {"session_id": session}})


@given(strategies.text(max_size=300))
def test_a_user_id_never_raises_anything_but_that(user_id: str) -> None:
    try:
        session, _ = session_of({}, {"metadata": {"user_id": user_id}})
    except BadSession:
        return
    assert session is None or session in user_id
