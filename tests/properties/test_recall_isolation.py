"""Nothing crosses a collection, and nothing a thread that did not ask for its project.

CASES H3 (claude-code-hub PR#793); DESIGN.md 1.8.
"""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from library.embedding.hashing import HashingEmbedder
from library.records import Scope
from tests.unit.library.teller import Teller, opened

COLLECTIONS = ("ann", "ben", "cy")
SESSIONS = ("one", "two")
said = st.tuples(
    st.sampled_from(COLLECTIONS),
    st.sampled_from(SESSIONS),
    st.lists(
        st.sampled_from(["roses", "code", "kestrel", "東京", "deploy"]), min_size=1, max_size=4
    ),
)


@settings(max_examples=25, deadline=None)
@given(turns=st.lists(said, min_size=2, max_size=12), waits=st.booleans())
async def test_no_search_shows_what_lies_outside_its_scope(
    turns: list[tuple[str, str, list[str]]], waits: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder) / "a.db", embedder=HashingEmbedder()) as library:
            tellers = {
                (collection, session): Teller(library, session, collection)
                for collection in COLLECTIONS
                for session in SESSIONS
            }
            for number, (collection, session, some) in enumerate(turns):
                words = " ".join(some)
                await tellers[collection, session].tell(
                    f"{words} {number} said-in-{collection}-{session}"
                )
            asking = {place: one for place, one in tellers.items() if one.recorded is not None}
            if waits:
                for teller in asking.values():
                    await teller.indexed()
            for (collection, session), teller in asking.items():
                marks: dict[Scope, str] = {
                    "thread": f"said-in-{collection}-{session}",
                    "project": f"said-in-{collection}-",
                }
                for scope, mark in marks.items():
                    found = await teller.texts(
                        "roses code kestrel 東京 deploy", scope=scope, limit=50
                    )
                    assert all(mark in text for text in found)
                    here = [
                        text
                        for (other, name), one in tellers.items()
                        if other == collection and (scope == "project" or name == session)
                        for text in (told.text for told in one.told)
                    ]
                    assert sorted(found) == sorted(here)


shelved = st.tuples(
    st.sampled_from(COLLECTIONS),
    st.sampled_from([None, *SESSIONS]),
    st.sampled_from(["insight", "document", "chunk"]),
    st.sampled_from(["roses", "kestrel", "東京"]),
)


@settings(max_examples=15, deadline=None)
@given(records=st.lists(shelved, min_size=2, max_size=10), waits=st.booleans())
async def test_no_search_shows_a_record_outside_of_its_collection_or_its_thread(
    records: list[tuple[str, str | None, str, str]], waits: bool
) -> None:
    """What one thread alone is to find, and what a collection is to find; documents have no
    thread of their own."""
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder) / "a.db", embedder=HashingEmbedder()) as library:
            tellers = {
                (collection, session): Teller(library, session, collection)
                for collection in COLLECTIONS
                for session in SESSIONS
            }
            for teller in tellers.values():
                await teller.tell("unrelated")
            marks = []
            for number, (collection, session, kind, word) in enumerate(records):
                owner = None if kind == "document" else session
                mark = f"{word} {number} of-{collection}-{owner}"
                marks.append((collection, owner, mark))
                recorded = tellers[collection, SESSIONS[0]].recorded
                own = tellers[collection, owner].recorded if owner is not None else None
                assert recorded is not None
                collection_id = recorded.collection_id
                thread_no = None if own is None else own.thread_no
                if kind == "insight":
                    await library.insights.remember(
                        mark, collection_id=collection_id, thread_no=thread_no
                    )
                elif kind == "chunk":
                    await library.documents.shelve_chunk(
                        mark, collection_id=collection_id, thread_no=thread_no
                    )
                else:
                    await library.documents.shelve(
                        f"{number}.md", mark.encode(), collection_id=collection_id
                    )
            if waits:
                assert await library.wait_caught_up(20.0)
            for (collection, session), teller in tellers.items():
                scopes: tuple[Scope, ...] = ("thread", "project")
                for scope in scopes:
                    found = await teller.texts("roses kestrel 東京", scope=scope, limit=50)
                    expected = [
                        mark
                        for place, owner, mark in marks
                        if place == collection
                        and (owner == session or (owner is None and scope == "project"))
                    ]
                    told = [text for text in found if text != "unrelated"]
                    assert sorted(told) == sorted(expected), (collection, session, scope)
