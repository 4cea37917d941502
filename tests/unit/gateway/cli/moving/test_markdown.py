"""A thread's page."""

from typing import Any

from gateway.cli.moving.markdown import Page, file_name
from library.chain import ROOT, extend
from library.moving.lines import event_line
from library.moving.records import MovedEvent
from library.store.encoding import readable


def line(after: bytes, seq: int, text: str, **more: Any) -> tuple[dict[str, Any], bytes]:
    digest = bytes([seq]) * 16
    body = {"role": "user", "content": text}
    event = MovedEvent(after, digest, "user", body, text, seq=seq, **more)
    return event_line("t", event, is_text_of_body=True), extend(after, digest)


def test_messages_stand_word_for_word_and_a_branch_says_what_it_follows() -> None:
    first, one = line(ROOT, 1, "def f():\n\treturn 1")
    second, two = line(one, 2, "answer")
    third, _ = line(one, 3, "other answer", is_partial=True)
    page = Page({"thread": "t", "session_id": "s", "collection": "c", "head": two.hex()}, readable)
    told = "".join([page.head(), *map(page.message, (first, second, third)), page.foot()])
    assert told == (
        "# s\n\n- collection: c\n- thread: t\n"
        "\n## user ·  · e1\n\ndef f():\n\treturn 1\n"
        "\n## user ·  · e2\n\nanswer\n"
        "\n## user ·  · e3 · cut\n\n> follows e1\n\nother answer\n"
        "\n---\n\nThe conversation goes on from e2.\n"
    )


def test_a_file_name_is_one_everywhere() -> None:
    thread = {
        "thread": "0123",
        "session_id": "../../etc/a b:c\\d",
        "created_at": "2024-05-06T00:00:00+00:00",
    }
    assert file_name(thread) == "2024-05-06-etc-a-b-c-d-0123.md"
    assert file_name({"thread": "0123"}) == "0123.md"
    assert len(file_name({"thread": "0123", "session_id": "x" * 256})) < 120
