"""Documents and chunks: texts that are shelved whole, in parts that can be found and cited.

A document is what stands at one source of one project. Shelved again it gets a new edition: its
parts are stored and indexed beside the old ones, where nobody finds them; then one transaction
makes the new edition the live one and deletes the old. So a reader finds the old one or the new
one, and a process that is killed leaves the old. What did not change is not read again.

A chunk is a piece of a conversation, or a note of what was seen, that somebody puts by: it has no
source, and the same text put by again is the one that is there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Literal
from weakref import WeakValueDictionary

from library.errors import Unacceptable, UnknownRecord
from library.extracting.extract import extract
from library.extracting.media import TEXT_CHARS_MAX, Extracted
from library.kinds.filter import CHUNK_TYPES, IMPORTANCES, Filter, Kind
from library.kinds.landing import Landing
from library.kinds.record import Change, Edition, Facts, Shelved, Written, part_of
from library.kinds.words import LONGEST_SOURCE_CHARS, name_of, one_of, tags_of, text_of
from library.passages import passages_of
from library.records import IncomingMessage, Reach

CUT_VERSION = b"1"
"""Part of a document's digest: who is cut in another way is shelved again."""
SLICE_PARTS = 256
"""Stored in one transaction, so that a large document keeps no turn waiting for long."""
INDEX_WAIT_S = 60.0
"""The longest that an edition waits for the index; then it is found through what waits for it."""
NAME_CHARS = 64
"""Of a source, from its end, as it is indexed in front of each part."""

State = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Document:
    """A document, or a chunk, that was shelved."""

    record: Shelved
    state: State
    part_count: int
    line_count: int


