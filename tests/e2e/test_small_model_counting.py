"""Against a real model: what we count is what it counts, and never less than its template takes."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gateway.upstream.direct import DirectUpstream, open_pool
from gateway.upstream.protocol import Patience
from gateway.wire.chat.request import decode
from gateway.wire.protocol import ClientRequest
from governor.counting import Counters, MessageCounter
from tests.e2e.small_model import MODEL, REASON, is_installed, small_model
from tests.unit.governor.counting.texts import TEXTS

pytestmark = pytest.mark.skipif(not is_installed(), reason=REASON)

PATIENCE = Patience(connect_s=5.0, first_byte_s=60.0, idle_s=60.0, retries=0)
ANSWER_TIMEOUT_S = 60.0

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Look up the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name"},
                "unit": {"type": "string", "enum": ["C", "F"]},
            },
            "required": ["city"],
        },
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris","unit":"C"}'},
}
PROSE = TEXTS["prose"][:700]
CHATS: dict[str, dict[str, Any]] = {
    "one word": {"messages": [{"role": "user", "content": "hi"}]},
    "with a system text": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is 2 + 2?"},
        ]
    },
    "many short turns": {
        "messages": [
            {"role": "assistant" if number % 2 else "user", "content": f"{number}?"}
            for number in range(41)
        ]
    },
    "prose": {"messages": [{"role": "user", "content": PROSE}]},
    "Chinese": {"messages": [{"role": "user", "content": TEXTS["chinese"][:100]}]},
    "base64": {"messages": [{"role": "user", "content": TEXTS["base64"][:400]}]},
    "parts": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": word} for word in ("a", "b", "c")],
            }
        ]
    },
    "tools": {"messages": [{"role": "user", "content": "hi"}], "tools": [WEATHER]},
    "a tool loop": {
        "messages": [
            {"role": "user", "content": "What is the weather in Paris?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"degrees": 17}'},
        ],
        "tools": [WEATHER] * 3,
    },
    "a schema for the answer": {
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_object", "schema": {"type": "object"}},
    },
}


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with small_model() as url:
        yield url


@pytest.fixture(scope="module")
def prompt_tokens(origin: str) -> dict[str, int]:
    """What the server says each chat took."""
    with httpx.Client(base_url=origin, timeout=ANSWER_TIMEOUT_S, trust_env=False) as client:
        taken = {}
        for name, chat in CHATS.items():
            reply = client.post(
                "/v1/chat/completions", json={"model": MODEL, "max_tokens": 1, **chat}
            )
            assert reply.status_code == 200, (name, reply.text)
            taken[name] = reply.json()["usage"]["prompt_tokens"]
    return taken


def priced(counter: MessageCounter, request: ClientRequest) -> int:
    messages = sum(map(counter.message, request.messages))
    return counter.prompt_overhead_tokens + counter.schemas(request.schemas) + messages


def request_of(name: str) -> ClientRequest:
    return decode(httpx.Request("POST", "http://x", json={"model": MODEL, **CHATS[name]}).content)


@pytest.mark.parametrize("name", CHATS)
def test_a_real_prompt_never_takes_more_than_the_bound(
    name: str, prompt_tokens: dict[str, int]
) -> None:
    counter = Counters().counter_for(MODEL)
    assert not counter.is_exact
    assert priced(counter, request_of(name)) >= prompt_tokens[name]


async def test_the_servers_own_tokenizer_counts_texts_exactly_and_chats_never_too_low(
    origin: str, prompt_tokens: dict[str, int]
) -> None:
    async with open_pool(PATIENCE) as pool:
        upstream = DirectUpstream("llama", url=f"{origin}/v1", pool=pool, patience=PATIENCE)
        counter = Counters().counter_for(
            MODEL, tokenizer="upstream", upstream="llama", upstream_count=upstream.count_tokens
        )
        for name in CHATS:
            request = request_of(name)
            texts = [text for message in request.messages for text in message.counted]
            await counter.prime(texts, request.schemas)
            assert not counter.degraded
            assert [counter.count(text) for text in texts] == [
                await upstream.count_tokens(text) for text in texts
            ]
            assert priced(counter, request) >= prompt_tokens[name]
        plain = request_of("prose")
        slack = priced(counter, plain) - prompt_tokens["prose"]
        assert slack <= counter.prompt_overhead_tokens + counter.message(plain.messages[0]) // 10
