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