class Documents:
    """Shelves, lists and forgets; see the module's docstring."""

    def __init__(
        self, landing: Landing, wait_indexed: Callable[[int, float], Awaitable[bool]]
    ) -> None:
        self._landing = landing
        self._kinds = landing.store.kinds
        self._wait_indexed = wait_indexed
        self._under_way: WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def shelve(
        self,
        source: str,
        content: bytes,
        *,
        collection_id: int,
        project: str = "",
        tags: Sequence[str] = (),
        importance: str = "medium",
        title: str = "",
        said_at: datetime | None = None,
    ) -> Document:
        """Shelve what was read from a source, in place of what was read from it before.

        Raises:
            Unacceptable: a part of it is not what it must be, or there is no text in it.

        """
        facts = Facts(
            kind="document",
            type="",
            importance=one_of(importance, IMPORTANCES, name="importance"),
            project=name_of(project, name="project"),
            source=_source(source),
            title=name_of(title, name="title"),
            tags=tags_of(tags),
            digest=digest_of(content),
        )
        facts = self._kinds.kept(facts)  # Before its parts get the end of its source as a name.
        key = (collection_id, facts.project, facts.source)
        lock = self._under_way.setdefault(key, asyncio.Lock())
        async with lock:
            known = await self._known(collection_id, facts)
            if known is not None and known.facts.digest == facts.digest:
                return await self._unchanged(known, facts)
            extracted = await asyncio.to_thread(extract, facts.source, content)
            facts = replace(facts, type=extracted.type, title=facts.title or _title(extracted))
            return await self._shelve(collection_id, facts, extracted, known, said_at=said_at)

    async def shelve_chunk(
        self,
        text: str,
        *,
        collection_id: int,
        type: str = "session",
        title: str = "",
        project: str = "",
        tags: Sequence[str] = (),
        importance: str = "medium",
        thread_no: int | None = None,
        said_at: datetime | None = None,
    ) -> Document:
        """Put a text by. `thread_no` names the one thread that finds it; None: every thread.

        Raises:
            Unacceptable: a part of it is not what it must be.

        """
        text_of(text, most_chars=TEXT_CHARS_MAX)
        digest = digest_of(text.encode())
        facts = Facts(
            kind="chunk",
            type=one_of(type, CHUNK_TYPES, name="type"),
            importance=one_of(importance, IMPORTANCES, name="importance"),
            project=name_of(project, name="project"),
            title=name_of(title, name="title"),
            tags=tags_of(tags),
            owner_no=thread_no,
            digest=digest,
        )
        facts = self._kinds.kept(facts)
        key = (collection_id, facts.project, digest.hex())
        lock = self._under_way.setdefault(key, asyncio.Lock())
        async with lock:
            known = await self._known(collection_id, facts)
            if known is not None and known.facts.owner_no == thread_no:
                return await self._unchanged(known, facts)
            extracted = Extracted("text", text)
            return await self._shelve(collection_id, facts, extracted, None, said_at=said_at)

    async def chunk_of(self, text: str, *, collection_id: int, project: str) -> Shelved | None:
        """Return the chunk of a project that has exactly this text; None: there is none."""
        project = name_of(project, name="project")
        digest = digest_of(text.encode())
        return await self._kinds.of_source(
            collection_id, kind="chunk", project=project, source="", digest=digest
        )

    async def _known(self, collection_id: int, facts: Facts) -> Shelved | None:
        assert facts.digest is not None
        return await self._kinds.of_source(
            collection_id,
            kind=facts.kind,
            project=facts.project,
            source=facts.source,
            digest=facts.digest,
        )

    async def _unchanged(self, known: Shelved, facts: Facts) -> Document:
        """Return what is there, with the tags and the importance that were given now."""
        if (facts.tags, facts.importance) != (known.facts.tags, known.facts.importance):
            from_now_on = Change(tags=facts.tags, importance=facts.importance)
            now = self._landing.now()
            async with self._landing.writing:
                written = await self._landing.write(
                    lambda: self._kinds.change(known.no, from_now_on, now=now)
                )
            known = written.record
        return Document(known, "unchanged", *await self._kinds.size(known.no))

    async def _shelve(
        self,
        collection_id: int,
        facts: Facts,
        extracted: Extracted,
        known: Shelved | None,
        *,
        said_at: datetime | None,
    ) -> Document:
        said_at = said_at or self._landing.now()
        version = 1 if known is None else known.version + 1
        parts = await asyncio.to_thread(
            lambda: list(parts_of(extracted, facts, version=version, said_at=said_at))
        )
        begun = await self._stored(collection_id, facts, parts, known, said_at=said_at)
        await self._wait_indexed(begun.record.no, INDEX_WAIT_S)
        now = self._landing.now()  # Not before its parts were stored.
        async with self._landing.writing:
            finished = await self._landing.write(
                lambda: self._kinds.finish_edition(
                    begun.record.no, begun.branch_id, facts, said_at=said_at, now=now
                )
            )
        is_new = known is None or known.facts.digest is None
        size = await self._kinds.size(begun.record.no)
        return Document(finished.record, "new" if is_new else "changed", *size)

    async def _stored(
        self,
        collection_id: int,
        facts: Facts,
        parts: Sequence[IncomingMessage],
        known: Shelved | None,
        *,
        said_at: datetime,
    ) -> Written:
        """Store the parts of an edition, slice by slice, beside the live one."""
        begun: Written | None = None
        for at in range(0, len(parts), SLICE_PARTS):
            edition = Edition(parts[at : at + SLICE_PARTS], said_at)
            async with self._landing.writing:
                begun = await self._stored_slice(collection_id, facts, edition, known, begun)
        assert begun is not None
        return begun

    async def _stored_slice(
        self,
        collection_id: int,
        facts: Facts,
        edition: Edition,
        known: Shelved | None,
        begun: Written | None,
    ) -> Written:
        now, branch_id = self._landing.now(), None
        if begun is not None:
            known, branch_id = begun.record, begun.branch_id
        if known is None:
            # Its digest comes when it is whole: what is cut here is shelved again.
            unfinished = replace(facts, digest=None)
            return await self._landing.write(
                lambda: self._kinds.shelve(
                    collection_id, unfinished, edition, now=now, is_live=False
                )
            )
        no = known.no
        return await self._landing.write(
            lambda: self._kinds.begin_edition(no, edition, now=now, branch_id=branch_id)
        )

    async def newest(
        self,
        wanted: Filter,
        *,
        collection_id: int | frozenset[int],
        kind: Kind = "document",
        thread_no: int | None = None,
        limit: int,
        offset: int = 0,
    ) -> tuple[list[Shelved], int]:
        """Return documents or chunks that match, last said first, and how many match."""
        return await self._kinds.records(
            collection_id,
            replace(wanted, kinds=(kind,)),
            owner_no=thread_no,
            limit=limit,
            offset=offset,
        )

    async def document(self, name: str, *, collection_id: Reach) -> Document:
        """Return a document or a chunk by its id, or by that of a part of it.

        Raises:
            UnknownRecord: there is none.

        """
        record = await self._kinds.record(name, collection_id=collection_id)
        if record.facts.kind not in {"document", "chunk"}:
            raise UnknownRecord(kind="document", name=name)
        return Document(record, "unchanged", *await self._kinds.size(record.no))

    async def forget(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Delete documents and chunks for good: see `Landing.delete`.

        Raises:
            UnknownRecord: one of them is not there, and nothing was deleted.

        """
        for name in names:
            await self.document(name, collection_id=collection_id)
        return await self._landing.forget(names, collection_id=collection_id)


def parts_of(
    extracted: Extracted, facts: Facts, *, version: int, said_at: datetime
) -> Iterator[IncomingMessage]:
    """Yield the parts of a document: together they are its text, to the last character."""
    text, line = extracted.text, 1
    for passage in passages_of(0, text, is_code=extracted.type == "code"):
        content = text[passage.start : passage.stop]
        # A line break at its end ends its last line, and begins none.
        breaks = content.count("\n")
        last = line + breaks - content.endswith("\n")
        body: dict[str, object] = {
            "role": facts.kind,
            "content": content,
            "version": version,
            "lines": [line, max(line, last)],
        }
        if facts.source or facts.title:
            body["name"] = (facts.source or facts.title)[-NAME_CHARS:]
        if facts.source:
            body["source"] = facts.source
        elif facts.title:
            body["title"] = facts.title
        if facts.kind == "chunk":
            body["type"] = facts.type
        if extracted.page_starts:
            body["pages"] = _pages(extracted.page_starts, passage.start, passage.stop)
        yield part_of(body, said_at=said_at)
        line += breaks


def _pages(starts: Sequence[int], start: int, stop: int) -> list[int]:
    """Return the numbers, from 1 on, of the first and the last page that a span touches."""
    ends = [after for _, after in pairwise([*starts, stop + 1])]
    touched = [
        number
        for number, (begin, end) in enumerate(zip(starts, ends, strict=True), 1)
        if begin < stop and start < end
    ]
    return [touched[0], touched[-1]]


def _source(value: str) -> str:
    source = name_of(value.replace("\\", "/"), name="source", most_chars=LONGEST_SOURCE_CHARS)
    if not source:
        raise Unacceptable("source", "what the document was read from")
    return source


def _title(extracted: Extracted) -> str:
    printable = "".join(char if char.isprintable() else " " for char in extracted.title)
    return printable[:200].strip()


def digest_of(content: bytes) -> bytes:
    """Return what tells that a document, or a chunk, is the same."""
    return blake2b(CUT_VERSION + content, digest_size=16).digest()
