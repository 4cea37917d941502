"""The lexical index of one database: which folder it is, whether it is whole, how it is renewed.

The store names the index folder that belongs to it (`meta`). A folder of another name, another
schema version or another database is therefore never read, and is deleted. What the named folder
lacks is filled from the store in order of seq, so building from nothing, going on after a crash in
the middle, and catching up after a restored backup are one code path. Nothing newer is added
before that is done: up to its highest seq the index never has a gap.

What is deleted in the store is found no more from that moment on, since searches read every text
there. Deleting it for good means more: its words must leave the index's files, in which tantivy
only marks it (lexical/segments.py). So the transaction that deletes notes that the files owe it
(`PURGE_KEY`); the indexer then drops it here and rewrites the files that held it, and no others. A
start that finds the note names a new folder: what the last process had dropped is not known.
"""

import asyncio
import json
import secrets
import shutil
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from library.analysis import fingerprint, key_prefix, words
from library.grep.runs import runs_of
from library.kinds.filter import KINDS
from library.lexical import SCHEMA_VERSION, Document, Lexical, LexicalUnavailable
from library.reading.speakers import speaker_key
from library.reading.time_words import time_words
from library.records import Event, Gone, Passage
from library.retrieval.ranking import ROLES, Candidate
from library.runtime.breath import Breath
from library.store.contract import PURGE_KEY, Store

META_KEY = "lexical_folder"
_REBUILD_BATCH = 256
_BITE_PASSAGES = 8
_PURGE_ROUNDS = 4
"""A file that was merged meanwhile may bring what was rewritten along, marked: the next round finds
it. After so many the index is built anew."""
_FOOTER_MAGIC = 1337
_SLICE_BYTES = 1 << 20


