"""Requests made from the schema of Anthropic's Messages API, whole and damaged: each is answered or
refused in the protocol's own shape, within the budget. `ODD_REQUESTS=5000` makes the long run.
"""

import json
import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.e2e.answers import Json
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import MESSAGES
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client
from tests.e2e.test_odd_requests import Damage

REQUESTS = int(os.environ.get("ODD_REQUESTS", "200"))
BUDGETS = (60, 300, 1_000, 4_000)
ERROR_TYPES = {"invalid_request_error", "not_found_error", "request_too_large"}
IDS = ("toolu_1", "toolu_2", "toolu_3", "")

words = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["hello", " x ", "<system-reminder>now</system-reminder>", "word " * 60, "漢字 🧭"]
)
marked = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"})})


def block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Return blocks of a kind, with and without a marker."""
    made = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.tuples(made, marked).map(lambda both: {**both[0], **both[1]})


texts = block("text", text=words)
images = block(
    "image",
    source=st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            {"type": "url", "url": "https://example.invalid/a.png"},
            {"type": "file", "file_id": "file_1"},
        ]
    ),
)
documents = block(
    "document",
    source=st.sampled_from(
        [
            {"type": "text", "media_type": "text/plain", "data": "some pages"},
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="},
            {"type": "content", "content": [{"type": "text", "text": "x"}]},
            {"type": "url", "url": "https://example.invalid/a.pdf"},
        ]
    ),
)
found = block("search_result", source=words, title=words, content=st.lists(texts, max_size=2))
calls = block(
    "tool_use",
    id=st.sampled_from(IDS),
    name=st.sampled_from(["look", "run"]),
    input=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=9), max_size=2),
)
results = block(
    "tool_result",
    tool_use_id=st.sampled_from(IDS),
    content=words | st.lists(texts | images | found, max_size=3),
    is_error=st.booleans(),
)
thoughts = block("thinking", thinking=words, signature=words) | block(
    "redacted_thinking", data=words
)
servers = st.sampled_from(
    [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "x_new_kind", "deep": {"a": [None]}},
    ]
)
user_content = words | st.lists(texts | images | documents | found | results, max_size=4)
assistant_content = words | st.lists(texts | calls | thoughts | servers, max_size=4)
messages = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": user_content}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": assistant_content}),
    st.fixed_dictionaries({"role": st.just("system"), "content": words | st.lists(texts)}),
)
tools = st.sampled_from(
    [
        {"name": "look", "input_schema": {"type": "object", "properties": {}}},
        {"type": "custom", "name": "run", "input_schema": {"type": "object"}},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ]
)
requests = st.fixed_dictionaries(
    {"model": st.just(MODEL), "messages": st.lists(messages, min_size=1, max_size=9)},
    optional={
        "max_tokens": st.integers(-1, 10_000),
        "system": words | st.lists(texts, max_size=2),
        "tools": st.lists(tools, max_size=3),
        "tool_choice": st.sampled_from([{"type": "any"}, {"type": "tool", "name": "look"}]),
        "stream": st.booleans(),
        "metadata": st.fixed_dictionaries({"user_id": st.text(max_size=9)}),
        "output_config": st.just({"format": {"type": "json_schema", "schema": {}}}),
        "thinking": st.just({"type": "enabled", "budget_tokens": 1_024}),
        "cache_control": st.just({"type": "ephemeral"}),
    },
)


def test_any_request_is_answered_within_its_budget_or_refused_in_the_protocols_shape(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """Issue 5, schema fuzz: no 500, no hang, no budget broken, each refusal in the right shape."""
    upstream.budget_tokens = None
    upstream.respond = lambda seen: MESSAGES.spoken("a b") if is_stream(seen.json) else SAID
    client = Client(gateway.url, MESSAGES)
    statuses: Counter[int] = Counter()

    @seed(5)
    @settings(
        max_examples=REQUESTS,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(requests, st.sampled_from(BUDGETS), st.integers(0, 3), st.integers(0, 10**6))
    def asked(body: Json, budget: int, kind: int, chance: int) -> None:
        is_whole = kind > 0
        sent = body if is_whole else Damage(chance).done_to(body)
        path = "/messages/count_tokens" if kind == 1 else "/messages"
        content = json.dumps(sent).encode()
        answer = client.http.post(
            path,
            content=content,
            headers={"x-library-budget-tokens": str(budget), "x-library-session": topic[:200]},
        )
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (gateway.stderr[-3_000:], sent)
        if answer.status_code != 200:
            refused = answer.json()
            assert refused["type"] == "error", refused
            assert refused["error"]["type"] in ERROR_TYPES
            assert refused["error"]["details"]["error_code"]
            return
        assert int(answer.headers["x-library-prompt-tokens"]) <= budget
        if kind == 1:
            assert answer.json()["input_tokens"] <= budget
        elif is_whole and upstream.last.body != content:  # Else it is the client's own affair.
            check_order(upstream.last.json)

    asked()
    assert statuses[200] > REQUESTS // 4, statuses
    assert statuses[400] > REQUESTS // 20, statuses
    gateway.wait_indexed()
    assert gateway.status()["quarantined"] == []
    assert gateway.cli("verify").stdout.startswith("OK")


SAID = MESSAGES.said("fine")
MARK = '"cache_control": {'


def is_stream(body: Any) -> bool:
    return isinstance(body, dict) and body.get("stream") is True


def check_order(body: Json) -> None:
    """Check what Anthropic refuses whatever else is in a request: a call without its result in the
    very next message, a result without its call, results behind other blocks, an empty message,
    more than four markers."""
    messages: list[Json] = body["messages"]
    asked: list[str] = []
    for message in messages:
        if message["role"] == "system":
            continue
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        kinds = [one["type"] for one in blocks]
        count = kinds.count("tool_result")
        assert kinds[:count] == ["tool_result"] * count, kinds
        assert sorted(asked) == sorted(one["tool_use_id"] for one in blocks[:count]), messages
        asked = [one["id"] for one in blocks if one["type"] == "tool_use"]
        assert all(asked), messages
        assert len({*asked}) == len(asked), messages
        assert any(one.get("text", "x").strip() for one in blocks), messages
    assert not asked, messages
    outside = json.dumps(body | {"messages": []}).count(MARK)
    assert json.dumps(messages).count(MARK) <= max(4 - outside, 0), body
