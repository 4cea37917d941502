"""The tools as the official client sees them, over HTTP, on a real gateway."""

import logging
import queue
from logging.handlers import QueueHandler
from pathlib import Path

import aiohttp
import orjson
import pytest
from mcp.shared.exceptions import MCPError

from gateway.auth import add_key
from gateway.mcp.greeting import greeting
from gateway.mcp.names import SETS, TOOLS
from gateway.mcp.shapes import ANSWER_CHARS
from governor.governor import Governor
from library import overview
from library.lock import read_owner
from tests.unit.gateway.mcp.agents import Agent, agent_at, agent_on, texts, with_agent
from tests.unit.gateway.serving import chat, served_at

LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
KEY = "The blue key opens the boathouse."


@with_agent
async def test_every_tool_is_described_bounded_and_annotated(agent: Agent) -> None:
    tools = (await agent.client.list_tools()).tools
    assert [tool.name for tool in tools] == [*TOOLS]
    for tool in tools:
        assert tool.description and len(tool.description) > 40, tool.name
        assert tool.output_schema, tool.name
        assert tool.annotations is not None and tool.annotations.title
        assert tool.annotations.open_world_hint is False
        for name, schema in tool.input_schema["properties"].items():
            is_bounded = "maxLength" in str(schema) or "string" not in str(schema)
            assert is_bounded or "enum" in str(schema) or "object" in str(schema), (tool.name, name)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_generations_of_the_protocol_are_served(tmp_path: Path, mode: str) -> None:
    async with served_at(tmp_path) as origin, agent_at(origin, mode=mode) as agent:
        await agent.said("notes", (KEY, "Noted."))
        found = await agent.call("consult", subject="What opens the boathouse?")
        assert found["found"][0]["text"] == KEY


