"""Documents: shelved whole, found and cited by part, replaced in one step."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from library.errors import Unacceptable, UnknownRecord
from library.extracting.media import Extracted
from library.grep.grep import Pattern, grep
from library.kinds.citing import citation
from library.kinds.documents import Document, parts_of
from library.kinds.filter import Filter
from library.kinds.opening import Opened, open_record
from library.kinds.record import Facts
from library.library import Library
from library.records import SearchQuery
from library.verify import verify
from tests.unit.library.extracting.test_extract import pdf_of
from tests.unit.library.teller import START, Teller, opened

CODE = "".join(
    f"def function_{number}(value: int) -> int:\n    if value > {number}:\n"
    f"        return value * {number}\n\treturn 0  # tab and\ttab\n\n\n"
    for number in range(60)
)


class Reader:
    """Somebody who shelves and searches one collection."""

    def __init__(self, library: Library, collection_id: int) -> None:
        self.library = library
        self.collection_id = collection_id

    async def shelve(self, source: str, text: str | bytes, **more: object) -> Document:
        content = text if isinstance(text, bytes) else text.encode()
        return await self.library.documents.shelve(
            source,
            content,
            collection_id=self.collection_id,
            **more,  # type: ignore[arg-type]
        )

    async def find(self, words: str, *, wanted: Filter | None = None, limit: int = 10) -> list[str]:
        """Return where each hit is, `source:lines`."""
        result = await self.library.search(
            SearchQuery(
                collection_id=self.collection_id,
                text=words,
                scope="project",
                thread_no=0,
                path=(),
                before_position=0,
                exclude_seqs=frozenset(),
                limit=limit,
                asked_on=START.date(),
                filter=wanted or Filter(),
            )
        )
        return [citation(hit.event.body) for hit in result.hits]

    async def open(self, name: str, first: int | None = None, last: int | None = None) -> Opened:
        return await open_record(
            self.library,
            name,
            collection_id=self.collection_id,
            first_line=first,
            last_line=last,
        )


@pytest_asyncio.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Reader]:
    async with opened(tmp_path / "a.db") as library:
        yield Reader(library, await library.store.made_collection("ann"))


async def test_a_document_is_found_by_part_with_its_source_and_lines(ann: Reader) -> None:
    shelved = await ann.shelve("src/sums.py", CODE, project="sums", tags=["code"])
    assert (shelved.state, shelved.record.facts.type) == ("new", "code")
    assert (shelved.line_count, shelved.part_count) == (360, shelved.part_count)
    assert shelved.part_count > 5
    [place, *_] = await ann.find("function_41")
    source, _, lines = place.partition(":")
    first, last = map(int, lines.split("-"))
    assert source == "src/sums.py"
    wanted = CODE.splitlines(keepends=True)[first - 1 : last]
    assert any("def function_41" in line for line in wanted)
    opened_at = await ann.open(shelved.record.id, first, last)
    assert opened_at.text == "".join(wanted)
    assert (opened_at.who, opened_at.line_count) == (place, 360)


async def test_a_pdf_is_cited_by_its_pages_and_a_page_of_html_by_its_lines(ann: Reader) -> None:
    pages = [f"The {bird} nests on ledge {at}." for at, bird in enumerate(("kestrel", "falcon"))]
    shelved = await ann.shelve("report.pdf", pdf_of(*(f"{one} " * 60 for one in pages)))
    assert (shelved.state, shelved.record.facts.type) == ("new", "pdf")
    assert (await ann.find("falcon"))[0] == "report.pdf:p2"
    assert (await ann.find("kestrel"))[0].startswith("report.pdf:p1")
    await ann.shelve("page.html", b"<h1>Owls</h1><p>The owl hunts at night.</p><script>x</script>")
    assert await ann.find("owl hunts") == ["page.html:1-3"]
    assert await ann.find("script") == []


async def test_code_is_cut_between_functions(ann: Reader) -> None:
    shelved = await ann.shelve("a.py", CODE)
    parts = await ann.library.store.kinds.parts(shelved.record.no, limit=99)
    assert all(part.text.startswith("def function_") for part in parts)


async def test_a_documents_indentation_and_line_ends_are_intact(ann: Reader) -> None:
    """A known fault of earlier systems; CASES J11."""
    text = "\r\n  a:\r\n\t- b\r\n\r\n\r\n    c |  d \r\n" + "e" * 4_000 + "\n\n" + CODE
    shelved = await ann.shelve("odd.yaml", text.encode())
    parts = await ann.library.store.kinds.parts(shelved.record.no, limit=99)
    assert "".join(part.text for part in parts) == text
    assert (await ann.open(shelved.record.id)).text == text
    lines = text.split("\n")
    assert (await ann.open(shelved.record.id, 3, 6)).text == "\n".join(lines[2:6]) + "\n"


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(alphabet=st.sampled_from("ab \n\t.#|é東\r"), min_size=1, max_size=300).map(
        lambda text: text * 40
    ),
    is_code=st.booleans(),
)
def test_the_parts_of_a_document_are_its_text_and_say_on_which_lines_they_are(
    text: str, is_code: bool
) -> None:
    extracted = Extracted("code" if is_code else "text", text)
    facts = Facts(kind="document", type="text", source="a")
    parts = list(parts_of(extracted, facts, version=1, said_at=START))
    if text.isspace():
        assert parts == []
        return
    assert "".join(part.text for part in parts) == text
    lines = text.split("\n")
    for part in parts:
        first, last = part.body["lines"]
        assert part.text.strip("\n") in "\n".join(lines[first - 1 : last])


async def test_what_did_not_change_is_not_shelved_again(ann: Reader) -> None:
    first = await ann.shelve("a.md", "# One\n\nText.", tags=["x"])
    again = await ann.shelve("a.md", "# One\n\nText.", tags=["y"])
    assert (again.state, again.record.id) == ("unchanged", first.record.id)
    assert (again.record.version, again.record.facts.tags) == (1, ("y",))


async def test_a_new_edition_takes_the_place_of_the_old_one(ann: Reader) -> None:
    first = await ann.shelve("notes.md", "The kestrel is red. " * 200)
    other = await ann.shelve("notes.md", "The kestrel is grey.", project="other")
    second = await ann.shelve("notes.md", "The falcon is blue.\n" * 200)
    assert (second.state, second.record.id) == ("changed", first.record.id)
    assert other.record.id != first.record.id
    assert await ann.find("kestrel red", wanted=Filter(projects=("",))) == []
    assert await ann.find("falcon blue") == ["notes.md:151-200"]  # Its parts are copies.
    assert await ann.find("kestrel") == ["notes.md:1"]
    events = await ann.library.store.thread_events(
        first.record.id, collection_id=ann.collection_id, live_only=False, after=0, limit=999
    )
    assert all("falcon" in event.text for event in events)


async def test_a_reader_sees_the_old_edition_or_the_new_one_and_never_both_or_none(
    ann: Reader,
) -> None:
    """A known fault of earlier systems: re-ingest is atomic."""
    await ann.shelve("a.txt", "kestrel number 0")
    is_over = asyncio.Event()

    async def read() -> int:
        count = 0
        while not is_over.is_set():
            found = await ann.library.search(
                SearchQuery(
                    ann.collection_id, "kestrel", "project", 0, (), 0, frozenset(), 10, START.date()
                )
            )
            assert len({hit.event.body["version"] for hit in found.hits}) == 1
            count += 1
            await asyncio.sleep(0)  # What is cached is answered without waiting.
        return count

    reading = asyncio.ensure_future(read())
    for number in range(1, 6):
        # Of several parts, so that half an edition could be seen.
        text = "".join(f"kestrel {number} {part}\n\n" + "x" * 1_200 for part in range(4))
        await ann.shelve("a.txt", text)
    is_over.set()
    assert await reading > 5


async def test_a_pin_stays_on_the_part_that_a_new_edition_has_too(ann: Reader) -> None:
    text = "# One\n\n" + "kestrel " * 150 + "\n\n# Two\n\n" + "falcon " * 150
    shelved = await ann.shelve("a.md", text)
    parts = await ann.library.store.kinds.parts(shelved.record.no, limit=9)
    assert len(parts) == 2
    await ann.library.store.pin(parts[1].id, collection_id=ann.collection_id, everywhere=False)
    teller = Teller(ann.library, "one", "ann")
    await teller.tell("hello")
    assert teller.recorded is not None
    assert teller.recorded.pins == (parts[1].seq,)
    await ann.shelve("a.md", text.replace("kestrel", "eagle!!"))
    fresh = await ann.library.store.kinds.parts(shelved.record.no, limit=9)
    await teller.tell("again")
    assert teller.recorded.pins == (fresh[1].seq,)


async def test_lines_of_any_number_are_opened_or_refused(ann: Reader) -> None:
    document = await ann.shelve("a.txt", "one\ntwo\nthree\n")
    for lines, text in (
        ((-(2**70), 2**70), "one\ntwo\nthree\n"),
        ((2, 2**70), "two\nthree\n"),
        ((2**70, None), None),
        ((None, -(2**70)), None),
    ):
        opening = open_record(
            ann.library,
            document.record.id,
            collection_id=ann.collection_id,
            first_line=lines[0],
            last_line=lines[1],
        )
        if text is None:
            with pytest.raises(Unacceptable):
                await opening
        else:
            assert (await opening).text == text


@pytest.mark.parametrize("is_alike", [False, True])
async def test_pins_of_two_parts_of_which_one_is_left_are_one(ann: Reader, is_alike: bool) -> None:
    one, two = "# One\n\n" + "kestrel " * 150 + "\n\n", "# Two\n\n" + "falcon " * 150 + "\n\n"
    shelved = await ann.shelve("a.md", (two if is_alike else one) + two)
    parts = await ann.library.store.kinds.parts(shelved.record.no, limit=9)
    assert [part.text for part in parts] == [two if is_alike else one, two]
    for part in parts:
        await ann.library.store.pin(part.id, collection_id=ann.collection_id, everywhere=True)
    assert (await ann.shelve("a.md", two)).state == "changed"
    [fresh] = await ann.library.store.kinds.parts(shelved.record.no, limit=9)
    pinned = await ann.library.store.pinned(collection_id=ann.collection_id, thread_id=None)
    assert [event.seq for event in pinned] == [fresh.seq]


async def test_a_process_that_dies_in_the_midst_leaves_the_old_edition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "a.db") as library:
        ann = Reader(library, await library.store.made_collection("ann"))
        await ann.shelve("a.txt", "old kestrel")

        async def dies(*_: object) -> bool:
            raise RuntimeError("killed")

        monkeypatch.setattr(library.documents, "_wait_indexed", dies)
        for source in ("a.txt", "b.txt"):
            with pytest.raises(RuntimeError):
                await ann.shelve(source, "new kestrel")
        assert await ann.find("kestrel") == ["a.txt:1"]
    async with opened(tmp_path / "a.db") as library:
        ann = Reader(library, await library.store.made_collection("ann"))
        assert (
            await ann.open(
                (
                    await library.documents.newest(
                        Filter(), collection_id=ann.collection_id, limit=9
                    )
                )[0][0].id
            )
        ).text == "old kestrel"
        assert (await ann.shelve("b.txt", "new kestrel")).state == "new"
        assert (await ann.shelve("a.txt", "new kestrel")).state == "changed"
        assert sorted(await ann.find("kestrel")) == ["a.txt:1"]
    found = await asyncio.to_thread(
        verify, tmp_path / "a.db", identify=lambda body: (str(body["role"]), b"")
    )
    assert found.first_break is None


async def test_a_large_document_is_shelved_in_slices_that_are_one_edition(
    ann: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("library.kinds.documents.SLICE_PARTS", 4)
    shelved = await ann.shelve("a.py", CODE)
    assert shelved.part_count > 4
    assert (await ann.open(shelved.record.id)).text == CODE
    changed = await ann.shelve("a.py", CODE.replace("value", "number"))
    assert (await ann.open(changed.record.id)).text == CODE.replace("value", "number")


async def test_a_chunk_is_put_by_once_and_found_with_its_title(ann: Reader) -> None:
    first = await ann.library.documents.shelve_chunk(
        "We looked at the kestrel.\nIt was red.",
        collection_id=ann.collection_id,
        type="debug",
        title="bird log",
        tags=["birds"],
    )
    again = await ann.library.documents.shelve_chunk(
        "We looked at the kestrel.\nIt was red.",
        collection_id=ann.collection_id,
        type="debug",
        title="bird log",
        tags=["birds"],
    )
    assert (first.state, again.state) == ("new", "unchanged")
    assert again.record == first.record
    assert await ann.find("kestrel", wanted=Filter(kinds=("chunk",))) == ["bird log:1-2"]
    assert await ann.find("kestrel", wanted=Filter(kinds=("document",))) == []
    with pytest.raises(Unacceptable):
        await ann.library.documents.shelve_chunk("x", collection_id=ann.collection_id, type="novel")


async def test_filters_know_the_sources_of_documents_and_their_folders(ann: Reader) -> None:
    for source in ("src/a.py", "src/deep/b.py", "srcs/c.py", "a folder/d e.py"):
        await ann.shelve(source, f"kestrel {source}")
    for wanted, expected in (
        ("src/a.py", {"src/a.py:1"}),
        ("src/", {"src/a.py:1", "src/deep/b.py:1"}),
        ("a folder/", {"a folder/d e.py:1"}),
        ("a folder/d e.py", {"a folder/d e.py:1"}),
    ):
        assert {*await ann.find("kestrel", wanted=Filter(sources=(wanted,)))} == expected


async def test_a_part_of_a_document_opens_at_that_part(ann: Reader) -> None:
    shelved = await ann.shelve("a.py", CODE)
    parts = await ann.library.store.kinds.parts(shelved.record.no, limit=99)
    there = await ann.open(parts[2].id)
    assert (there.id, there.text) == (shelved.record.id, parts[2].text)
    with pytest.raises(Unacceptable):
        await ann.open(shelved.record.id, 9_999)
    with pytest.raises(UnknownRecord):
        await ann.open("nobody")


async def test_a_forgotten_document_leaves_no_byte(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        ann = Reader(library, await library.store.made_collection("ann"))
        shelved = await ann.shelve("xylophones/zebra.md", "A quagga trots. " * 300)
        await ann.shelve("xylophones/zebra.md", "A quagga gallops. " * 300)
        await ann.shelve("stays.md", "This stays.")
        assert await library.documents.forget([shelved.record.id], collection_id=None) == 1
        assert await ann.find("quagga") == []

    def content() -> bytes:
        return b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()).lower()

    left = await asyncio.to_thread(content)
    assert b"this stays" in left
    for word in (b"quagga", b"zebra", b"xylophone", b"trots", b"gallops"):
        assert word not in left


@pytest.mark.parametrize(
    ("source", "content"),
    [("a.bin", b"\0\1\2"), ("a.txt", b" \n"), ("", b"a"), ("a\nb", b"a"), ("a.pdf", b"%PDF-no")],
)
async def test_what_is_no_document_is_refused(ann: Reader, source: str, content: bytes) -> None:
    with pytest.raises(Unacceptable):
        await ann.shelve(source, content)


async def test_a_grep_tells_the_line_of_the_document(ann: Reader) -> None:
    await ann.shelve("a.py", CODE)
    assert await ann.library.wait_caught_up(20.0)
    found = await grep(
        ann.library, Pattern("def function_41", collection_id=ann.collection_id, limit=5)
    )
    [line] = found.lines
    assert CODE.splitlines()[line.number - 1] == line.text
    assert line.number == 41 * 6 + 1
