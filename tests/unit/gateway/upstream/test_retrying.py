"""When a failed request is sent again."""

import pytest

from gateway.upstream.retrying import RETRY_AFTER_MAX_S, retry_delay_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0.25),
        ({b"retry-after": b"2"}, 2.0),
        ({b"retry-after": b"0"}, 0.0),
        ({b"retry-after-ms": b"150", b"retry-after": b"9"}, 0.15),
        ({b"retry-after": b"3600"}, None),
        ({b"retry-after": b"Wed, 21 Oct 2026 07:28:00 GMT"}, 0.25),
        ({b"retry-after": b"-1"}, 0.25),
        ({b"retry-after": b"."}, 0.25),
        ({b"retry-after": "²".encode("latin-1")}, 0.25),
    ],
)
def test_a_bounded_retry_after_is_honoured(headers: dict[bytes, bytes], expected: float) -> None:
    assert retry_delay_s(0, headers) == expected


def test_the_wait_grows_up_to_a_bound() -> None:
    waits = [retry_delay_s(attempt, {}) for attempt in range(8)]
    assert waits[:3] == [0.25, 0.5, 1.0]
    assert waits[-1] == RETRY_AFTER_MAX_S
