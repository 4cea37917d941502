"""The steps of the growth bench, each in a process of its own: `python -m ... STEP JSON`.

Memory is read from the process that searches, and a process that has just stored a million records
has memory of its own. A step prints one line of JSON.
"""

import asyncio
import gc
import itertools
import json
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from library.embedding.names import ONNX
from library.embedding.opening import EmbedderOptions
from library.embedding.protocol import Embedder
from library.library import Library
from library.records import IncomingMessage, IncomingTurn, Scope, SearchQuery, SearchResult
from library.runtime.allocator import limit_heaps
from library.runtime.garbage import set_aside
from library.store.sqlite import SqliteStore
from scripts.bench.clients import percentile
from scripts.bench.growth_material import Material, TurnedEmbedder
from scripts.bench.growth_seed import measure

THREAD_EVENTS = 1_000
STEP_EVENTS = 10_000
"""So many events are let into the index before more are stored."""
START = datetime(2024, 1, 1, tzinfo=UTC)
WAIT_S = 3_600.0
WARM_QUESTIONS = 20
LIMIT = 48
"""Hits asked for, as many as a desk of 2,000 tokens is chosen from."""


@asynccontextmanager
async def _opened(db: Path, embedder: Embedder) -> AsyncIterator[Library]:
    async def open_embedder(_: str) -> Embedder:
        return embedder

    store = await SqliteStore.open(db)
    folder = db.with_name(f"{db.name}.index")
    library = Library(store, index_folder=folder, embedder=ONNX, open_embedder=open_embedder)
    await library.start()
    try:
        assert await library.wait_embedded(WAIT_S)
        yield library
    finally:
        await library.close()


async def _real(threads: int = 1) -> Embedder:
    return await EmbedderOptions(threads=threads).open(ONNX)


async def base(material: Material, *, folder: str) -> dict[str, Any]:
    """Embed the originals for real, unless that was done before; name the folder that is for this
    embedder's rows."""
    embedder = await _real(threads=2)
    own = Path(folder, f"{zlib.crc32(embedder.identity.encode()):08x}")
    rows = own / "originals.npy"
    if not rows.exists():
        found = await embedder.embed(material.originals)
        array = np.frombuffer(b"".join(found), np.int8).reshape(-1, embedder.dim)
        own.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240
        np.save(rows, array)
    return {"identity": embedder.identity, "folder": str(own)}


async def grow(
    material: Material, *, db: str, rows: str, identity: str, first: int, stop: int
) -> dict[str, Any]:
    """Store and index the records from `first` on."""
    embedder = TurnedEmbedder(identity, np.load(rows))
    started = time.perf_counter()
    async with _opened(Path(db), embedder) as library:
        for at in range(first, stop, THREAD_EVENTS):
            texts = []
            for number in range(at, min(stop, at + THREAD_EVENTS)):
                text, original = material.text(number)
                embedder.original_of[zlib.crc32(text.encode())] = original
                texts.append(text)
            await _record(library, f"talk-{at}", texts, at)
            if at % STEP_EVENTS == 0:
                assert await library.wait_embedded(WAIT_S)
        assert await library.wait_embedded(WAIT_S)
    return {"per_second": (stop - first) / (time.perf_counter() - started)}


async def _record(library: Library, session: str, texts: list[str], at: int) -> None:
    messages = []
    for offset, text in enumerate(texts):
        role = ("user", "assistant")[offset % 2]
        digest = blake2b(f"{role}\0{text}".encode(), digest_size=16).digest()
        body = {"role": role, "content": text}
        said_at = START + timedelta(minutes=at + offset)
        messages.append(IncomingMessage(role, digest, body, text, occurred_at=said_at))
    await library.record_turn(
        IncomingTurn(
            turn_id=token_hex(8),
            collection="growth",
            session_id=session,
            messages=messages,
            system_texts=(),
            model="none",
            upstream="none",
            received_at=START,
        )
    )