async def test_the_bridge_greets_as_the_server_does(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin, agent_at(origin, mode="legacy") as agent:
        told = agent.client.session.initialize_result
        assert told is not None
        said = told.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert said == greeting(said["protocolVersion"])


@with_agent
async def test_what_was_said_is_found_opened_and_explained(agent: Agent) -> None:
    await agent.said("notes", (KEY, "Noted."), ("The red one opens nothing.", "Noted too."))
    found = await agent.call("consult", subject="What opens the boathouse?", explain=True)
    best = found["found"][0]
    assert (best["text"], best["record"]["session"], best["record"]["role"]) == (
        KEY,
        "notes",
        "user",
    )
    assert best["why"]["lexical"] > 0
    assert found["shown"] == len(found["found"]) <= found["matched"]
    opened = await agent.result("open", record=best["record"]["id"])
    assert texts(opened)[1] == KEY


@with_agent
async def test_grep_finds_exact_words_and_near_ones(agent: Agent) -> None:
    await agent.said("notes", ("one\n" + KEY, "Noted."), ("Error E4711 at start", "Noted."))
    found = await agent.call("grep", pattern=r"E\d{4}")
    assert [line["text"] for line in found["lines"]] == ["Error E4711 at start"]
    found = await agent.call("grep", pattern="boathose", fuzzy=True)
    assert [(line["text"], line["line"]) for line in found["lines"]] == [(KEY, 2)]
    cut = await agent.call("grep", pattern=".", limit=1)
    assert (cut["shown"], cut["matched"], cut["is_truncated"]) == (1, 5, True)


@with_agent
async def test_a_record_is_read_by_lines_and_says_what_is_left(agent: Agent) -> None:
    whole = "\n".join(f"line {number}" for number in range(1, 21))
    await agent.said("log", (whole, "Read."))
    record = (await agent.call("consult", subject="line 7"))["found"][0]["record"]["id"]
    part = await agent.call("open", record=record, first_line=7, last_line=9)
    assert part["text"] == "line 7\nline 8\nline 9\n"
    assert (part["first_line"], part["last_line"], part["line_count"]) == (7, 9, 20)
    behind = await agent.call("open", record=record, first_line=99)
    assert (behind["text"], behind["last_line"]) == ("", 98)


@with_agent
async def test_no_answer_is_longer_than_an_answer_may_be(agent: Agent) -> None:
    long = "\n".join(f"boathouse {number} " + "x" * 200 for number in range(1_000))
    await agent.said("log", (long, "Read."))
    record = (await agent.call("consult", subject="boathouse"))["found"][0]["record"]["id"]
    opened = await agent.call("open", record=record)
    assert opened["is_truncated"] and len(opened["text"]) <= ANSWER_CHARS
    rest = await agent.call("open", record=record, first_line=opened["last_line"] + 1)
    assert rest["text"].startswith(f"boathouse {opened['last_line']} ")
    many = [
        {"role": ("user", "assistant")[at % 2], "content": f"boathouse {at} " + "y" * 1_100}
        for at in range(80)
    ]
    await agent.call("prepare", session="many", messages=many[:-1], budget_tokens=1_000_000)
    assert (await agent.call("flush", session="many"))["is_indexed"]
    found = await agent.call("consult", subject="boathouse", limit=100)
    assert found["is_truncated"] and found["shown"] < found["matched"]
    assert sum(len(one["text"]) for one in found["found"]) <= ANSWER_CHARS


@with_agent
async def test_a_plan_names_the_parts_to_read_within_its_budget(agent: Agent) -> None:
    await agent.said(
        "notes",
        (KEY, "Noted."),
        ("The ferry leaves at nine from pier four.", "Noted."),
        ("x " * 3_000 + "boathouse", "Long."),
    )
    plan = await agent.call(
        "plan_reading",
        questions=["What opens the boathouse?", "When does the ferry leave?"],
        budget_tokens=64,
    )
    assert plan["tokens"] == sum(part["tokens"] for part in plan["parts"]) <= 64
    assert {part["preview"] for part in plan["parts"][:2]} == {
        KEY,
        "The ferry leaves at nine from pier four.",
    }
    assert plan["is_truncated"] and plan["matched"] > plan["shown"]


@with_agent
async def test_a_desk_is_replaced_and_says_what_came_and_went(agent: Agent) -> None:
    await agent.said(
        "notes", (KEY, "Noted."), ("Ingrid's birthday is on the third of May.", "Yes.")
    )
    first = await agent.call("desk_refresh", session="agent", subject="What opens the boathouse?")
    assert KEY in first["block"] and first["swapped_out"] == []
    key_id = first["records"][0]["id"]
    second = await agent.call(
        "desk_refresh", session="agent", subject="Ingrid's birthday in May", limit=1
    )
    assert "Ingrid" in second["block"] and KEY not in second["block"]
    assert key_id in second["swapped_out"]
    kept = await agent.call(
        "desk_refresh", session="agent", subject="Ingrid's birthday in May", keep=[key_id]
    )
    assert KEY in kept["block"]
    assert (await agent.call("desk_get", session="agent"))["block"] == kept["block"]
    assert await agent.read("library://desk/agent") == kept["block"]


@with_agent
async def test_nothing_lies_on_a_desk_for_what_nobody_spoke_of(agent: Agent) -> None:
    desk = await agent.call("desk_refresh", session="new", subject="quantum chromodynamics")
    assert (desk["block"], desk["tokens"], desk["records"]) == ("", 0, [])
    assert "no desk 'other'" in await agent.refused("desk_get", session="other")


@with_agent
async def test_a_watched_desk_is_watched_until_it_is_stopped(agent: Agent) -> None:
    watched = await agent.call("desk_watch", session="agent", subject="boathouse", interval_s=5)
    assert watched["interval_s"] == 5
    stopped = await agent.call("desk_stop", session="agent")
    assert stopped == {"session": "agent", "was_watched": True}
    assert (await agent.call("desk_get", session="agent"))["interval_s"] is None
    assert not (await agent.call("desk_stop", session="agent"))["was_watched"]


async def test_what_was_forgotten_is_off_every_desk(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin, agent_at(origin) as agent:
        await agent.said("notes", (KEY, "Noted."))
        await agent.call("desk_refresh", session="agent", subject="What opens the boathouse?")
        async with (
            aiohttp.ClientSession() as http,
            http.delete(f"{origin}/library/threads/notes") as answer,
        ):
            assert answer.status == 200
        assert (await agent.call("desk_get", session="agent"))["block"] == ""


@with_agent
async def test_a_prepared_turn_stays_within_its_budget_and_brings_back_the_past(
    agent: Agent,
) -> None:
    chatter = [
        (f"Tell me about day {day}. " + "It rained. " * 40, "It rained.") for day in range(9)
    ]
    await agent.said("long", (KEY, "Noted."), *chatter)
    turn = await agent.call(
        "prepare",
        session="long",
        message="What opens the boathouse?",
        system="Be brief.",
        budget_tokens=500,
    )
    assert turn["tokens"] <= 500
    assert turn["messages"][0] == {"role": "system", "content": "Be brief."}
    assert turn["messages"][-1]["content"].endswith("What opens the boathouse?")
    assert KEY in str(turn["messages"]) and turn["paged_out"] > 0
    done = await agent.call("commit", turn_id=turn["turn_id"], content="The blue key.")
    assert done["state"] == "done"
    assert "prepare it again" in await agent.refused(
        "commit", turn_id=turn["turn_id"], content="The blue key."
    )


@with_agent
async def test_a_transcript_can_be_prepared_whole_with_its_tool_calls(agent: Agent) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a boathouse"},
    ]
    turn = await agent.call("prepare", session="tools", messages=messages)
    assert turn["messages"] == messages
    await agent.call(
        "commit", turn_id=turn["turn_id"], message={"role": "assistant", "content": "I see it."}
    )
    rows = orjson.loads(await agent.read("library://thread/tools"))["messages"]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]


