"""Random damage to a good Responses request: the client is told in its own shape, and the gateway
and its library stay whole. `ODD_REQUESTS=5000` makes the long run of it."""

import json
import os
from collections import Counter
from typing import Any

import pytest

from tests.e2e.answers import Json
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.responses_answers import (
    RESPONSES_PATH,
    calling,
    reasoned,
    responded,
    spoken,
    streamed_items,
)
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import MODEL, Client
from tests.e2e.test_odd_requests import Damage

REQUESTS = int(os.environ.get("ODD_REQUESTS", "200"))
BUDGETS = (60, 300, 900, 4_000)
TOOLS: list[Json] = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}},
    {"type": "custom", "name": "patch"},
    {"type": "web_search"},
]


def talk(damage: Damage, topic: str) -> list[Json]:
    """Return a transcript with an item of every kind that clients send much."""
    good: list[Json] = [
        {"type": "message", "role": "developer", "content": "d"},
        {"role": "user", "content": [
            {"type": "input_text", "text": topic},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
            {"type": "input_file", "filename": "a", "file_data": "data:text/plain;base64,QQ=="}]},
        reasoned(), spoken("x"), calling("a"), calling("b", "look", "no JSON"),
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "+"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b",
         "output": [{"type": "input_text", "text": "2"}]},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "3"},
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {"type": "item_reference", "id": "msg_nobody"},
        {"role": "assistant", "content": "ok"},
    ]  # fmt: skip
    turns = [
        {"role": "user" if turn % 2 else "assistant", "content": f"{topic} {turn}"}
        for turn in range(damage.chance.randint(0, 8))
    ]
    return [*good[: damage.chance.randint(1, len(good))], *turns, {"role": "user", "content": "q"}]


def answered(seen: Seen) -> Any:
    body = seen.json
    item, name = spoken("fine"), f"resp_{seen.number}"
    return (streamed_items if body.get("stream") is True else responded)(item, name=name)


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_request_never_ends_in_a_server_error_and_harms_nothing(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, seed: int
) -> None:
    """STYLE, errors; DESIGN 1.1, 1.3, 1.6: with and without sessions, at any budget."""
    upstream.budget_tokens = None
    upstream.respond = answered
    damage = Damage(seed)
    statuses: Counter[int] = Counter()
    names: list[str] = []
    for number in range(REQUESTS):
        items: Any = talk(damage, topic)
        for _ in range(damage.chance.randint(1, 3)):
            place = damage.chance.randrange(len(items)) if isinstance(items, list) and items else -1
            if number % 2 and place >= 0:
                items[place] = damage.done_to(items[place])
            else:
                items = damage.done_to(items) or topic
        body: Json = {"model": MODEL, "input": items}
        body |= {"tools": damage.done_to(TOOLS)} if number % 5 == 0 else {}
        body |= (
            {"text": damage.done_to({"format": {"type": "json_schema"}})} if number % 7 == 0 else {}
        )
        body |= {"stream": damage.chance.choice((True, False, None, 1))} if number % 4 == 0 else {}
        body |= (
            {"previous_response_id": damage.chance.choice(names)}
            if names and number % 3 == 0
            else {}
        )
        body |= {damage.chance.choice(("conversation", "instructions", "max_output_tokens",
                                       "tool_choice", "reasoning")): damage.odd()}  # fmt: skip
        budget = damage.chance.choice(BUDGETS)
        answer = client.http.post(
            "/responses",
            content=json.dumps(body).encode(),
            headers={"x-library-budget-tokens": str(budget)},
        )
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (gateway.stderr[-3_000:], body)
        if answer.status_code == 200:
            assert int(answer.headers["x-library-prompt-tokens"]) <= budget
            names.append(f"resp_{upstream.last.number}")
            sent = upstream.last.json
            assert upstream.last.path == RESPONSES_PATH
            assert not sent.get("previous_response_id")
            assert not sent.get("conversation"), "only null may go out, which names none"
        else:
            error = answer.json()["error"]
            assert {"message", "type", "param", "code"} <= error.keys()
    assert statuses[200] > REQUESTS // 8, statuses
    gateway.wait_indexed()
    assert gateway.status()["quarantined"] == []
    assert gateway.cli("verify").stdout.startswith("OK")
