"""Request bodies: whole, decoded, and never larger than allowed."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd
from hypothesis import given, strategies

from gateway.body import reading as body_module
from gateway.body.reading import ClientGone, decoded, read_body
from gateway.refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, EncodingUnsupported

LIMIT = 100_000


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("body", [b"", b"{}", b'{"a": 1}' * 5_000])
async def test_what_was_encoded_comes_out(name: str, body: bytes) -> None:
    """CASES E2 (vekil PR#6)."""
    assert await decoded(ENCODERS[name](body), name, limit_bytes=LIMIT) == body


async def test_a_bare_deflate_stream_and_gzip_members_are_understood() -> None:
    assert await decoded(raw_deflate(b"abc"), "deflate", limit_bytes=LIMIT) == b"abc"
    two = gzip.compress(b"one") + gzip.compress(b"two")
    assert await decoded(two, "gzip", limit_bytes=LIMIT) == b"onetwo"


async def test_zstd_frames_in_a_row_are_one_body() -> None:
    """Whoever ends a frame with each write sends them; all but the first was left out, unsaid."""
    frames = [zstd.compress(b"%d" % at) for at in range(2_000)]
    whole = b"".join(b"%d" % at for at in range(2_000))
    assert await decoded(b"".join(frames), "zstd", limit_bytes=LIMIT) == whole
    with pytest.raises(BodyUnreadable):
        await decoded(b"".join(frames)[:-1], "zstd", limit_bytes=LIMIT)
    with pytest.raises(BodyTooLarge):
        await decoded(b"".join(frames), "zstd", limit_bytes=len(whole) - 1)


async def test_many_members_are_decoded_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 1.13: a body of 8 MiB held a thread for a minute, and more for hours."""
    fed_bytes: list[int] = []
    real = zlib.decompressobj

    class Decoder:
        """zlib's, which tells how much it is given."""

        def __init__(self, window_bits: int) -> None:
            self._inner = real(window_bits)

        def decompress(self, data: bytes, most_bytes: int) -> bytes:
            fed_bytes.append(len(data))
            return self._inner.decompress(data, most_bytes)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    monkeypatch.setattr(zlib, "decompressobj", Decoder)
    members = [gzip.compress(b"%d" % at) for at in range(2_000)]
    whole = b"".join(b"%d" % at for at in range(2_000))
    assert await decoded(b"".join(members), "gzip", limit_bytes=LIMIT) == whole
    assert max(fed_bytes) <= 4_096
    assert len(fed_bytes) < 3 * len(members)


async def test_encodings_are_undone_in_reverse_order() -> None:
    body = gzip.compress(brotli.compress(b"abc"))
    assert await decoded(body, "br, identity, GZIP", limit_bytes=LIMIT) == b"abc"


@pytest.mark.parametrize("name", ENCODERS)
async def test_a_bomb_goes_off_at_the_limit(name: str) -> None:
    """CASES E2 (vekil PR#6)."""
    bomb = ENCODERS[name](b" " * (50 * LIMIT))
    assert len(bomb) < LIMIT
    with pytest.raises(BodyTooLarge):
        await decoded(bomb, name, limit_bytes=LIMIT)
    exact = ENCODERS[name](b" " * LIMIT)
    assert len(await decoded(exact, name, limit_bytes=LIMIT)) == LIMIT


@pytest.mark.parametrize("name", ENCODERS)
@given(noise=strategies.binary(max_size=60))
async def test_noise_is_the_callers_mistake(name: str, noise: bytes) -> None:
    for body in (noise, ENCODERS[name](b"some text of some length")[:-3] + noise[:1]):
        try:
            await decoded(body, name, limit_bytes=LIMIT)
        except (BodyUnreadable, BodyTooLarge):
            continue


@pytest.mark.parametrize("name", ENCODERS)
async def test_a_cut_body_is_the_callers_mistake(name: str) -> None:
    with pytest.raises(BodyUnreadable):
        await decoded(ENCODERS[name](b"some text" * 50)[:-4], name, limit_bytes=LIMIT)


@pytest.mark.parametrize(
    "encoding", ["compress", "lzma", "gzip, x", "x, gzip", "gzip, gzip, gzip, gzip"]
)
async def test_other_encodings_are_refused(encoding: str) -> None:
    """CASES E2 (vekil PR#6)."""
    with pytest.raises(EncodingUnsupported):
        await decoded(b"damaged", encoding, limit_bytes=LIMIT)


def receiver(*messages: dict[str, Any]) -> Callable[[], Any]:
    left = list(messages)

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    return receive


def piece(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_pieces_is_put_together_and_counted() -> None:
    counted: list[int] = []
    receive = receiver(piece(b"ab", more=True), piece(b"", more=True), piece(b"c", more=False))
    assert await read_body(receive, limit_bytes=3, count=counted.append) == b"abc"
    assert counted == [2, 1]


async def test_a_body_is_refused_as_soon_as_it_is_too_large() -> None:
    receive = receiver(piece(b"ab", more=True), piece(b"cd", more=True))
    with pytest.raises(BodyTooLarge):
        await read_body(receive, limit_bytes=3)


async def test_a_client_that_goes_within_its_body_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read_body(
            receiver(piece(b"a", more=True), {"type": "http.disconnect"}), limit_bytes=9
        )


async def test_a_body_whose_rest_does_not_come_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DESIGN 1.13: it holds a place that others need."""
    monkeypatch.setattr(body_module, "SILENCE_S", 0.01)
    first = receiver(piece(b"a", more=True))
    asked: list[None] = []

    async def receive() -> dict[str, Any]:
        asked.append(None)
        if len(asked) == 1:
            return dict(await first())
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(BodyTooSlow):
        await read_body(receive, limit_bytes=9)
