import json
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of
from gateway.wire.chat.request import decode
from gateway.wire.seen import SeenMessages
from governor.errors import MalformedTranscript


def body(*messages: Any) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages)}).encode()


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def read_again(seen: SeenMessages, items: list[bytes]) -> list[bytes]:
    """Return the items that had to be read."""
    missing = [one for one, known in zip(items, seen.known(items), strict=True) if known is None]
    for item in missing:
        seen.keep(item, (message_of(said(item.decode())),))
    return missing


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30), st.integers(0, 6_000))
def test_what_is_remembered_never_differs_from_what_is_read(texts: list[str], size: int) -> None:
    seen = SeenMessages(size)
    for text in texts:
        request = decode(body(said(text), said(text * 3)), seen)
        assert request.messages == (message_of(said(text)), message_of(said(text * 3)))


def test_a_message_that_comes_again_is_not_read_again() -> None:
    seen = SeenMessages()
    first = decode(body(said("one"), said("two")), seen)
    again = decode(body(said("one"), said("two"), said("three")), seen)
    assert all(a is b for a, b in zip(first.messages, again.messages, strict=False))
    assert (seen.hits, seen.misses) == (2, 3)


def test_what_is_kept_stays_within_its_limit_and_the_used_stays_longest() -> None:
    seen = SeenMessages(40_000)
    read_again(seen, [b"used"])
    for number in range(200):
        assert read_again(seen, [b"used", b"passing %d" % number]) == [b"passing %d" % number]
    assert seen.held_count * 900 <= 40_000


def test_a_transcript_that_fits_the_room_is_never_read_again() -> None:
    """Issue 2, Speed: 4 MB of known messages, re-sent with a new one each time."""
    said_before = [b"%d " % number + b"x" * 2_000 for number in range(2_000)]
    seen = SeenMessages()
    for turn in range(5):
        read_again(seen, [*said_before, b"new %d" % turn])
    assert seen.misses == 2_000 + 5


def test_what_is_forgotten_is_read_anew() -> None:
    """DESIGN 9: deleting a thread deletes its cache entries."""
    seen = SeenMessages()
    decode(body(said("one"), said("two")), seen)
    seen.forget()
    assert seen.held_count == 0
    decode(body(said("one")), seen)
    assert (seen.hits, seen.misses) == (0, 3)


def test_a_bad_message_is_named_by_its_place_each_time() -> None:
    seen = SeenMessages()
    for index in (1, 2):
        with pytest.raises(MalformedTranscript) as caught:
            decode(body(*[said("ok")] * index, {"role": 5}), seen)
        assert caught.value.index == index


def test_what_is_counted_is_counted_within_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large requests are read in threads: two of them at once lost counts."""
    seen, counted = SeenMessages(), list[int]()

    class Noting(nullcontext[None]):
        def __exit__(self, *_: object) -> None:
            counted.append(seen.misses)

    monkeypatch.setattr(seen, "_lock", Noting())
    seen.known([b"one", b"two"])
    assert counted == [2]
