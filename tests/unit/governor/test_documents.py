"""governor/documents.py: pages of a PDF, never too few where they can be seen."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.documents import PAGES_MAX, page_count

PREFIX = "data:application/pdf;base64,"


def url(data: bytes) -> str:
    return PREFIX + base64.b64encode(data).decode()


@pytest.mark.parametrize("pages", [1, 3, 40])
def test_pages_are_counted_by_their_objects_or_their_tree(pages: int) -> None:
    objects = b"%PDF-1.4\n" + b"<< /Type /Page /Parent 2 0 R >>\n" * pages
    tree = b"%%PDF-1.4\n<< /Type /Pages /Count %d /Kids [] >>" % pages
    assert page_count(url(objects)) == pages
    assert page_count(url(tree)) == pages


def test_pages_in_an_object_stream_are_seen() -> None:
    """ISO 32000-1, 7.5.7: what most writers make since PDF 1.5."""
    inner = zlib.compress(b"1 0 2 40 << /Type/Page >> << /Type/Page >>")
    head = b"5 0 obj << /Type /ObjStm /N 2 /First 8 /Length %d /Filter /FlateDecode >>\nstream\n"
    assert page_count(url(b"%PDF-1.7\n" + head % len(inner) + inner + b"\nendstream")) == 2


def test_what_cannot_be_read_has_pages_by_its_size() -> None:
    assert page_count(url(b"x" * 20_480)) == 11
    assert page_count(url(b"<< /Count 99999 >>")) == PAGES_MAX
    assert page_count("https://example.invalid/a.pdf") == 0
    assert page_count("data:image/png;base64,AAAA") == 0


@given(st.text(max_size=200))
def test_nothing_a_client_sends_raises(text: str) -> None:
    assert page_count(PREFIX + text) >= 1
