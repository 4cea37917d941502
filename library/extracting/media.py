"""What kind of document a file is, and the text of one that is text already. Pure.

Text is kept exactly, line ends and indentation included; only a byte order mark goes.
"""

from dataclasses import dataclass
from typing import Literal

from library.errors import Unacceptable

DocumentType = Literal["text", "markdown", "code", "html", "pdf"]
TEXT_CHARS_MAX = 10_000_000
"""Of one document: some ten thousand parts."""
LOOKED_AT_BYTES = 8_192
_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".rst", ".adoc"})
_HTML = frozenset({".html", ".htm", ".xhtml"})
_CODE_TEXT = """
    .py .pyi .js .jsx .mjs .cjs .ts .tsx .go .rs .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp
    .cs .rb .php .swift .m .mm .sh .bash .zsh .fish .ps1 .sql .lua .pl .pm .r .jl .hs .ml .ex .exs
    .erl .clj .dart .vue .svelte .zig .nim .css .scss .less .proto .tf .gradle .groovy .vb .asm .s
"""
_CODE = frozenset(_CODE_TEXT.split())
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a document."""

    type: DocumentType
    text: str
    title: str = ""
    page_starts: tuple[int, ...] = ()
    """Where each page begins in the text; none where there are no pages."""


def type_of(source: str, content: bytes) -> DocumentType:
    """Return the kind of a document by its name, or where that says nothing by how it begins."""
    stem, dot, ending = source.lower().rpartition("/")[2].rpartition(".")
    suffix = f".{ending}" if dot and stem else ""
    head = content[:LOOKED_AT_BYTES].lstrip()[:64].lower()
    if suffix == ".pdf" or head.startswith(b"%pdf-"):
        return "pdf"
    if suffix in _HTML or (not suffix and head.startswith((b"<!doctype html", b"<html"))):
        return "html"
    if suffix in _MARKDOWN:
        return "markdown"
    return "code" if suffix in _CODE or head.startswith(b"#!") else "text"


def decoded(content: bytes) -> str:
    """Return the text in the bytes of a file.

    Raises:
        Unacceptable: they are no text.

    """
    encoding = "utf-8"
    for mark, name in _MARKS:
        if content.startswith(mark):
            content, encoding = content[len(mark) :], name
            break
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        # What is no UTF-8 and has no zero bytes is mostly Western text of before it.
        text = content.decode("cp1252", "replace")
    if "\0" in text:
        raise Unacceptable("content", "text, HTML or PDF, and not another binary format")
    return text


def has_text(source: str, content: bytes) -> bool:
    """Tell whether there may be words in a file: an empty one, or one of another binary format
    than PDF, has none. Blocks: reads all of it."""
    if type_of(source, content) == "pdf":
        return True
    try:
        return bool(decoded(content).strip())
    except Unacceptable:
        return False


def checked(extracted: Extracted) -> Extracted:
    """Return what was extracted, if it is something to shelve.

    Raises:
        Unacceptable: it has no words, or too many.

    """
    if not extracted.text.strip():
        raise Unacceptable("content", "a document with text")
    if len(extracted.text) > TEXT_CHARS_MAX:
        raise Unacceptable("content", f"at most {TEXT_CHARS_MAX:,} characters of text")
    return extracted