@with_agent
async def test_what_cannot_fit_is_refused_with_the_numbers(agent: Agent) -> None:
    said = await agent.refused("prepare", session="s", message="word " * 400, budget_tokens=100)
    assert "maximum context length of 100 tokens" in said


@with_agent
async def test_a_turn_needs_one_text_or_one_transcript(agent: Agent) -> None:
    assert "either" in await agent.refused("prepare", session="s")
    assert "either" in await agent.refused(
        "prepare", session="s", message="x", messages=[{"role": "user", "content": "x"}]
    )
    assert "messages" in await agent.refused("prepare", session="s", messages=[{"role": 5}])


@with_agent
async def test_a_pin_is_kept_and_let_go_of(agent: Agent) -> None:
    await agent.said("notes", (KEY, "Noted."))
    record = (await agent.call("consult", subject="boathouse"))["found"][0]["record"]["id"]
    assert (await agent.call("pin", record=record))["record"]["id"] == record
    turn = await agent.call("prepare", session="notes", message="Hello", recall="off")
    assert KEY in str(turn["messages"])
    assert (await agent.call("unpin", record=record))["was_pinned"]


@with_agent
async def test_sessions_are_listed_and_narrowed(agent: Agent) -> None:
    await agent.said("alpha", ("One.", "1"))
    await agent.said("beta", ("Two.", "2"))
    listed = await agent.call("sessions")
    assert [row["session_id"] for row in listed["sessions"]] == ["beta", "alpha"]
    narrowed = await agent.call("sessions", containing="ALPH")
    assert [row["session_id"] for row in narrowed["sessions"]] == ["alpha"]
    cut = await agent.call("sessions", limit=1)
    assert (cut["shown"], cut["matched"], cut["is_truncated"]) == (1, 2, True)


@with_agent
async def test_the_status_says_how_far_the_library_is(agent: Agent) -> None:
    await agent.said("alpha", ("One.", "1"))
    told = await agent.call("status")
    assert told["collection"] == "default"
    assert told["library"]["recorded_seq"] == told["library"]["indexed_seq"] == 2
    assert told["library"]["quarantined"] == []


async def test_a_deleted_thread_is_gone_from_every_tool_and_resource(tmp_path: Path) -> None:
    """Issue 6, a known fault of the seeds; of the files: tests/unit/library/test_catalogue.py."""
    async with served_at(tmp_path) as origin, agent_at(origin) as agent:
        await agent.said("gone", (KEY, "Noted."))
        record = (await agent.call("consult", subject="boathouse"))["found"][0]["record"]["id"]
        await agent.call("remember", text="Only here: the boathouse is red.", thread="gone")
        await agent.call("pin", record=record, everywhere=True)
        await agent.call("desk_refresh", session="agent", subject="boathouse")
        async with (
            aiohttp.ClientSession(origin) as http,
            http.delete("/library/threads/gone") as answer,
        ):
            assert answer.status == 200
        assert (await agent.call("consult", subject="boathouse"))["found"] == []
        assert (await agent.call("grep", pattern="boathouse"))["lines"] == []
        assert (await agent.call("recall"))["insights"] == []
        assert (await agent.call("sessions"))["matched"] == 0
        assert (await agent.call("plan_reading", questions=["boathouse"]))["parts"] == []
        assert (await agent.call("desk_get", session="agent"))["block"] == ""
        assert "no " in await agent.refused("open", record=record)
        turn = await agent.call("prepare", session="new", message="What opens the boathouse?")
        assert "blue key" not in str(turn["messages"])
        for uri in (f"library://record/{record}", "library://thread/gone"):
            with pytest.raises(MCPError, match="no "):
                await agent.client.read_resource(uri)


