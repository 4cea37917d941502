"""Random damage to a good text completion: the client is told or the upstream is, no budget breaks,
and the library stays whole. `ODD_REQUESTS=5000` makes the long run of it."""

import json
import os
from collections import Counter
from typing import Any

from tests.e2e.answers import json_answer
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.legality import text_tokens
from tests.e2e.protocols import CHAT
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, filler
from tests.e2e.test_odd_requests import Damage
from tests.e2e.test_text_completions import PATH, chapters, completed

REQUESTS = int(os.environ.get("ODD_REQUESTS", "100"))
FIELDS = ("suffix", "echo", "n", "best_of", "logprobs", "max_tokens", "stream_options", "user")


def text_of(damage: Damage, topic: str) -> str:
    """Return a text of any length, with odd characters, that may begin as another one does."""
    chance = damage.chance
    text = chapters(f"{topic}{chance.randrange(3)}", chance.randrange(12), words=50)
    odd = chance.choice(
        ("", "\x00", "\ud83d", "<reading_desk id=", "\r\n\r\n", " " * 3_000, "漢" * 999)
    )
    return f"{text}{odd}{filler(chance.randrange(10**6), words=chance.randrange(1, 90))}"


def test_a_damaged_text_completion_never_ends_in_a_server_error_and_harms_nothing(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """Issue 5, schema fuzz: no 500, no hang, no budget broken, each refusal in the right shape."""
    damage = Damage(4)
    statuses: Counter[int] = Counter()
    for number in range(REQUESTS):
        body: Any = {"model": MODEL, "prompt": text_of(damage, topic)}
        if number % 3 == 0:
            body[damage.chance.choice(FIELDS)] = damage.odd()
        if number % 5 == 0:
            body = damage.done_to(body)
        budget = damage.chance.choice((60, 400, 900, 2_000))
        headers = {"x-library-budget-tokens": str(budget)}
        if number % 4 == 0:
            headers["x-library-session"] = f"{topic}{number % 2}"
        upstream.reset()
        upstream.script(json_answer(completed(" goes on")), path=PATH)
        answer = client.http.post("/completions", content=json.dumps(body), headers=headers)
        assert answer.status_code < 500, (gateway.stderr[-3_000:], body)
        statuses[answer.status_code] += 1
        if answer.status_code == 200:
            assert int(answer.headers["x-library-prompt-tokens"]) <= budget
            if "x-library-turn" in answer.headers:
                sent = upstream.requests[-1].json["prompt"]
                assert text_tokens(sent if isinstance(sent, str) else sent[0]) <= budget
        else:
            assert CHAT.is_refusal(answer.json()), answer.content
    assert statuses[200] > REQUESTS // 5
    gateway.wait_indexed()
    assert gateway.status()["quarantined"] == []
    assert gateway.cli("verify").stdout.startswith("OK")
