"""How many pages a PDF in a message has: models read each page as an image and as text. Pure.

The file is not parsed. Page objects are counted where they can be seen, in its own bytes and in the
object streams that newer files keep them in. What cannot be read has one page for so many bytes as
the smallest pages have.

Source: ISO 32000-1, 7.5.7 (object streams) and 7.7.3 (page tree).
"""

import base64
import re
import zlib

PAGE_BYTES_MIN = 2_048
"""A page of text, compressed, has some 2 to 5 kB."""
PAGES_MAX = 600
"""The most that Anthropic takes in a request. Source: its page "PDF support"."""
INFLATED_BYTES_MAX = 4 * 2**20
"""Of one object stream; a page object has some hundred bytes."""
STREAMS_MAX = 200

_PREFIX = "data:application/pdf;base64,"
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm[^>]{0,400}>>\s*stream\r?\n")


def page_count(url: str) -> int:
    """Return the pages of the PDF in a data URL, the most where it is in doubt; 0: it is none.

    Takes whatever a client sent; nothing is raised. Linear in its size.
    """
    if not url.startswith(_PREFIX):
        return 0
    text = url[len(_PREFIX) :]
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return _bounded(len(text) * 3 // 4 // PAGE_BYTES_MIN + 1)
    found = _pages_in(data)
    for opening in list(_OBJECT_STREAM.finditer(data))[:STREAMS_MAX]:
        try:
            inflated = zlib.decompressobj().decompress(data[opening.end() :], INFLATED_BYTES_MAX)
        except zlib.error:
            continue
        found = max(found, _pages_in(inflated))
    return _bounded(found or len(data) // PAGE_BYTES_MIN + 1)


def _pages_in(data: bytes) -> int:
    counted = max((int(number) for number in _COUNT.findall(data)), default=0)
    return max(counted, len(_PAGE.findall(data)))


def _bounded(pages: int) -> int:
    return max(1, min(pages, PAGES_MAX))
