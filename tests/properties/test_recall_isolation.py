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