async def rate(material: Material, *, db: str, first: int, count: int) -> dict[str, Any]:
    """Store and index new records with the real embedder; return how fast that went."""
    async with _opened(Path(db), await _real(threads=2)) as library:
        assert await library.wait_embedded(WAIT_S)
        texts = [material.text(number)[0] for number in range(first, first + count)]
        cpu, started = time.process_time(), time.perf_counter()
        await _record(library, f"talk-{first}", texts, first)
        assert await library.wait_embedded(WAIT_S)
        return {
            "per_second": count / (time.perf_counter() - started),
            "per_cpu_second": count / (time.process_time() - cpu),
        }


async def ask(material: Material, *, db: str, count: int) -> dict[str, Any]:
    """Ask questions in both scopes, from the first thread."""
    embedder = await _real()
    await embedder.embed_question("warm up")
    async with _opened(Path(db), embedder) as library:
        asker = await _first_thread(library)
        started = time.perf_counter()
        async with asyncio.timeout(WAIT_S):
            while True:
                result = await _search(library, asker, "Where is the boathouse?", "project")
                if not result.degraded:
                    break
                await asyncio.sleep(0.01)
        figures: dict[str, Any] = {"load_s": time.perf_counter() - started}
        set_aside()  # As the gateway does.
        questions = map(material.question, itertools.count())
        scopes: tuple[Scope, ...] = ("thread", "project")
        for scope in scopes:
            for _ in range(WARM_QUESTIONS):
                await _search(library, asker, next(questions), scope)
            took, cpu = [], time.process_time()
            for _ in range(count):
                question, started = next(questions), time.perf_counter()
                result = await _search(library, asker, question, scope)
                took.append((time.perf_counter() - started) * 1e3)
                assert not result.degraded, result.degraded
                assert result.hits, question
            figures[scope] = {
                "p50_ms": percentile(took, 0.5),
                "p99_ms": percentile(took, 0.99),
                "cpu_ms": (time.process_time() - cpu) * 1e3 / count,
            }
        gc.collect()
        status = await library.status()
        return (
            figures
            | _memory()
            | {
                "vectors_bytes": status["embedding"]["vectors_bytes"],
                "index_bytes": status["index"]["size_bytes"],
                "passages": status["index"]["passages"],
            }
        )


async def _first_thread(library: Library) -> SearchQuery:
    """Return a query of the first thread, to be filled in, that leaves its last ten records out."""
    store = library.store
    [first] = await store.thread_events(
        "talk-0", collection_id=None, live_only=True, after=0, limit=1
    )
    path = await store.live_path(first.thread_no)
    return SearchQuery(
        collection_id=first.collection_id,
        text="",
        scope="thread",
        thread_no=first.thread_no,
        path=path,
        before_position=path[-1].upto - 10,
        exclude_seqs=frozenset(),
        limit=LIMIT,
        asked_on=datetime.now(UTC).date(),
    )


async def _search(library: Library, asker: SearchQuery, text: str, scope: Scope) -> SearchResult:
    return await library.search(replace(asker, text=text, scope=scope))


def _memory() -> dict[str, float]:
    """Return what is resident: the process's own, and pages of files, which the system may drop."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    sizes = {line.partition(":")[0]: line.partition(":")[2] for line in lines}
    return {
        "own_bytes": int(sizes["RssAnon"].split()[0]) * 1024,
        "file_bytes": int(sizes["RssFile"].split()[0]) * 1024,
    }


async def seed(material: Material, *, rows: str, size: int) -> dict[str, Any]:
    """Ask the seed's plain scan."""
    own = (np.load(rows) / np.float32(127)).tolist()
    # Copies of a list, so that each record has floats of its own, as in the seed.
    records = [[0.0 + number for number in own[at % len(own)]] for at in range(size)]
    return {"p50_ms": measure(records)}


STEPS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "base": base, "grow": grow, "rate": rate, "ask": ask, "seed": seed,
}  # fmt: skip


def main() -> None:
    limit_heaps()  # As the gateway does.
    step, given = sys.argv[1], json.loads(sys.argv[2])
    data = [Path(one) for one in given.pop("data")]
    material = Material(data, most=given.pop("originals"))
    figures = asyncio.run(STEPS[step](material, **given))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
