"""Encoded answers, whole and damaged, however they are cut."""

import gzip
import zlib
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from gateway.body.decoding import STEP_BYTES, decoder_for, in_steps

TEXT = b"data: {}\n\n" * 2_000
ENCODED = {
    b"gzip": gzip.compress(TEXT),
    b"x-gzip": gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
    b"deflate": zlib.compress(TEXT),
    b" Deflate": zlib.compress(TEXT)[2:-4],
    b"br": brotli.compress(TEXT),
    b"zstd": zstd.compress(TEXT),
    b" Zstd": zstd.compress(TEXT[:100]) + zstd.compress(TEXT[100:]),
}


def decoded(encoding: bytes, pieces: list[bytes]) -> bytes:
    decoder = decoder_for(encoding)
    assert decoder is not None
    out = b"".join(step for piece in pieces for step in in_steps(decoder, piece))
    decoder.end()
    return out


@pytest.mark.parametrize("encoding", ENCODED)
@given(cuts=st.lists(st.integers(0, 400), max_size=6))
def test_an_answer_is_decoded_the_same_however_it_is_cut(encoding: bytes, cuts: list[int]) -> None:
    data = ENCODED[encoding]
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    pieces = [data[low:high] for low, high in pairwise(places)]
    assert decoded(encoding, pieces) == TEXT


@pytest.mark.parametrize("encoding", ENCODED)
def test_no_step_is_larger_than_the_bound(encoding: bytes) -> None:
    """CASES E2 (vekil PR#6), the other way round: some bytes that stand for 20 MB."""
    text = bytes(20_000_000)
    encoders: dict[bytes, Callable[[bytes], bytes]] = {
        b"br": partial(brotli.compress, quality=3),
        b"zstd": zstd.compress,
        b" Zstd": zstd.compress,
        b"deflate": zlib.compress,
        b" Deflate": lambda plain: zlib.compress(plain)[2:-4],
    }
    data = encoders.get(encoding, gzip.compress)(text)
    decoder = decoder_for(encoding)
    assert decoder is not None
    sizes = [len(step) for step in decoder.steps(data)]
    assert sum(sizes) == len(text)
    assert max(sizes) <= STEP_BYTES * (1.5 if encoding == b"br" else 1)
    decoder.end()


def test_a_last_byte_may_stand_for_more_than_a_step_brings() -> None:
    """Of a bare stream, which has no checksum behind it, the rest was left in the decoder."""
    for size in range(STEP_BYTES, STEP_BYTES + 300):
        assert decoded(b"deflate", [zlib.compress(bytes(size))[2:-4]]) == bytes(size)


def test_what_stands_behind_the_end_of_a_stream_is_not_kept() -> None:
    """zlib copies all of it with each further step: 64 MiB took a thread a minute."""
    decoder = decoder_for(b"deflate")
    assert decoder is not None
    plain = [*in_steps(decoder, zlib.compress(b"{}")), *decoder.steps(b"x"), *decoder.steps(b"x")]
    assert b"".join(plain) == b"{}"
    assert decoder._decoder.unused_data == b""  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ENCODED)
def test_one_that_breaks_off_or_is_damaged_says_so(encoding: bytes) -> None:
    data = ENCODED[encoding]
    with pytest.raises(ValueError, match="breaks off"):
        decoded(encoding, [data[:-6]])
    with pytest.raises(ValueError, match=r"damaged|breaks off"):
        decoded(encoding, [b"\xff\xff\xff no such thing"])


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_empty_answer_needs_no_encoding(encoding: bytes) -> None:
    assert decoded(encoding, []) == b""


def test_an_encoding_that_we_do_not_have_is_left_as_it_is() -> None:
    assert decoder_for(b"identity") is None
    assert decoder_for(b"compress") is None
