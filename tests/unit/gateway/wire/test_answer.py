"""gateway/wire/answer.py: what the end of an answer means, and what of it is kept."""

import orjson
import pytest

from gateway.wire.answer import (
    EVENT_BYTES_MAX,
    UNREAD_BYTES,
    UNREAD_MAX,
    Ending,
    StreamedAnswer,
    WholeAnswer,
    answer_of,
)
from gateway.wire.chat.wire import CHAT

LIMIT = 2 * EVENT_BYTES_MAX
SSE = [(b"content-type", b"text/event-stream; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]


def chunk(text: str, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


def whole(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("pieces", "is_cut", "ending"),
    [
        ([chunk("a"), chunk("", "stop"), DONE], False, Ending.COMPLETE),
        ([chunk("a", "stop")], False, Ending.COMPLETE),
        ([chunk("a"), DONE], True, Ending.COMPLETE),
        ([chunk("a")], False, Ending.CUT),
        ([chunk("a", "stop")], True, Ending.CUT),
        ([b'data: {"error": {"message": "no"}}\n\n'], False, Ending.ERROR),
        ([], False, Ending.CUT),
        ([b"<html>Bad Gateway</html>"], False, Ending.CUT),
    ],
)
def test_a_stream_ends_well_only_when_it_says_so(
    pieces: list[bytes], is_cut: bool, ending: Ending
) -> None:
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    for piece in pieces:
        answer.take(piece)
    assert answer.end(is_cut=is_cut) is ending


def test_what_ends_a_stream_is_held_back() -> None:
    """DESIGN 1.5: the client's end waits for the commit."""
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    answer.take(chunk("a", "stop"))
    assert answer.ready == chunk("a", "stop")
    answer.take(DONE)
    assert (answer.ready, answer.is_terminal) == (b"", True)
    answer.end(is_cut=False)
    assert answer.kept() == DONE


def test_a_stream_with_an_event_too_large_to_keep_is_not_kept_whole() -> None:
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    for piece in (chunk("a"), chunk("x" * EVENT_BYTES_MAX), chunk("b", "stop"), DONE):
        answer.take(piece)
    assert answer.end(is_cut=False) is Ending.COMPLETE
    assert answer.read().messages[0]["content"] == "ab"
    assert answer.is_truncated


def test_a_body_that_outgrows_the_limit_is_shown_but_for_its_newest_piece() -> None:
    answer = WholeAnswer(CHAT, status=200, limit_bytes=10)
    answer.take(b"12345678")
    assert answer.ready == b""
    answer.take(b"abcd")
    assert answer.ready == b"12345678"
    assert answer.end(is_cut=False) is Ending.COMPLETE
    assert answer.kept() == b"abcd"
    assert answer.is_truncated


def test_an_overflow_error_gets_its_status_and_its_words() -> None:
    """CASES B5 (litellm#28063)."""
    answer = WholeAnswer(CHAT, status=500, limit_bytes=LIMIT)
    answer.take(b'{"error": {"message": "prompt is too long: 9000 tokens"}}')
    assert answer.end(is_cut=False) is Ending.ERROR
    assert answer.status == 400
    assert orjson.loads(answer.kept())["error"]["code"] == "context_length_exceeded"


def test_a_body_comes_back_as_it_came() -> None:
    answer = answer_of(CHAT, 200, JSON, is_stream_asked=True, limit_bytes=LIMIT)
    body = whole("hello")
    for at in range(0, len(body), 9):
        answer.take(body[at : at + 9])
    assert answer.end(is_cut=False) is Ending.COMPLETE
    assert (answer.kept(), answer.is_truncated) == (body, False)


@pytest.mark.parametrize(
    ("status", "headers", "is_stream_asked", "kind"),
    [
        (200, SSE, False, StreamedAnswer),
        (200, JSON, True, WholeAnswer),
        (200, [(b"content-type", b"text/plain")], True, StreamedAnswer),
        (200, [(b"content-type", b"text/plain")], False, WholeAnswer),
        (429, SSE, True, WholeAnswer),
        (204, [], True, WholeAnswer),
    ],
)
def test_the_head_tells_what_kind_of_answer_begins(
    status: int, headers: list[tuple[bytes, bytes]], is_stream_asked: bool, kind: type
) -> None:
    answer = answer_of(CHAT, status, headers, is_stream_asked=is_stream_asked, limit_bytes=LIMIT)
    assert isinstance(answer, kind)


@pytest.mark.parametrize("body", [b"", b"<html>moved</html>", b'{"moved": true}'])
def test_a_redirect_is_no_answer_and_says_so(body: bytes) -> None:
    """It is not followed, since the request carries a key."""
    answer = answer_of(CHAT, 307, JSON, is_stream_asked=True, limit_bytes=LIMIT)
    answer.take(body)
    assert answer.end(is_cut=False) is Ending.CUT
    assert "307" in answer.lack


@pytest.mark.parametrize("count", [1, UNREAD_MAX - 1, UNREAD_MAX, 2 * UNREAD_MAX + 1])
@pytest.mark.parametrize("is_cut", [False, True])
def test_what_was_not_read_at_once_is_read_at_the_end_however_that_comes(
    count: int, is_cut: bool
) -> None:
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    for number in range(count):
        answer.take(chunk(f"{number} "))
    answer.end(is_cut=is_cut)
    (message,) = answer.read().messages
    assert message["content"] == "".join(f"{number} " for number in range(count))


def test_what_came_before_nothing_more_is_kept_is_kept() -> None:
    """DESIGN 1.13: memory ran out at that moment, not before."""
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    answer.take(chunk("kept"))
    answer.keep_no_more()
    answer.take(chunk("not kept"))
    assert answer.is_truncated
    (message,) = answer.read().messages
    assert message["content"].startswith("kept\n")
    assert "not kept" not in message["content"]


def test_what_waits_to_be_read_is_bounded_in_number_and_in_bytes() -> None:
    answer = StreamedAnswer(CHAT, limit_bytes=LIMIT)
    for _ in range(3 * UNREAD_MAX):
        answer.take(chunk("a"))
        assert len(answer._unread) < UNREAD_MAX
    answer.take(chunk("a" * UNREAD_BYTES))
    assert answer._unread == []
