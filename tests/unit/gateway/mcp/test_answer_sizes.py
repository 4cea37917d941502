"""No answer is longer than one may be, whatever is stored and asked for."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.mcp.shapes import ANSWER_CHARS, within
from tests.unit.gateway.mcp.agents import Agent, agent_at, texts
from tests.unit.gateway.serving import served_at

LONG = "The boathouse key of the northern pier " * 90
TAGS = [f"tag-{number:02} " + "x" * 50 for number in range(30)]
ASKED: dict[str, dict[str, Any]] = {
    "consult": {"subject": "boathouse key", "limit": 100, "explain": True},
    "grep": {"pattern": "boathouse", "limit": 100},
    "recall": {"limit": 100},
    "sessions": {"limit": 100},
    "plan_reading": {"questions": ["boathouse key"], "budget_tokens": 100_000},
    "retention_preview": {"archive_after_days": 0, "limit": 100},
    "domains": {},
    "status": {},
}
UNCOUNTED = {"domains", "status"}
"""These have no list of matches."""
ASKED_RLM: dict[str, dict[str, Any]] = {
    "rlm_recall": {"limit": 100},
    "rlm_grep": {"pattern": "boathouse", "limit": 100},
    "rlm_search": {"query": "boathouse key", "limit": 100},
    "rlm_list_chunks": {"limit": 100},
    "rlm_sessions": {"limit": 100},
    "rlm_domains": {},
    "rlm_status": {},
    "rlm_retention_preview": {},
}


async def filled(agent: Agent) -> None:
    """Store much of everything."""
    for number in range(70):
        title = f"{number} {LONG[:500]}"
        await agent.call("prepare", session=f"session {number} " + "s" * 200, message=title)
    for number in range(40):
        text = f"Insight {number * 7919}: {LONG}"
        await agent.call("remember", text=text, tags=TAGS, project=f"p{number} " + "y" * 190)
        await agent.call("shelve", text=f"{number}\n{text}\n" * 2, title=f"{number} {LONG[:150]}")
    assert (await agent.call("flush", session=f"session 0 {'s' * 200}"))["is_indexed"]


async def test_no_answer_of_any_tool_is_longer_than_an_answer_may_be(tmp_path: Path) -> None:
    async with served_at(tmp_path) as origin:
        async with agent_at(origin) as agent:
            await filled(agent)
            cut: list[str] = []
            for tool, arguments in ASKED.items():
                result = await agent.result(tool, **arguments)
                assert not result.is_error, (tool, texts(result))
                size = sum(map(len, texts(result)))
                assert size <= ANSWER_CHARS, (tool, size)
                told: Any = result.structured_content
                if tool not in UNCOUNTED:
                    assert told["is_truncated"] == (told["shown"] < told["matched"]), tool
                    if told["is_truncated"]:
                        cut.append(tool)
            assert {"consult", "recall"} <= {*cut}
            thread = f"library://thread/session%200%20{'s' * 200}"
            assert len(await agent.read(thread)) <= ANSWER_CHARS
        async with agent_at(origin, query="?compat=rlm") as agent:
            for tool, arguments in ASKED_RLM.items():
                result = await agent.result(tool, **arguments)
                assert not result.is_error, (tool, texts(result))
                assert sum(map(len, texts(result))) <= ANSWER_CHARS, tool
        async with agent_at(origin, query="?compat=library") as agent:
            for subject in ("boathouse key", "boathouse " * 100_000):
                result = await agent.result("library_consult", subject=subject, max_books=100)
                assert not result.is_error, texts(result)
                assert sum(map(len, texts(result))) <= ANSWER_CHARS


@pytest.mark.parametrize("count", [1, 700])
async def test_a_thread_says_how_many_messages_it_has_however_few_are_shown(
    tmp_path: Path, count: int
) -> None:
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(count)
    ]
    async with served_at(tmp_path) as origin, agent_at(origin) as agent:
        sent = messages if count % 2 else [*messages, {"role": "user", "content": "the last"}]
        await agent.call("prepare", session="long", messages=sent, budget_tokens=1_000_000)
        told = orjson.loads(await agent.read("library://thread/long"))
        assert told["matched"] == len(sent)
        assert told["shown"] == len(told["messages"]) <= len(sent)


def test_one_item_is_shown_at_least_and_no_more_than_have_room() -> None:
    assert within([]) == []
    assert within(["x" * 10**6, "y"]) == ["x" * 10**6]
    assert len(within(["x" * 998] * 99)) == 38
    rows = [{"a": "é" * 90}] * 9_999
    assert len(orjson.dumps(within(rows)).decode()) <= ANSWER_CHARS
