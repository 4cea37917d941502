"""Random damage to a good request: the client is told, the gateway and its library stay whole.
`ODD_REQUESTS=5000` makes the long run of it."""

import json
import os
import random
from collections import Counter
from typing import Any

import pytest

from tests.e2e.answers import Json, call
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, asks, assistant, result, small_talk, system, tool, user

REQUESTS = int(os.environ.get("ODD_REQUESTS", "250"))
ODD: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 10**30, "", " ", "x", "é", "\x00", [], {}, [None], [1]),
    *(
        {"type": "text"},
        {"type": "text", "text": None},
        {"text": 5},
        [{"type": "text", "text": "a"}],
    ),
    *({"type": "image_url"}, {"type": "image_url", "image_url": {"url": None}}),
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    *({"$part": "zz"}, {"$part": "00" * 16}, {"$part": {"x": 1}}),
)
KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "x")


class Damage:
    """Changes JSON values at random, deterministically for a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def odd(self) -> Any:
        return self.chance.choice(ODD)

    def talk(self, topic: str) -> list[Json]:
        turns = small_talk(topic, turns=self.chance.randint(0, 6))
        good = [system("s"), user(topic), asks(call("a", "f", "{}"), call("b", "g", "no JSON"))]
        return [*good, result("a", "1"), result("b", "2"), assistant("ok"), *turns, user("q")]

    def done_to(self, value: Any) -> Any:
        kind = self.chance.random()
        if kind < 0.2:
            return self.odd()
        if isinstance(value, dict) and value:
            return self._done_to_object(dict(value), kind)
        if isinstance(value, list) and value:
            return self._done_to_list([*value], kind)
        return self.odd()

    def _done_to_object(self, value: dict[str, Any], kind: float) -> Any:
        key = self.chance.choice([*value, *KEYS])
        if kind < 0.4:
            value.pop(key, None)
        else:
            value[key] = self.done_to(value.get(key))
        return value

    def _done_to_list(self, value: list[Any], kind: float) -> Any:
        place = self.chance.randrange(len(value))
        if kind < 0.3:
            del value[place]
        elif kind < 0.4:
            value.insert(place, self.odd())
        elif kind < 0.5:
            self.chance.shuffle(value)
        else:
            value[place] = self.done_to(value[place])
        return value


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_request_never_ends_in_a_server_error_and_harms_nothing(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, seed: int
) -> None:
    """Issue 5, schema fuzz: no 500, no hang, no budget broken, each refusal in the right shape;
    invariants 3 and 6: with and without sessions."""
    upstream.budget_tokens = None
    damage = Damage(seed)
    statuses: Counter[int] = Counter()
    for number in range(REQUESTS):
        # Half of them keep to messages, so that many get as far as the library.
        messages: Any = damage.talk(topic)
        for _ in range(damage.chance.randint(1, 3)):
            place = damage.chance.randrange(len(messages)) if isinstance(messages, list) else -1
            if number % 2 and place >= 0 and messages:
                messages[place] = damage.done_to(messages[place])
            else:
                messages = damage.done_to(messages) or [user(topic)]
        body = {"model": MODEL, "messages": messages}
        body |= {"tools": damage.done_to([tool("f")])} if number % 5 == 0 else {}
        body |= {"metadata": {"session_id": damage.odd()}} if number % 7 == 0 else {}
        body |= {"max_tokens": damage.odd()} if number % 11 == 0 else {}
        budget = damage.chance.choice((60, 300, 900, 4_000))
        headers = {"x-library-budget-tokens": str(budget)}
        if number % 3 == 0:
            headers["x-library-session"] = f"{topic}{number % 2}"
        answer = client.http.post(
            "/chat/completions", content=json.dumps(body).encode(), headers=headers
        )
        assert answer.status_code < 500, (gateway.stderr[-3_000:], body)
        statuses[answer.status_code] += 1
        if answer.status_code == 200:
            assert int(answer.headers["x-library-prompt-tokens"]) <= budget
        else:
            assert client.protocol.is_refusal(answer.json()), answer.content
    assert statuses[200] > REQUESTS // 5
    gateway.wait_indexed()
    assert gateway.status()["quarantined"] == []
    assert gateway.cli("verify").stdout.startswith("OK")
