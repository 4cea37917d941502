"""No part of a record keeps a secret when `mask_secrets` is set, whichever way it came."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from library.kinds.filter import Filter
from library.kinds.record import Facts
from library.library import Library
from library.moving.records import MovedRecord, MovedThread
from library.runtime.options import LibraryOptions

PASSWORD = "hunter22horse" * 6
"""So long that the end of an address, cut off for a name, begins within it."""
KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1"
URL = f"https://ada:{PASSWORD}@example.org/notes.md"
MASKED_URL = "https://[masked url password]@example.org/notes.md"
MASKED = "[masked openai key]"


@pytest_asyncio.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    library = await Library.open(LibraryOptions(tmp_path / "a.db", mask_secrets=True))
    yield library
    await library.close()
    content = await asyncio.to_thread(all_bytes, tmp_path)
    for secret in (PASSWORD[-40:], PASSWORD[:13] * 2, KEY, KEY.lower()):
        assert secret.encode() not in content


def all_bytes(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest_asyncio.fixture
async def ann(library: Library) -> int:
    return await library.store.made_collection("ann")


async def test_every_name_of_an_insight_is_masked_and_it_is_found_by_what_was_given(
    library: Library, ann: int
) -> None:
    told = await library.insights.remember(
        "the deploy key was changed",
        collection_id=ann,
        tags=[KEY, "plain"],
        project=KEY,
        source=URL,
    )
    facts = told.insight.record.facts
    assert facts.tags == (MASKED, "plain")
    assert (facts.project, facts.source) == (MASKED, MASKED_URL)
    for wanted in (Filter(tags=(KEY.lower(),)), Filter(projects=(KEY,)), Filter(sources=(URL,))):
        page, count = await library.insights.newest(wanted, collection_id=ann, limit=9)
        assert count == len(page) == 1
    again = await library.insights.remember(
        "the deploy key was changed", collection_id=ann, project=KEY
    )
    assert not again.is_new
    changed = await library.insights.update(
        told.insight.record.id, collection_id=ann, project=f"x {KEY}", tags=[KEY]
    )
    assert changed.record.facts.project == f"x {MASKED}"
    assert changed.record.facts.tags == (MASKED,)


async def test_a_document_is_known_again_by_an_address_with_a_password(
    library: Library, ann: int
) -> None:
    """The end of its source stands in every part, and a cut password has no form to be known by."""
    shelve = library.documents.shelve
    first = await shelve(URL, b"# One\n\nwords\n", collection_id=ann, title=f"by {KEY}", tags=[KEY])
    assert first.record.facts.source == MASKED_URL
    assert first.record.facts.title == f"by {MASKED}"
    same = await shelve(URL, b"# One\n\nwords\n", collection_id=ann, tags=[KEY])
    assert (same.state, same.record.id) == ("unchanged", first.record.id)
    changed = await shelve(URL, b"# Two\n\nwords\n", collection_id=ann, title=KEY)
    assert (changed.state, changed.record.id) == ("changed", first.record.id)
    chunk = await library.documents.shelve_chunk("said", collection_id=ann, title=KEY, tags=[KEY])
    assert chunk.record.facts.title == MASKED


async def test_what_comes_from_another_library_is_masked_too(library: Library, ann: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    facts = Facts(
        kind="insight",
        type="fact",
        project=KEY,
        source=URL,
        title=KEY,
        tags=(KEY.lower(), KEY),
        origin={"of": KEY},
    )
    record = MovedRecord(facts, version=1, told_count=1, said_at=now)
    await library.graft(MovedThread("ann", id="moved", record=record), [], now=now)
    kept = (await library.store.kinds.record("moved", collection_id=ann)).facts
    assert (kept.project, kept.title, kept.tags) == (MASKED, MASKED, (MASKED,))
    assert (kept.source, kept.origin) == (MASKED_URL, {"of": MASKED})


@pytest.mark.parametrize("tag", ["asia", "bearer", "akia", "sk-learn", "eu-west-1"])
async def test_ordinary_tags_are_left_alone(library: Library, ann: int, tag: str) -> None:
    told = await library.insights.remember("a fact", collection_id=ann, tags=[tag])
    assert told.insight.record.facts.tags == (tag,)


async def test_an_access_key_that_a_tag_made_lower_case_is_known(library: Library) -> None:
    kept = library.store.kinds.kept(
        Facts(kind="insight", type="fact", tags=("akiaiosfodnn7example",))
    )
    assert kept.tags == ("[masked aws access key]",)
    assert library.store.kinds.kept(kept) == replace(kept)
