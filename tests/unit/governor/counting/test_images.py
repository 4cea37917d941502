import base64
import struct
import zlib
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.counting.images import MAGIC, image_of


def png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 60_002) + bytes(60_000)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + exif + frame


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp(width: int, height: int) -> bytes:
    chunk = b"VP8X" + struct.pack("<I", 10) + bytes(4)
    chunk += (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("made", [png, jpeg, gif, webp])
def test_the_size_of_an_inline_image_is_read(made: Any) -> None:
    image = image_of(url(made(640, 480)))
    assert (image.width, image.height) == (640, 480)


def test_megabytes_behind_the_head_are_not_decoded() -> None:
    """CASES B1 (open-interpreter#293)."""
    large = url(png(3000, 2000) + bytes(24_000_000))
    began = process_time()
    for _ in range(100):
        assert image_of(large).width == 3000
    assert process_time() - began < 0.5


@pytest.mark.parametrize(
    "link",
    [
        "https://example.com/cat.png",
        "/etc/passwd",
        "data:image/png;base64,",
        "data:image/png;base64,####",
        "data:image/png," + "x" * 100,
        "data:" + "x" * 1000,
        url(png(640, 480))[:40],
        url(png(0, 480)),
        url(png(4_000_000_000, 480)),
        url(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", "image/svg+xml"),
        "",
        None,
        17,
    ],
)
def test_what_cannot_be_read_has_no_size(link: Any) -> None:
    image = image_of(link)
    assert (image.width, image.height) == (None, None)


@given(st.sampled_from(MAGIC), st.binary(max_size=200))
def test_no_bytes_make_it_raise(magic: bytes, rest: bytes) -> None:
    image = image_of(url(magic + rest))
    assert (image.width is None) == (image.height is None)


@pytest.mark.parametrize(
    ("detail", "kept"),
    [("low", "low"), ("high", "high"), ("auto", "auto"), (None, "auto"), ("original", "high")],
)
def test_an_unknown_detail_is_priced_as_high(detail: Any, kept: str) -> None:
    assert image_of("https://example.com/cat.png", detail).detail == kept
