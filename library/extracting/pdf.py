"""The text of a PDF file, page by page. The seam to pypdf."""

import io
import struct
import zlib

from pypdf import PdfReader
from pypdf.errors import DependencyError, DeprecationError, PyPdfError

from library.errors import Unacceptable
from library.extracting.media import Extracted

PAGES_MAX = 5_000
PAGE_GAP = "\n\n"
_BROKEN = (
    *(PyPdfError, DependencyError, DeprecationError),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
    *(NotImplementedError, RecursionError, EOFError, zlib.error, struct.error),
)
"""What a damaged or unusual file brings out of pypdf; its own errors are only some of that (50,000
files damaged at random, 2026-11-30)."""


def extract_pdf(content: bytes) -> Extracted:
    """Return the text of a PDF with where its pages begin.

    Raises:
        Unacceptable: it cannot be read, is encrypted, or has too many pages.

    """
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unacceptable("content", "a PDF that opens without a password")
        if len(reader.pages) > PAGES_MAX:
            raise Unacceptable("content", f"a PDF of at most {PAGES_MAX} pages")
        texts = [page.extract_text() for page in reader.pages]
        title = (reader.metadata.title if reader.metadata else None) or ""
    except _BROKEN as error:
        raise Unacceptable("content", f"a PDF that can be read ({error})") from error
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(PAGE_GAP)
    joined = PAGE_GAP.join(texts).replace("\0", "")
    if len(joined) != max(0, at - len(PAGE_GAP)):  # Zero characters were left out.
        starts = []
    return Extracted("pdf", joined, " ".join(str(title).split()), tuple(starts))
