"""Insights through the tools: remembered, found, changed, protected and let go of."""

from pathlib import Path

from gateway.auth import add_key
from gateway.mcp.shapes import filter_of
from tests.unit.gateway.mcp.agents import Agent, agent_at, with_agent
from tests.unit.gateway.serving import served_at

RULE = "Never deploy on a Friday."


@with_agent
async def test_what_is_remembered_is_recalled_by_subject_and_by_filters(agent: Agent) -> None:
    first = await agent.call(
        "remember", text="We deploy on Heroku.", type="decision", project="web", tags=["Deploy"]
    )
    assert first["is_new"] and first["insight"]["tags"] == ["deploy"]
    await agent.call("remember", text="Ingrid prefers tea.", type="preference", project="people")
    found = await agent.call("recall", subject="where do we deploy?")
    assert found["insights"][0]["text"] == "We deploy on Heroku."
    assert found["insights"][0]["score"] > 0
    newest = await agent.call("recall")
    assert [one["text"] for one in newest["insights"]] == [
        "Ingrid prefers tea.",
        "We deploy on Heroku.",
    ]
    narrowed = await agent.call("recall", projects=["web"], types=["decision"], tags=["deploy"])
    assert [one["id"] for one in narrowed["insights"]] == [first["insight"]["id"]]
    assert (await agent.call("recall", since="2999-01-01"))["insights"] == []
    cut = await agent.call("recall", limit=1)
    assert (cut["shown"], cut["matched"], cut["is_truncated"]) == (1, 2, True)


@with_agent
async def test_the_same_again_is_told_once_more_and_the_older_fact_is_replaced(
    agent: Agent,
) -> None:
    first = await agent.call("remember", text="We deploy on Heroku.")
    again = await agent.call("remember", text="We deploy on Heroku!", importance="high")
    assert not again["is_new"] and again["insight"]["id"] == first["insight"]["id"]
    assert (again["insight"]["importance"], again["insight"]["told_count"]) == ("high", 2)
    moved = await agent.call(
        "remember", text="Since May we run on AWS.", replaces=[first["insight"]["id"]]
    )
    assert moved["insight"]["replaces"] == [again["insight"]["record"]]


@with_agent
async def test_an_insight_is_changed_and_forgotten_for_good(agent: Agent) -> None:
    told = (await agent.call("remember", text="The key is blue."))["insight"]
    changed = await agent.call("update", insight=told["id"], text="The key is red.")
    assert (changed["id"], changed["version"]) == (told["id"], 2)
    assert (await agent.call("grep", pattern="key is"))["lines"][0]["text"] == "The key is red."
    assert (await agent.call("forget", insights=[told["id"]])) == {"forgotten": 1}
    assert (await agent.call("recall"))["matched"] == 0
    assert (await agent.call("grep", pattern="key is"))["lines"] == []
    assert "no " in await agent.refused("update", insight=told["id"], text="x")


@with_agent
async def test_filters_apply_before_the_cut(agent: Agent) -> None:
    """In the seeds a filter looked at the ten best only, and found nothing below them."""
    await agent.call("remember", text="The boathouse key hangs in the hall.", project="house")
    for number in range(12):
        await agent.call(
            "remember", text=f"Boathouse key {number}: the boathouse key, boathouse {number * 37}."
        )
    found = await agent.call("consult", subject="boathouse key", projects=["house"], limit=1)
    assert [one["record"]["kind"] for one in found["found"]] == ["insight"]
    assert "hall" in found["found"][0]["text"]


@with_agent
async def test_a_protected_text_is_in_every_prompt_of_its_session_until_released(
    agent: Agent,
) -> None:
    await agent.said("work", ("Hello.", "Hi."))
    await agent.said("other", ("Hello there.", "Hi."))
    kept = await agent.call("protect", session="work", content=RULE, label="deploys")
    assert kept["insight"]["tags"] == ["deploys", "protected"]

    async def prompt(session: str) -> str:
        turn = await agent.call("prepare", session=session, message="What now?", recall="off")
        return str(turn["messages"])

    assert RULE in await prompt("work")
    assert RULE not in await prompt("other")
    released = await agent.call("release", session="work", id=kept["insight"]["id"])
    assert released["was_protected"]
    assert RULE not in await prompt("work")
    assert (await agent.call("recall", subject="deploy on Friday", thread="work"))["insights"]


@with_agent
async def test_domains_are_counted(agent: Agent) -> None:
    await agent.call("remember", text="One thing.", project="web", tags=["a", "b"])
    await agent.call("remember", text="Quite another matter.", type="rule", tags=["a"])
    found = await agent.call("domains")
    assert found == {
        "projects": {"web": 1},
        "types": {"fact": 1, "rule": 1},
        "tags": {"a": 2, "b": 1},
        "matched": {"projects": 1, "types": 2, "tags": 2},
        "records": 2,
        "is_truncated": False,
    }


async def test_another_key_finds_and_changes_nothing(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    _, one = add_key(keys, key_id="one", collection="one")
    _, two = add_key(keys, key_id="two", collection="two")
    async with served_at(tmp_path, keys_file=str(keys)) as origin:
        async with agent_at(origin, key=one) as agent:
            told = (await agent.call("remember", text=RULE))["insight"]
        async with agent_at(origin, key=two) as agent:
            assert (await agent.call("recall"))["matched"] == 0
            for tool, more in (("update", {"text": "x"}), ("forget", {})):
                name = {"insight": told["id"]} if tool == "update" else {"insights": [told["id"]]}
                assert "no " in await agent.refused(tool, **name, **more)
        async with agent_at(origin, key=one) as agent:
            assert (await agent.call("recall"))["insights"][0]["text"] == RULE


@with_agent
async def test_what_is_no_insight_is_refused_in_words(agent: Agent) -> None:
    assert "text" in await agent.refused("remember", text=" ")
    assert "type" in await agent.refused("remember", text="x", type="rumour")
    assert "since" in await agent.refused("recall", since="yesterday")


def test_a_filter_asks_for_a_tag_in_the_spelling_that_it_is_kept_in() -> None:
    assert filter_of(tags=["Cafe\u0301  Menu"]).tags == ("caf\u00e9 menu",)