async def test_sessions_beyond_those_that_are_looked_through_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than a thousand the answer said that a thousand matched, and that these were all."""
    monkeypatch.setattr(overview, "COUNT_MAX", 2)
    async with agent_on(tmp_path) as agent:
        for number, is_cut in ((1, False), (2, False), (3, True)):
            await agent.call("prepare", session=f"s{number}", message="Hello.")
            told = await agent.call("sessions")
            assert (told["shown"], told["is_truncated"]) == (min(number, 2), is_cut)


@with_agent
async def test_prompts_name_the_session(agent: Agent) -> None:
    names = {prompt.name for prompt in (await agent.client.list_prompts()).prompts}
    assert names == {"start_of_session", "end_of_session"}
    prompt = await agent.client.get_prompt("start_of_session", {"session": "s7", "task": "Tidy."})
    assert "'s7'" in str(prompt.messages) and "Tidy." in str(prompt.messages)


@with_agent
async def test_a_prompt_without_its_argument_is_refused_and_no_fault_in_the_log(
    agent: Agent,
) -> None:
    heard: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = QueueHandler(heard)
    handler.setLevel(logging.WARNING)
    logging.getLogger("mcp").addHandler(handler)
    try:
        with pytest.raises(MCPError, match=r"Missing required arguments: \{'session'\}"):
            await agent.client.get_prompt("end_of_session", {})
        with pytest.raises(MCPError, match="Unknown prompt: lunch"):
            await agent.client.get_prompt("lunch", {"session": "s7"})
    finally:
        logging.getLogger("mcp").removeHandler(handler)
    assert heard.empty()


@with_agent
async def test_a_resource_that_is_not_there_is_said_to_be_missing(agent: Agent) -> None:
    for uri in ("library://record/e99", "library://thread/none", "library://desk/none"):
        with pytest.raises(MCPError, match="no "):
            await agent.client.read_resource(uri)


# -- who may what ---------------------------------------------------------------------------------
async def test_a_key_reaches_its_own_collection_and_no_other(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    _, one = add_key(keys, key_id="one", collection="one")
    _, two = add_key(keys, key_id="two", collection="two")
    async with served_at(tmp_path, keys_file=str(keys)) as origin:
        async with agent_at(origin, key=one) as agent:
            await agent.said("notes", (KEY, "Noted."))
            record = (await agent.call("consult", subject="boathouse"))["found"][0]["record"]["id"]
        async with agent_at(origin, key=two) as agent:
            assert (await agent.call("consult", subject="boathouse"))["found"] == []
            assert "no event" in await agent.refused("open", record=record)
            assert "no event" in await agent.refused("pin", record=record)
            assert (await agent.call("sessions"))["matched"] == 0
        async with agent_at(origin, key=two, query="?collection=one") as agent:
            assert "may not" in await agent.refused("open", record=record)


async def test_reading_makes_no_collection_and_remembering_does(tmp_path: Path) -> None:
    """The owner's agents may name any; whatever they read made the one that they named."""
    async with served_at(tmp_path) as origin:
        owner = read_owner(tmp_path / "library.db")
        assert owner is not None and owner.token is not None
        async with agent_at(origin, key=owner.token, query="?collection=birds") as agent:
            assert (await agent.call("consult", subject="kestrel"))["found"] == []
            assert (await agent.call("grep", pattern="kestrel"))["lines"] == []
            assert (await agent.call("recall", subject="kestrel"))["insights"] == []
            assert (await agent.call("sessions"))["matched"] == 0
            assert await collections(origin, owner.token) == []
            await agent.call("remember", text="The kestrel nests on the tower.")
            assert len((await agent.call("recall", subject="kestrel"))["insights"]) == 1
            assert await collections(origin, owner.token) == ["birds"]
        async with agent_at(origin, key=owner.token, query="?compat=library") as agent:
            for tool in ("library_consult", "library_desk_watch", "library_stats"):
                given = {} if tool == "library_stats" else {"subject": "kestrel"}
                given |= {"session_id": "s"} if "desk" in tool else {}
                assert "'birds'" in await agent.refused(tool, collection="brids", **given)
        assert await collections(origin, owner.token) == ["birds"]


