"""`library-of-context status`: what the library holds, and what it still owes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import counted, print_table
from library.lock import read_owner


@click.command()
@click.option("--retry", "retries", is_flag=True, help="Try what was set aside once more, first.")
@db_option
@config_option
@json_option
def status(retries: bool, db: str | None, config: str | None, is_json: bool) -> None:
    """Print watermarks, what waits to be indexed, and what was quarantined."""
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> Any:
        if retries:
            await library.post("/outbox/retry")
        return await library.get("/status")

    is_served = read_owner(Path(settings.db)) is not None
    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(("what", "how it is"), rows(found, is_served=is_served))
    if stuck := found.get("quarantined"):
        click.echo()
        columns = ("set aside", "attempts", "error")
        print_table(
            columns,
            [
                [str(row.get("event_id")), str(row.get("attempts")), str(row.get("error"))]
                for row in stuck
            ],
            right=("attempts",),
        )


def rows(found: Mapping[str, Any], *, is_served: bool = True) -> list[tuple[str, str]]:
    """Return the status in words; with `is_served` False of a library that no gateway has open."""
    index = found.get("index") or {}
    since = str(found.get("oldest_pending_at") or "")[:19].replace("T", " ")
    size = f"{index.get('passages', 0):,} passages, {_size(index.get('size_bytes', 0))}"
    embedding = found.get("embedding") or {}
    vectors_bytes = embedding.get("vectors_bytes") or 0
    unheld = "none in memory" if is_served else "no gateway runs, which would hold them in memory"
    pending, failed = found.get("pending_count", 0), len(found.get("quarantined") or ())
    return [
        ("recorded", f"up to number {found.get('recorded_seq', 0):,}"),
        ("indexed", f"up to number {found.get('indexed_seq', 0):,}"),
        (
            "to be indexed",
            counted(pending, "message") + (f", the oldest since {since}" if since else ""),
        ),
        ("set aside", f"{counted(failed, 'message')} that failed repeatedly"),
        ("index", size if index.get("is_whole") else index.get("error") or f"being built: {size}"),
        ("embedder", _embedder(embedding, is_served=is_served)),
        ("embedded", _embedded(embedding)),
        ("vectors", f"{_size(vectors_bytes)} in memory" if vectors_bytes else unheld),
        *_caches(found),
        *_archive(found),
        ("writing", found.get("write_problem") or "in order"),
    ]


_CACHES = {
    "question": "question vectors",
    "ranking": "rankings",
    "record": "records",
    "token_counts": "token counts",
}
_HELD = ("near", "record", "token_counts")
"""Who tells bytes: question vectors and rankings lie in one."""


def _caches(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    caches = found.get("caches") or {}
    shares = [f"{words} {_share(caches.get(name) or {})}" for name, words in _CACHES.items()]
    held = sum((caches.get(name) or {}).get("bytes", 0) for name in _HELD)
    told = [("remembered", f"{', '.join(shares)}; {_size(held)} in memory")]
    if redis := caches.get("redis"):
        problem = found.get("cache_problem")
        is_well = f"{_share(redis)} of what is not in memory"
        told.append(("redis", f"left alone: {problem}" if problem else is_well))
    return told


def _archive(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    retention, disk = found.get("retention") or {}, found.get("disk") or {}
    told = "nothing"
    if count := retention.get("archived_threads"):
        plain, stored = retention["plain_bytes"], retention["stored_bytes"]
        told = f"{count:,} threads and records, {_size(stored)} of {_size(plain)}"
    if last := retention.get("last_run"):
        told += f"; last run {last['at'][:16].replace('T', ' ')}"
    free = f"{_size(disk['free_bytes'])} free" if disk else "not told"
    return [("archived", told), ("disk", f"nearly full: {free}" if disk.get("is_low") else free)]


def _share(counted: Mapping[str, int]) -> str:
    """Return how many of those that were looked for were there."""
    hits, misses = counted.get("hits", 0), counted.get("misses", 0)
    return f"{hits:,} of {hits + misses:,}"


def _embedder(embedding: Mapping[str, Any], *, is_served: bool) -> str:
    name = embedding.get("name") or "none"
    if name == "none":
        return "none: recall is by words"
    if embedding.get("is_loading") and not embedding.get("serving"):
        when = "recall is by words until it is loaded" if is_served else "loaded when it is needed"
        return f"{embedding.get('identity') or name}: {when}"
    problem = embedding.get("problem")
    if problem and embedding.get("serving"):
        return f"{embedding['serving']}; held up: {problem}"
    if problem:
        return f"recall is by words: {problem}"
    return str(embedding.get("serving") or f"recall is by words until all is embedded: {name}")


def _embedded(embedding: Mapping[str, Any]) -> str:
    if embedding.get("identity") is None:
        return "nothing"
    text = f"up to number {embedding.get('embedded_seq', 0):,}"
    owed_count = embedding.get("owed_count") or 0
    if owed_count:
        text += f", {counted(owed_count, 'message')} to go"
    if embedding.get("replaces"):
        text += f"; {embedding['identity']} takes over from {embedding['replaces']} then"
    if embedding.get("failed_count"):
        text += f"; {embedding['failed_count']:,} that cannot be embedded"
    return text


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
