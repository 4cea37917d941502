"""What text is read out of a file."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.errors import Unacceptable
from library.extracting.extract import extract
from library.extracting.walking import files_under

PAGE = b"""<!doctype html><html><head><title> A  page </title><style>p{}</style></head>
<body><h2>Install &amp; run</h2><p>Use <b>uv</b>,
   or pip.<br>Then:</p><pre>def f():
    return  1 &lt; 2
</pre><ul><li>one</li><li>two <i>words</i></li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<script>alert("no")</script></body></html>"""


def pdf_of(*pages: str) -> bytes:
    """Return a small PDF file with a line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Resources {font} "
            f"/Contents {number + 1} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} >>"
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, 2)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = out.tell()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out.write(
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode()
    )
    return out.getvalue()


def test_a_page_of_html_reads_as_markdown_would_and_its_code_is_exact() -> None:
    found = extract("page.html", PAGE)
    assert (found.type, found.title) == ("html", "A page")
    assert found.text == (
        "## Install & run\n\nUse uv, or pip.\nThen:\n\n```\ndef f():\n    return  1 < 2\n```\n\n"
        "- one\n- two words\n\n| a | b\n| 1 | 2"
    )


def test_a_page_that_nests_deep_is_read_and_one_that_nests_without_end_is_refused() -> None:
    assert extract("page.html", b"<div>" * 1_400 + b"deep").text == "deep"
    assert extract("page.html", b"<p>word" * 50_000).text.count("word") == 50_000
    with pytest.raises(Unacceptable):
        extract("page.html", b"<div>" * 1_000_000 + b"deep")


def test_the_text_of_a_pdf_comes_with_its_pages() -> None:
    found = extract("a.pdf", pdf_of("The kestrel is red.", "The falcon is blue."))
    assert found.type == "pdf"
    assert found.text == "The kestrel is red.\n\nThe falcon is blue."
    assert [found.text[start:][:10] for start in found.page_starts] == ["The kestre", "The falcon"]


@pytest.mark.parametrize("name", ["/Nonesuch", "/Fl", "0", "[/FlateDecode /Crypt 0]"])
def test_a_pdf_with_a_filter_that_is_not_known_is_refused(name: str) -> None:
    whole = pdf_of("The kestrel is red.")
    filtered = whole.replace(b"<< /Length", f"<< /Filter {name} /Length".encode())
    assert filtered != whole
    with pytest.raises(Unacceptable):
        extract("a.pdf", filtered)


@given(st.binary(max_size=200))
def test_no_file_breaks_reading_it(content: bytes) -> None:
    for source in ("a", "a.html", "a.pdf", "a.py"):
        try:
            found = extract(source, content)
        except Unacceptable:
            continue
        assert found.text.strip()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_read_in_the_encoding_that_it_is_in(encoding: str) -> None:
    text = "café, naïve\r\n\tüber\n" + ("" if encoding == "cp1252" else "東京")
    assert extract("a.txt", text.encode(encoding)).text == text


def test_the_files_of_a_folder_are_those_that_git_would_not_ignore(tmp_path: Path) -> None:
    root = tmp_path / "a folder"
    for name in (
        "keep.py",
        "drop.log",
        "build/out.py",
        "src/keep.py",
        "src/gen/made.py",
        "src/gen/kept.py",
        "src/deep/drop.tmp",
        ".hidden/x.py",
        ".env",
        "with space/é.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / ".gitignore").write_text("*.log\nbuild/\n/src/gen/*\n!/src/gen/kept.py\n")
    (root / "src" / ".gitignore").write_text("*.tmp\n")
    (root / "link.py").symlink_to(root / "keep.py")
    found = [path.relative_to(root).as_posix() for path in files_under(root)]
    assert sorted(found) == ["keep.py", "src/gen/kept.py", "src/keep.py", "with space/é.md"]