async def collections(origin: str, token: str) -> list[str]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(origin, headers=headers) as http,
        http.get("/library/stats") as answer,
    ):
        return [one["collection"] for one in (await answer.json())["collections"]]


async def post(
    origin: str, *, path: str = "/mcp", body: bytes = LIST, **headers: str
) -> tuple[int, str]:
    """Post as a client would that is not the official one."""
    usual = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with (
        aiohttp.ClientSession(origin) as http,
        http.post(
            path,
            data=body,
            headers=usual | {n.rstrip("_").replace("_", "-"): v for n, v in headers.items()},
        ) as answer,
    ):
        return answer.status, await answer.text()


async def test_nobody_comes_in_without_a_key_where_keys_are_needed(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    add_key(keys, key_id="one", collection="one")
    async with served_at(tmp_path, keys_file=str(keys)) as origin:
        assert (await post(origin))[0] == 401
        assert (await post(origin, authorization="Bearer loc-wrong"))[0] == 401


async def test_pages_of_the_web_cannot_post_to_us(tmp_path: Path) -> None:
    """The seeds' HTTP servers took a POST from any page (CASES: DNS rebinding, DESIGN 9)."""
    async with served_at(tmp_path) as origin:
        assert (await post(origin))[0] == 200
        assert (await post(origin, origin_="https://evil.example"))[0] == 403
        assert (await post(origin, host="evil.example"))[0] == 403
        # What a form can send without asking first.
        assert (await post(origin, content_type="text/plain"))[0] in {400, 415}


async def test_only_posts_are_answered(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin, aiohttp.ClientSession(origin) as http:
        for method in ("GET", "DELETE", "PUT"):
            async with http.request(method, "/mcp") as answer:
                assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_the_setting_bounds_what_a_client_may_ask_for(tmp_path: Path) -> None:
    async with served_at(tmp_path, mcp_tools=("cooperative",)) as origin:
        async with agent_at(origin) as agent:
            names = {tool.name for tool in (await agent.client.list_tools()).tools}
            assert names == SETS["cooperative"]
            assert "Unknown tool" in await agent.refused("prepare", session="s", message="x")
        async with agent_at(origin, query="?tools=consult,prepare") as agent:
            assert [tool.name for tool in (await agent.client.list_tools()).tools] == ["consult"]
        status, said = await post(origin, path="/mcp?tools=everything")
        assert status == 400 and "everything" in said


async def test_servers_of_other_tools_share_their_desks(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin:
        async with agent_at(origin, query="?tools=desk_refresh") as agent:
            await agent.call("desk_refresh", session="s", subject="anything")
        async with agent_at(origin, query="?tools=desk_get") as agent:
            assert (await agent.call("desk_get", session="s"))["subject"] == "anything"


async def test_what_the_proxy_recorded_is_found_and_the_other_way_round(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin, agent_at(origin) as agent:
        body = orjson.dumps(chat(KEY))
        path = "/v1/chat/completions"
        assert (await post(origin, path=path, body=body, x_library_session="chat"))[0] == 200
        assert (await agent.call("flush", session="chat"))["is_indexed"]
        found = await agent.call("consult", subject="What opens the boathouse?")
        assert found["found"][0]["record"]["session"] == "chat"


async def test_a_fault_of_ours_is_not_told_as_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise TypeError("a broken invariant")

    async with served_at(tmp_path) as origin, agent_at(origin) as agent:
        too_long = [{"role": "user", "content": "x", "n": 2**70}]
        said = await agent.refused("prepare", session="s", messages=too_long)
        assert "'messages' cannot be written" in said
        monkeypatch.setattr(Governor, "prepare", broken)
        assert "invariant" not in await agent.refused("prepare", session="s", message="hello")
