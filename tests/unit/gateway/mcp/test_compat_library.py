"""The Library of Context's tools on ours, called with the parameters that it documents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.unit.gateway.mcp.agents import Agent, agent_at, agent_on
from tests.unit.gateway.serving import served_at


@asynccontextmanager
async def agent(folder: Path) -> AsyncIterator[Agent]:
    async with agent_on(folder, query="?compat=library") as agent:
        yield agent


async def test_a_book_is_shelved_found_by_its_card_and_replaced_by_its_id(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        made = await one.call(
            "library_shelve",
            text="The staging database listens on 7741.",
            book_id="Staging-1",
            catalog={"area": "ops", "tags": ["db"], "project": "shop"},
            source="runbook",
            importance=0.9,
        )
        book = made["book"]
        assert made["shelved"] is True
        assert book["catalog"] == {
            "tags": ["db"],
            "project": "shop",
            "area": "ops",
            "book": "staging-1",
        }
        assert (book["source"], book["importance"], book["scope"]) == ("runbook", 0.8, "project")
        await one.call("library_shelve", text="Staging is painted green.")
        found = await one.call("library_consult", subject="what listens on the database port?")
        assert found["hits"][0]["book"]["text"] == "The staging database listens on 7741."
        assert {"relevance", "vector_score", "lexical_score"} <= found["hits"][0].keys()
        narrowed = await one.call(
            "library_consult", subject="staging", catalog_filters={"area": "ops"}, max_books=5
        )
        assert [hit["book"]["text"] for hit in narrowed["hits"]] == [book["text"]]
        none = await one.call("library_consult", subject="staging", catalog_filters={"area": "hr"})
        assert none["hits"] == []
        sure = await one.call("library_consult", subject="staging", minimum_relevance=1.0)
        assert sure["hits"] == []
        await one.call("library_shelve", text="Staging moved to 9100.", book_id="Staging-1")
        after = await one.call("library_consult", subject="staging database port")
        said = [hit["book"]["text"] for hit in after["hits"]]
        assert "Staging moved to 9100." in said
        assert book["text"] not in said


async def test_what_the_caller_may_not_or_cannot_have_is_refused(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        assert "expires" in await one.refused("library_shelve", text="x", shelf_life_seconds=5)
        said = await one.refused("library_shelve", text="x", scope="team", team_id="core")
        assert "core" in said
        assert "core" in await one.refused("library_consult", subject="x", team_ids=["core"])
        for tool in ("library_consult", "library_desk_refresh"):
            more = {"session_id": "s"} if "desk" in tool else {}
            await one.refused(tool, subject="x", collection="somebody-else", **more)
        assert "owner_session_id" in await one.refused("library_shelve", text="x", scope="thread")


async def test_a_book_that_is_refused_leaves_the_last_one_of_its_id(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        await one.call("library_shelve", text="The kestrel nests on the tower.", book_id="k")
        await one.refused("library_shelve", text="No.", book_id="k", catalog={"a": "x" * 9_999})
        found = await one.call("library_consult", subject="where does the kestrel nest?")
        assert [hit["book"]["text"] for hit in found["hits"]] == ["The kestrel nests on the tower."]
        for _ in range(2):  # A long one is a chunk, and the same one when it comes again.
            await one.call("library_shelve", text="The kestrel left. " * 1_000, book_id="k")
            found = await one.call("library_consult", subject="where does the kestrel nest?")
            assert {hit["book"]["text"][:17] for hit in found["hits"]} == {"The kestrel left."}


async def test_a_document_is_shelved_in_place_of_its_last_edition(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        text = "".join(f"# Part {at}\n\n{'walrus ' * 100}{at}\n\n" for at in range(8))
        made = await one.call(
            "library_shelve_document", text=text, source="guide.md", chapter_tokens=450
        )
        assert made["shelved"] == len(made["book_ids"]) > 1
        again = await one.call(
            "library_shelve_document", text="# Short now\n", source="guide.md", replace_edition=True
        )
        assert again["shelved"] == 1
        assert (await one.call("library_consult", subject="walrus"))["hits"] == []


async def test_a_desk_is_laid_read_watched_and_left(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        await one.call("library_shelve", text="The kestrel nests on the north tower.", book_id="k")
        await one.call("library_shelve", text="Oats are bought on Mondays.", catalog={"a": "b"})
        desk = await one.call(
            "library_desk_refresh", subject="where does the kestrel nest", session_id="s"
        )
        assert "north tower" in desk["context"]
        assert desk["token_count"] <= desk["token_budget"] == 4_000
        assert desk["swapped_in"] == [book["id"] for book in desk["books"]]
        kept = await one.call(
            "library_desk_refresh",
            subject="oats",
            session_id="s",
            keep_open=["k"],
            token_budget=500,
        )
        assert "north tower" in kept["context"]
        narrow = await one.call(
            "library_desk_refresh", subject="kestrel", session_id="t", catalog_filters={"a": "b"}
        )
        assert "north tower" not in narrow["context"]
        read = await one.call("library_desk_get", session_id="s")
        assert read["found"] is True
        assert read["desk"]["context"] == kept["context"]
        assert await one.call("library_desk_get", session_id="nobody") == {
            "found": False,
            "desk": None,
        }
        watched = await one.call(
            "library_desk_watch", subject="kestrel", session_id="s", interval_seconds=60
        )
        assert watched["watching"] is True
        assert await one.call("library_desk_stop", session_id="s") == {"stopped": True}
        assert await one.call("library_desk_stop", session_id="s") == {"stopped": False}


async def test_a_governed_turn_is_prepared_committed_and_found(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        turn = await one.call(
            "library_context_prepare",
            session_id="talk",
            user_message="The blue key opens the boathouse.",
            system_prompt="Be brief.",
            token_budget=2_000,
            strict_freshness=True,
        )
        assert [row["role"] for row in turn["messages"]] == ["system", "user"]
        assert turn["token_count"] <= turn["token_budget"] == 2_000
        done = await one.call("library_context_commit", session_id="talk", content="Noted.")
        assert (done["recorded"], done["event"]["role"]) == (True, "assistant")
        assert done["event"]["content"] == "Noted."
        following = await one.call(
            "library_context_prepare", session_id="talk", user_message="And the red one?"
        )
        said = [row["content"] for row in following["messages"]]
        assert said == ["The blue key opens the boathouse.", "Noted.", "And the red one?"]
        flushed = await one.call("library_context_flush", session_id="talk", timeout_seconds=20)
        assert flushed["flushed"] is True
        assert flushed["status"]["is_indexed"] is True
        status = await one.call("library_context_status", session_id="talk")
        assert status["watermarks"]["failed_events"] == 0
        assert (await one.call("library_stats"))["threads"] == 1


async def test_what_is_protected_stays_in_every_prompt_until_it_is_released(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        await one.call("library_context_prepare", session_id="s", user_message="Hello.")
        await one.call("library_context_commit", session_id="s", content="Hello.")
        held = await one.call(
            "library_context_protect", session_id="s", content="Answer in verse.", label="style"
        )
        turn = await one.call("library_context_prepare", session_id="s", user_message="And now?")
        assert "Answer in verse." in str(turn["messages"])
        assert held["event"]["event_id"] in turn["protected_event_ids"]
        name = held["event"]["event_id"]
        freed = await one.call("library_context_release", session_id="s", event_id=name)
        assert freed == {"released": True, "event_id": name}
        turn = await one.call("library_context_prepare", session_id="s", user_message="Now?")
        assert "Answer in verse." not in str(turn["messages"])


async def test_messages_are_recorded_and_a_prompt_is_built_from_them(tmp_path: Path) -> None:
    async with agent(tmp_path) as one:
        await one.call("library_shelve", text="The harbour closes at nine.")
        for role, words in (
            ("user", "I sail today."),
            ("assistant", "Fair winds."),
            ("tool", "NE 4"),
        ):
            made = await one.call(
                "library_message_record", session_id="sea", role=role, content=words
            )
            assert made["book"]["role"] == role
        built = await one.call(
            "library_prompt_build",
            session_id="sea",
            user_message="When does the harbour close?",
            system_prompt="You are a pilot.",
            token_budget=1_000,
        )
        said = [row["content"] for row in built["messages"]]
        assert said[0].startswith("You are a pilot.")
        assert "closes at nine" in said[0]
        assert said[1:] == ["I sail today.", "Fair winds.", "NE 4", "When does the harbour close?"]
        assert built["token_count"] <= built["token_budget"]
        short = await one.call(
            "library_prompt_build",
            session_id="sea",
            user_message="Well?",
            record_user=False,
            token_budget=256,
            recent_token_budget=64,
        )
        assert short["messages"][-1] == {"role": "user", "content": "Well?"}
        assert short["token_count"] <= 256
        again = await one.call("library_prompt_build", session_id="sea", token_budget=400)
        assert again["messages"][-1]["content"] == "When does the harbour close?"


async def test_a_prompt_that_is_built_is_a_legal_one(tmp_path: Path) -> None:
    """CASES A3, A7, A11: of an agent's session, that calls tools through the gateway."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    sent = [
        {"role": "user", "content": "Look out. " * 60},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Fog."},
        {"role": "assistant", "content": "There is fog."},
        {"role": "user", "content": "Thanks."},
    ]
    async with (
        served_at(tmp_path) as origin,
        aiohttp.ClientSession(origin) as client,
        agent_at(origin, query="?compat=library") as one,
    ):
        headers = {"x-library-session": "sea"}
        body = {"model": "gpt-4o", "messages": sent}
        async with client.post("/v1/chat/completions", json=body, headers=headers) as answer:
            assert answer.status == 200
        for recent in (64, 4_000):
            built = await one.call(
                "library_prompt_build",
                session_id="sea",
                user_message="And now?",
                record_user=False,
                recent_token_budget=recent,
            )
            said = [row for row in built["messages"] if row["role"] != "system"]
            assert {row["role"] for row in said} == {"user", "assistant"}
            assert said[0]["role"] == said[-1]["role"] == "user"
            assert all(row["content"] for row in said)
