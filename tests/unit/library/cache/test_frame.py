import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.cache import frame
from library.cache.contract import VALUE_BYTES_MAX, Key
from library.cache.frame import COMPRESS_BYTES, framed, unframed

KEY = Key("ranking", b"0123456789abcdef")


@given(st.binary(max_size=3_000) | st.binary(max_size=20).map(lambda piece: piece * 200))
def test_what_was_framed_comes_back(value: bytes) -> None:
    assert unframed(KEY, framed(KEY, value)) == value


@pytest.mark.parametrize("value", [b"", b"ranking", b"many words " * 300])
def test_a_value_with_any_byte_changed_or_cut_is_none(value: bytes) -> None:
    stored = framed(KEY, value)
    for at in range(len(stored)):
        for changed in (stored[at] ^ 1, stored[at] ^ 255):
            assert unframed(KEY, stored[:at] + bytes([changed]) + stored[at + 1 :]) is None
        assert unframed(KEY, stored[:at]) is None
    assert unframed(KEY, stored + b"\0") is None


@given(st.binary(max_size=200))
def test_garbage_is_none(stored: bytes) -> None:
    assert unframed(KEY, stored) is None


def test_a_value_under_another_key_is_none() -> None:
    stored = framed(KEY, b"value")
    assert unframed(Key("ranking", b"another key 1234"), stored) is None
    assert unframed(Key("question", KEY.digest), stored) is None


def test_a_large_value_is_stored_smaller() -> None:
    value = b"seq 12345, score 0.5; " * 500
    assert len(value) > COMPRESS_BYTES
    assert len(framed(KEY, value)) < len(value) / 5


def test_a_value_that_grows_beyond_the_bound_is_none() -> None:
    packed = zlib.compress(b"\0" * (VALUE_BYTES_MAX + 1))
    stored = frame._digest(KEY, b"z", packed) + b"z" + packed
    assert unframed(KEY, stored) is None
