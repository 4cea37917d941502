"""The size of an image, from the head of its data URL. Pure.

An image costs what its provider's formula says, and the formula asks for its pixels. They stand in
the first bytes of every common format, so only a head is decoded, never the megabytes behind it.
What cannot be read (a link, which we do not fetch; a broken or unknown format) has no size, and is
priced at the most that an image can cost.
"""

import base64
import struct
from io import BytesIO
from typing import Any, Literal

import imagesize  # type: ignore[import-untyped]

from governor.message import Image

MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF")
"""PNG, JPEG, GIF and WebP: what vision models accept. Nothing else reaches the parser, above all no
SVG, which is XML. Source: OpenAI, "Images and vision", image input requirements."""
HEAD_BYTES = 96 * 1024
"""A JPEG may carry 64 KiB of EXIF with a thumbnail before the marker that holds its size."""
URL_PREFIX_CHARS_MAX = 256
"""`data:image/png;name=x;base64,` is far shorter; a comma further in is no header's end."""
SIDE_PX_MAX = 1_000_000
"""No format at hand reaches it: a larger number is a damaged header."""


def image_of(url: Any, detail: Any = "auto") -> Image:
    """Return what an image part costs by: its size where its data URL tells it, and its detail.

    Takes whatever a client sent; nothing is raised.
    """
    width, height = _size(url) if isinstance(url, str) else (None, None)
    return Image(width=width, height=height, detail=_detail(detail))


def _detail(detail: Any) -> Literal["low", "high", "auto"]:
    if detail == "low":
        return "low"
    # `original`, and what may come after it, is never less than `high`.
    return "auto" if detail in (None, "auto") else "high"


def _size(url: str) -> tuple[int, int] | tuple[None, None]:
    if url[:5].lower() != "data:":
        return None, None
    comma = url.find(",", 0, URL_PREFIX_CHARS_MAX)
    if comma < 0 or not url[:comma].lower().endswith(";base64"):
        return None, None
    head = url[comma + 1 : comma + 1 + HEAD_BYTES // 3 * 4]
    try:
        data = base64.b64decode(head + "=" * (-len(head) % 4))
        if not data.startswith(MAGIC):
            return None, None
        width, height = imagesize.get(BytesIO(data))
    except (ValueError, struct.error, LookupError, ArithmeticError, TypeError, EOFError):
        return None, None  # Whatever the parser tripped over: the size is simply not known.
    if not (0 < width <= SIDE_PX_MAX and 0 < height <= SIDE_PX_MAX):
        return None, None
    return int(width), int(height)
