"""The text of a page of HTML, as Markdown would write it: headings, lists, tables, code as it is.

The seam to selectolax (Lexbor), which reads what browsers read. The tree is walked without
recursion: a page may nest its elements deep.
"""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from library.errors import Unacceptable
from library.extracting.media import Extracted

DEPTH_MAX = 1_500
"""Elements within each other. Lexbor looks at all that are open for each that opens, so that ten
thousand take a second and a hundred thousand minutes; pages of people nest some dozens."""
_OPENED = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_CLOSED_BY_THEMSELVES = frozenset(
    {"area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta"}
    | {"optgroup", "option", "p", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead"}
    | {"tr", "track", "wbr"}
)
_LEFT_OUT = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe"})
_BLOCK_TEXT = """
    address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main nav ol p pre section summary table tbody
    thead tfoot tr ul
"""
_BLOCKS = frozenset(_BLOCK_TEXT.split())
_PARAGRAPHS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "ul", "ol"})
_SPACE = re.compile(r"[ \t\r\n\f]+")
_TEXT = "-text"


def extract_html(text: str) -> Extracted:
    """Return the words of a page and its title.

    Raises:
        Unacceptable: its elements stand too deep within each other.

    """
    depth = 0
    for is_end, tag in _OPENED.findall(text):
        if tag.lower() not in _CLOSED_BY_THEMSELVES:
            depth = max(0, depth + (-1 if is_end else 1))
            if depth > DEPTH_MAX:
                raise Unacceptable("content", f"HTML of at most {DEPTH_MAX} elements in each other")
    page = LexborHTMLParser(text)
    title = page.css_first("title")
    words = _Words()
    if page.body is not None:
        for node, is_start in _walk(page.body):
            words.visit(node, is_start=is_start)
    name = _SPACE.sub(" ", title.text()).strip() if title is not None else ""
    return Extracted("html", words.text(), name)


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield every node at its start and at its end, but for what is no text."""
    waiting: list[tuple[LexborNode, bool]] = [(root, True)]
    while waiting:
        node, is_start = waiting.pop()
        if is_start and node.tag in _LEFT_OUT:
            continue
        yield node, is_start
        if not is_start or node.tag == _TEXT:
            continue
        waiting.append((node, False))
        child = node.last_child
        while child is not None:
            waiting.append((child, True))
            child = child.prev


class _Words:
    """Collects text with the white space that a reader sees."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._pre_depth = 0
        self._break_count = 0
        """Line breaks owed before the next word."""
        self._has_space = False

    def visit(self, node: LexborNode, *, is_start: bool) -> None:
        tag = node.tag
        if tag == _TEXT:
            self._add(node.text_content or "")
        elif tag == "pre":
            self._fence(is_start=is_start)
        elif tag in {"td", "th"}:
            if is_start:
                self._write("| ")
            self._has_space = True
        elif tag in _BLOCKS:
            self._break(2 if tag in _PARAGRAPHS else 1)
            if is_start and (mark := _mark(tag)):
                self._write(mark)
        elif tag == "br":
            self._break(1)

    def _fence(self, *, is_start: bool) -> None:
        """Begin or end a run of text that is kept exactly."""
        self._break(2)
        if is_start:
            self._write("```\n")
        self._pre_depth += 1 if is_start else -1
        if not is_start:
            self._pieces.append("```" if self._is_at_line_start() else "\n```")
            self._break(2)

    def text(self) -> str:
        return "".join(self._pieces).strip("\n")

    def _add(self, text: str) -> None:
        if self._pre_depth:
            self._pieces.append(text)
            return
        words = _SPACE.sub(" ", text)
        if words.startswith(" "):
            self._has_space = True
        if words.strip(" "):
            self._write(words.strip(" "))
            self._has_space = words.endswith(" ")

    def _write(self, text: str) -> None:
        if self._break_count and self._pieces:
            self._pieces.append("\n" * self._break_count)
        elif self._has_space and self._pieces:
            self._pieces.append(" ")
        self._break_count, self._has_space = 0, text.endswith(" ")
        self._pieces.append(text.rstrip(" ") if self._has_space else text)

    def _break(self, count: int) -> None:
        if not self._pre_depth:
            self._break_count = max(self._break_count, count)

    def _is_at_line_start(self) -> bool:
        return not self._pieces or self._pieces[-1].endswith("\n")


def _mark(tag: str) -> str:
    """Return what Markdown writes in front of a block."""
    if tag == "li":
        return "- "
    is_heading = len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()
    return "#" * int(tag[1]) + " " if is_heading else ""
