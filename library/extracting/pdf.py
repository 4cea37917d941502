"""The text of a PDF file, page by page. The seam to pypdf."""

import io

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from library.errors import Unacceptable
from library.extracting.media import Extracted

PAGES_MAX = 5_000
PAGE_GAP = "\n\n"


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
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # A damaged file breaks pypdf in many ways; its own errors are only some of them.
        raise Unacceptable("content", f"a PDF that can be read ({error})") from error
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(PAGE_GAP)
    joined = PAGE_GAP.join(texts).replace("\0", "")
    if len(joined) != max(0, at - len(PAGE_GAP)):  # Zero characters were left out.
        starts = []
    return Extracted("pdf", joined, " ".join(str(title).split()), tuple(starts))
