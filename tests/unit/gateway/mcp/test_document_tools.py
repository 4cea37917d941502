"""Documents and chunks through the tools."""

from tests.unit.gateway.mcp.agents import Agent, with_agent

CODE = "def open_boathouse(key):\n    if key == 'blue':\n\treturn True\n    return False\n"


@with_agent
async def test_a_document_is_found_and_opened_as_it_was_and_replaced_whole(agent: Agent) -> None:
    told = await agent.call("shelve_document", source="src/boat.py", text=CODE, project="boats")
    assert (told["state"], told["lines"]) == ("new", 4)
    opened = await agent.call("open", record=told["id"], first_line=2, last_line=3)
    assert opened["text"] == "    if key == 'blue':\n\treturn True\n"
    found = await agent.call("consult", subject="open boathouse key", kinds=["document"])
    assert found["found"][0]["record"]["kind"] == "document"
    assert (await agent.call("shelve_document", source="src/boat.py", text=CODE, project="boats"))[
        "state"
    ] == "unchanged"
    changed = await agent.call(
        "shelve_document", source="src/boat.py", text=CODE.replace("blue", "red"), project="boats"
    )
    assert (changed["id"], changed["state"]) == (told["id"], "changed")
    assert "red" in (await agent.call("open", record=told["id"]))["text"]
    assert (await agent.call("grep", pattern="'blue'"))["lines"] == []


@with_agent
async def test_a_chunk_is_put_by_and_found(agent: Agent) -> None:
    told = await agent.call("shelve", text="The fix: turn the blue key twice.", type="debug")
    assert told["state"] == "new"
    found = await agent.call("consult", subject="blue key fix", kinds=["chunk"], types=["debug"])
    assert found["found"][0]["text"] == "The fix: turn the blue key twice."
    assert (await agent.call("open", record=told["id"]))["text"].startswith("The fix")


@with_agent
async def test_a_source_is_a_name_and_never_opened(agent: Agent) -> None:
    result = await agent.result("shelve_document", source="../../etc/passwd", text="Just words.")
    assert "root:" not in result.model_dump_json()
    assert (await agent.call("grep", pattern="root:"))["lines"] == []
