"""What a provider's prompt cache is told: the bytes that go out (issue 4; CASES G2, G4)."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import assistant, filler, small_talk, user

MARK = {"type": "ephemeral"}
BUDGET = {"x-library-budget-tokens": "1500"}


def started(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, told: str
) -> GatewayProcess:
    upstream.budget_tokens = None
    config = tmp_path / "library-of-context.toml"
    setting = f'prompt_cache = "{told}"\n' if told else ""
    config.write_text(
        f'[upstreams.mine]\nurl = "{upstream.url}"\n'
        f'speaks = ["chat", "messages", "responses"]\n{setting}',
        encoding="utf-8",
    )
    return start_gateway(url="mine", config=config)


def posted(
    gateway: GatewayProcess, upstream: StubUpstream, path: str, body: dict[str, Any], **more: str
) -> tuple[Seen, str]:
    """Post; return what the upstream got, and the thread."""
    answer = httpx.post(
        f"{gateway.url}{path}",
        json={"model": "gpt-4o", "max_tokens": 64} | body,
        headers=BUDGET | more,
        timeout=60,
    )
    assert answer.status_code == 200, answer.content
    return upstream.last, answer.headers["x-library-session"]


def marked(content: Any) -> bool:
    return isinstance(content, list) and any("cache_control" in block for block in content)


def test_messages_are_marked_behind_what_stays_and_equal_requests_get_equal_bytes(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """Issue 4: breakpoints at the end of the stable part, at most four, the client's own kept."""
    gateway = started(start_gateway, upstream, tmp_path, "marks")
    system = [{"type": "text", "text": "Be brief."}]
    own = {"type": "text", "text": "Noted.", "cache_control": MARK}
    talk = [*small_talk(topic, turns=20), user("so?"), assistant([own]), user(f"{topic} 3?")]
    body = {"system": system, "messages": talk}
    first, _ = posted(gateway, upstream, "/messages", body)
    again, _ = posted(gateway, upstream, "/messages", body)
    assert first.body == again.body
    sent = first.json
    assert len(sent["messages"]) < len(talk)
    assert sent["system"] == [system[0] | {"cache_control": MARK}]
    places = [at for at, one in enumerate(sent["messages"]) if marked(one["content"])]
    count = len(sent["messages"])
    assert places == [count - 3, count - 2, count - 1]
    assert sent["messages"][-2] == talk[-2]
    assert sent["messages"][-1]["content"][-1]["text"].endswith(talk[-1]["content"])
    assert first.body.count(b'"cache_control"') == 4


def test_marked_prompts_go_on_from_each_other(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """CASES G1: marks aside, a prompt begins with the last one to its end, and a mark of the new
    one stands where the last one ended, so that the provider finds it."""
    gateway = started(start_gateway, upstream, tmp_path, "marks")
    talk = [*small_talk(topic, turns=20), user("so?")]
    before: list[dict[str, Any]] = []
    grown = 0
    for turn in range(6):
        seen, _ = posted(gateway, upstream, "/messages", {"messages": talk})
        now = seen.json["messages"]
        shared = [_plain(one) for one in now[: len(before)]] == [_plain(one) for one in before]
        if before and shared:
            grown += 1
            assert marked(now[len(before) - 1]["content"]) and marked(now[-1]["content"])
        before = now
        talk += [assistant("Noted."), user(f"{topic} remark {turn}: {filler(turn, words=10)}")]
    assert grown >= 3


def _plain(message: dict[str, Any]) -> Any:
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content
    return message["role"], "".join(block["text"] for block in content)


def test_chat_completions_are_marked_where_the_setting_says_so(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """For servers that hand chat completions on to a model of Anthropic's."""
    gateway = started(start_gateway, upstream, tmp_path, "marks")
    talk = [{"role": "system", "content": "Be brief."}, *small_talk(topic, turns=20), user("so?")]
    seen, _ = posted(gateway, upstream, "/chat/completions", {"messages": talk})
    sent = seen.json["messages"]
    assert marked(sent[0]["content"]) and marked(sent[-1]["content"])
    assert all(isinstance(one["content"], str) for one in sent if one["role"] == "assistant")
    assert "prompt_cache_key" not in seen.json


@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
def test_a_threads_prompts_get_one_key_and_a_clients_own_stays(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str, path: str
) -> None:
    """Issue 4: `prompt_cache_key`, kept, and set by us."""
    gateway = started(start_gateway, upstream, tmp_path, "key")
    field = "input" if path == "/responses" else "messages"
    keys, bodies = set(), set()
    talk = [*small_talk(f"{topic}{path}", turns=20), user("so?")]
    for _ in range(2):
        seen, thread = posted(gateway, upstream, path, {field: talk})
        keys.add(seen.json["prompt_cache_key"])
        bodies.add(seen.body)
    assert keys == {thread} and len(bodies) == 1
    own = {field: talk, "prompt_cache_key": "mine"}
    assert posted(gateway, upstream, path, own)[0].json["prompt_cache_key"] == "mine"
    whole = posted(gateway, upstream, path, {field: [user(f"{topic} short {path}")]})[0]
    assert "prompt_cache_key" not in whole.json


@pytest.mark.parametrize("told", ["", "off"])
def test_an_unknown_upstream_is_told_nothing(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str, told: str
) -> None:
    """CASES E5 (litellm#10791): nothing is added that nobody asked for."""
    gateway = started(start_gateway, upstream, tmp_path, told)
    talk = [*small_talk(f"{topic}{told}", turns=20), user("so?")]
    for path in ("/chat/completions", "/messages"):
        seen, _ = posted(gateway, upstream, path, {"messages": talk})
        assert len(seen.json["messages"]) < len(talk)
        assert b"cache_control" not in seen.body and b"prompt_cache_key" not in seen.body


def test_a_transcript_that_fits_is_not_marked(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """CASES A2 (litellm#6505): it goes out as it came."""
    gateway = started(start_gateway, upstream, tmp_path, "marks")
    body = {"model": "gpt-4o", "max_tokens": 64, "messages": [user(f"{topic} short")]}
    seen, _ = posted(gateway, upstream, "/messages", body)
    assert seen.json == body
    assert json.loads(seen.body) == body