class Catalogue:
    """Owns the index folders under `root`. Call `open` first, then `catch_up` in the background."""

    def __init__(
        self, store: Store, root: Path, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        """`on_change` is told whenever searches may find something else in it."""
        self._store = store
        self._root = root
        self._on_change = on_change
        self.writing = asyncio.Lock()
        """Held from reading an event for the index until it is settled, and while files are
        rewritten: so what is dropped here cannot come back out of a batch that was read before."""
        self.must_purge = False
        """Something was deleted in the store that the files may still hold."""
        self._gone: list[int] = []
        """Threads that were."""
        self._is_gone_unknown = False
        """Which ones is not known: the deletion failed after its transaction."""
        self._deletion_count = 0
        """Of deletions under way, whose note must not be taken away."""
        self._lexical: Lexical | None = None
        self.is_whole = False
        """Everything that the store has as indexed can be found here."""

    @property
    def lexical(self) -> Lexical:
        """The index to search.

        Raises:
            LexicalUnavailable: not opened, closed, or damaged and about to be rebuilt.

        """
        if self._lexical is None:
            raise LexicalUnavailable("the index is not open")
        return self._lexical

    @property
    def highest_seq(self) -> int:
        """Up to here nothing is missing, whether it is whole or still being filled."""
        return 0 if self._lexical is None else self._lexical.highest_seq

    async def open(self) -> None:
        """Open the store's folder if it is sound and holds nothing that was deleted for good, else
        name a new one; delete all others.

        Raises:
            LexicalUnavailable: not even a new folder can be made.

        """
        name = await self._store.meta(META_KEY)
        lexical = None
        is_owed = bool(await self._store.meta(PURGE_KEY))
        if name is not None and name.startswith(_prefix()) and not is_owed:
            lexical = await asyncio.to_thread(_open_sound, self._root / name)
        if lexical is None:
            name = await self._name_folder()
            lexical = await asyncio.to_thread(Lexical, self._root / name)
            self._on_change()
        assert name is not None
        self._lexical = lexical
        self.is_whole = await self._is_filled(lexical)
        await asyncio.to_thread(_delete_others, self._root, name)
        if is_owed and not self._deletion_count:
            await self._store.set_meta(PURGE_KEY, "")

    async def catch_up(self) -> None:
        """Add what the store has as indexed and the folder lacks; afterwards it is whole."""
        async with self.writing:
            if self._lexical is None:
                await self.open()
            await self._fill(self.lexical)
            self.is_whole = True

    async def add(self, batch: Sequence[tuple[Event, Sequence[Passage]]]) -> None:
        """Index events in place of what the index has of them, to be committed; hold `writing`."""
        assert self.writing.locked()
        await _add(self.lexical, batch)

    async def commit(self) -> None:
        """Make what was added durable and findable; hold `writing`."""
        assert self.writing.locked()
        await self._commit(self.lexical)

    async def drop(self, seqs: Sequence[int]) -> None:
        """Find events no more that are gone from the store. Their words stay in the folder until
        something is deleted for good (`purge`), or until the index merges its files."""
        async with self.writing:
            if self._lexical is not None:
                lexical = self._lexical
                await _finished(lambda: lexical.add([], replaced=seqs))
                await self._commit(lexical)

    async def rest(self) -> None:
        """Give the writer's memory back."""
        async with self.writing:
            if self._lexical is not None:
                await _finished(self._lexical.release_writer)

    async def forget(self, delete: Callable[[], Awaitable[Gone]]) -> Gone:
        """Run a deletion on the store, to its end even when cancelled, and have `purge` follow.

        Raises: what `delete` does.
        """
        self._deletion_count += 1
        task = asyncio.ensure_future(delete())
        try:
            return await asyncio.shield(task)
        finally:
            if not task.done():
                await asyncio.wait({task})
            self._deletion_count -= 1
            self.must_purge = True
            if task.cancelled() or task.exception() is not None:
                self._is_gone_unknown = True
            else:
                self._gone += task.result().thread_nos

    async def purge(self) -> None:
        """Leave no word in the files of what was deleted for good; afterwards `must_purge` is False
        unless something more was deleted meanwhile.

        Costs as much as indexing what else stands in the files that held it.
        """
        async with self.writing:
            gone, self._gone = self._gone, []
            is_unknown, self._is_gone_unknown = self._is_gone_unknown, False
            try:
                if await self._store.meta(PURGE_KEY):
                    await self._purge(None if is_unknown else gone)
            except BaseException:
                self._is_gone_unknown = True
                raise
            self.must_purge = bool(self._gone) or self._is_gone_unknown
            if not (self.must_purge or self._deletion_count):
                await self._store.set_meta(PURGE_KEY, "")

    async def _purge(self, gone: Sequence[int] | None) -> None:
        """Drop threads and rewrite the files that held them; None: build all anew."""
        if gone is not None and self._lexical is not None:
            with suppress(LexicalUnavailable):
                lexical = self._lexical
                await _finished(lambda: lexical.forget(gone))
                await self._commit(lexical)
                for _ in range(_PURGE_ROUNDS):
                    seqs = await asyncio.to_thread(lexical.beside_deleted)
                    if seqs is None:
                        return
                    await self._rewrite(lexical, seqs)
        await self._let_go()
        await self.open()
        await self._fill(self.lexical)
        self.is_whole = True

    async def _rewrite(self, lexical: Lexical, seqs: set[int]) -> None:
        """Index events anew, in one commit; those that are gone from the store are dropped."""
        left, last = set(seqs), max(seqs, default=0)
        batches = self._store.indexed_events(after=min(seqs, default=0) - 1, batch=_REBUILD_BATCH)
        async for batch in batches:
            if not left or batch[0][0].seq > last:
                break
            mine = [(event, one.passages) for event, one in batch if event.seq in left]
            await _add(lexical, mine)
            left.difference_update(event.seq for event, _ in mine)
        await _finished(lambda: lexical.add([], replaced=left))
        await self._commit(lexical)

    async def _let_go(self) -> None:
        """Close the index; searches say that it is behind until it is opened again."""
        old, self._lexical, self.is_whole = self._lexical, None, False
        if old is not None:
            with suppress(LexicalUnavailable):
                await _finished(old.release_writer)
        self._on_change()

    async def repair(self) -> None:
        """After a search failed: open the index again, built anew if the folder is damaged."""
        async with self.writing:
            await self._let_go()
        await self.catch_up()

    async def sizes(self) -> dict[str, int]:
        """Return how much the index holds."""
        lexical = self.lexical
        return {
            "passages": await asyncio.to_thread(lambda: lexical.document_count),
            "size_bytes": await asyncio.to_thread(lambda: lexical.size_bytes),
            "highest_seq": lexical.highest_seq,
        }

    async def close(self) -> None:
        async with self.writing:
            lexical, self._lexical = self._lexical, None
            if lexical is not None:
                with suppress(LexicalUnavailable):  # Nothing is lost: what it lacks is still owed.
                    await _finished(lexical.release_writer)

    async def _name_folder(self) -> str:
        name = f"{_prefix()}{secrets.token_hex(4)}"
        await self._store.set_meta(META_KEY, name)
        return name

    async def _is_filled(self, lexical: Lexical) -> bool:
        """Tell whether the index lacks nothing of what the store has as indexed."""
        async for batch in self._store.indexed_events(after=lexical.highest_seq, batch=1):
            if any(indexed.passages for _, indexed in batch):
                return False
        return True

    async def _fill(self, lexical: Lexical) -> None:
        batches = self._store.indexed_events(after=lexical.highest_seq, batch=_REBUILD_BATCH)
        async for batch in batches:
            mine = [(event, indexed.passages) for event, indexed in batch]
            # Every search finds less until this is done.
            await _add(lexical, mine, is_waited_for=True)
            await self._commit(lexical)

    async def _commit(self, lexical: Lexical) -> None:
        try:
            await _finished(lexical.commit)
        finally:
            self._on_change()


async def _add(
    lexical: Lexical,
    batch: Sequence[tuple[Event, Sequence[Passage]]],
    *,
    is_waited_for: bool = False,
) -> None:
    def add() -> None:
        breath = Breath(is_waited_for=is_waited_for)
        for event, passages in batch:
            replaced: tuple[int, ...] = (event.seq,)
            for at in range(0, len(passages), _BITE_PASSAGES):
                documents = documents_of(event, passages[at : at + _BITE_PASSAGES])
                lexical.add(documents, replaced=replaced)
                replaced = ()
                breath.take()

    await _finished(add)


async def _finished(work: Callable[[], None]) -> None:
    """Run work on a thread to its end, even when cancelled: who comes next must not meet it."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        raise


def documents_of(event: Event, passages: Sequence[Passage]) -> list[Document]:
    """Return what the index holds of an event, a document for each passage."""
    said_on = event.occurred_at.date()
    _, key_words = key_prefix(said_on, role=event.role, name=event.name)
    role, speaker = role_number(event.role), speaker_key(event.name)
    at_s = int(event.occurred_at.timestamp())
    documents = []
    for part in passages:
        text = event.text[part.start : part.stop]
        own = " ".join(words(text))
        passage = Candidate(
            seq=event.seq,
            ordinal=part.ordinal,
            part_count=part.part_count,
            start=part.start,
            stop=part.stop,
            thread_no=event.thread_no,
            branch_id=event.branch_id,
            position=event.position,
            at_s=at_s,
            role=role,
            fingerprint=fingerprint(own),
            speaker=speaker,
            kind=KINDS.index(event.kind),
            lexical=0.0,
        )
        indexed = " ".join((key_words, *time_words(text, said_on), own))
        runs = " ".join(sorted(runs_of(event.text, part.start, part.stop)))
        documents.append(Document(passage, event.collection_id, indexed, runs))
    return documents


def role_number(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES) - 1


def is_sound(folder: Path) -> bool:
    """Tell whether every file that an index folder counts on has the checksum it says.

    Source: tantivy `directory/footer.rs`: body, JSON with the body's CRC-32, its length, 1337.
    Reads the whole folder: about 0.2 s for a million passages, once at start. What a killed
    writer left lying there is not counted on.
    """
    try:
        meta = json.loads((folder / "meta.json").read_bytes())
        segments = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
        files = [path for path in folder.iterdir() if path.name.partition(".")[0] in segments]
        return all(map(_is_sound_file, sorted(files)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_sound_file(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(size - 8)
        footer_size = int.from_bytes(file.read(4), "little")
        if int.from_bytes(file.read(4), "little") != _FOOTER_MAGIC:
            return False
        left = size - 8 - footer_size
        file.seek(left)
        expected = json.loads(file.read(footer_size))["crc"]
        file.seek(0)
        checksum = 0
        while left > 0 and (piece := file.read(min(left, _SLICE_BYTES))):
            checksum = zlib.crc32(piece, checksum)
            left -= len(piece)
    return left == 0 and checksum == expected


def _open_sound(folder: Path) -> Lexical | None:
    """Return the index in a folder, None if it is missing or damaged."""
    if not is_sound(folder):
        return None
    try:
        return Lexical(folder)
    except LexicalUnavailable:
        return None


def _prefix() -> str:
    return f"lexical-{SCHEMA_VERSION}-"


def _delete_others(root: Path, name: str) -> None:
    for folder in root.glob("lexical-*"):
        if folder.name != name:
            shutil.rmtree(folder, ignore_errors=True)
