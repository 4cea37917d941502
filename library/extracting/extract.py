"""From the bytes of a file to the text of a document, whatever it is."""

from library.extracting.media import Extracted, checked, decoded, type_of


def extract(source: str, content: bytes) -> Extracted:
    """Return the text of a document that was read from `source`. Blocks, seconds for a large PDF.

    Raises:
        Unacceptable: there is no text in it.

    """
    kind = type_of(source, content)
    if kind == "pdf":
        # 0.2 s and 20 MB, owed by the first PDF only.
        from library.extracting.pdf import extract_pdf

        return checked(extract_pdf(content))
    text = decoded(content)
    if kind == "html":
        from library.extracting.html import extract_html

        return checked(extract_html(text))
    return checked(Extracted(kind, text))
