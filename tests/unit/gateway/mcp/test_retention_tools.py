"""Retention through the tools."""

from tests.unit.gateway.mcp.agents import Agent, with_agent


@with_agent
async def test_an_agent_previews_runs_finds_and_restores(agent: Agent) -> None:
    told = await agent.call("remember", text="The weir opens at dawn.", importance="low")
    await agent.call("remember", text="Never lift the weir in a flood.", importance="critical")
    rule = {"archive_after_days": 0, "kinds": ["insight"]}
    seen = await agent.call("retention_preview", **rule)
    assert [one["action"] for one in seen["steps"]] == ["archive"]
    assert (seen["shown"], seen["matched"], seen["is_truncated"]) == (1, 1, False)
    assert seen["kept"] == {"pinned": 1}
    ran = await agent.call("retention_run", **rule)
    assert (ran["archived"], ran["purged"]) == (1, 0)
    found = await agent.call("consult", subject="when does the weir open")
    assert found["found"][0]["text"] == "The weir opens at dawn."
    assert found["found"][0]["record"]["is_archived"]
    name = told["insight"]["id"]
    assert await agent.call("restore", records=[name]) == {"restored": 1}
    await agent.call("retention_run", **rule)
    assert (await agent.call("open", record=told["insight"]["record"]))["text"]
    assert await agent.call("restore", records=[name]) == {"restored": 0}


@with_agent
async def test_a_long_preview_says_how_much_it_leaves_out(agent: Agent) -> None:
    for number in range(5):
        text = f"Fact {number} of the sluice {number}{number}{number}."
        await agent.call("remember", text=text, importance="low")
    seen = await agent.call("retention_preview", archive_after_days=0, limit=2)
    assert (seen["shown"], seen["matched"], seen["is_truncated"]) == (2, 5, True)
    assert seen["archive"] == 5


@with_agent
async def test_without_a_rule_nothing_is_done_and_what_is_no_record_is_refused(
    agent: Agent,
) -> None:
    await agent.call("remember", text="The weir opens at dawn.", importance="low")
    assert (await agent.call("retention_run"))["archived"] == 0
    assert "nobody" in await agent.refused("restore", records=["nobody"])
    assert "kind" in await agent.refused("retention_run", kinds=["insight"])
