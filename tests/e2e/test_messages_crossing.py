"""The real `anthropic` package on an upstream that has chat completions only."""

from typing import Any

import anthropic
import pytest

from tests.e2e.answers import DONE, ROLE, call, calls, chunk, openai_error, stream, usage_event
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL

LOOK: Any = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


@pytest.fixture
def sdk(start_gateway: Any, upstream: StubUpstream, tmp_path: Any) -> Any:
    config = tmp_path / "gateway.toml"
    config.write_text(
        f'[upstreams.local]\nurl = "{upstream.url}"\nspeaks = ["chat"]\n', encoding="utf-8"
    )
    gateway: GatewayProcess = start_gateway(config=config, url="local", upstream_retries=0)
    with anthropic.Anthropic(base_url=gateway.origin, api_key="x", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_talk_with_tools_an_error_and_a_refusal(
    sdk: anthropic.Anthropic, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """CASES A1, D4, D9: asked for as chats, answered as messages."""
    made = [call(f"a{topic}", "look", '{"q": "x"}'), call(f"b{topic}", "look", '{"q": "y"}')]
    if is_stream:
        parts = [chunk({"tool_calls": [{"index": at, **one}]}) for at, one in enumerate(made)]
        upstream.script(stream([ROLE, *parts, chunk({}, finish="tool_calls"), usage_event(), DONE]))
    else:
        upstream.script(calls(*made))
    talk: list[Any] = [{"role": "user", "content": topic}]
    asked: Any = {"model": MODEL, "max_tokens": 50, "tools": [LOOK], "system": "Be brief."}
    if is_stream:
        with sdk.messages.stream(messages=talk, **asked) as events:
            first: Any = events.get_final_message()
    else:
        first = sdk.messages.create(messages=talk, **asked)
    assert [(block.id, block.input) for block in first.content] == [
        (f"a{topic}", {"q": "x"}), (f"b{topic}", {"q": "y"})]  # fmt: skip
    assert (first.stop_reason, first.usage.output_tokens) == ("tool_use", 7)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "seen"}
               for block in first.content]  # fmt: skip
    talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    done = sdk.messages.create(messages=talk, **asked)
    assert done.content[0].text == f"reply to {topic[-60:]}"
    sent = upstream.last.json["messages"]
    assert upstream.last.header("authorization") == "Bearer x"
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "tool"]
    upstream.script(openai_error(429, "slow down", code="rate_limit_exceeded"))
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        sdk.messages.create(messages=talk, **asked)
    count = len(upstream.chats)
    searching: Any = [{"type": "web_search_20250305", "name": "web_search"}]
    with pytest.raises(anthropic.BadRequestError, match="web_search"):
        sdk.messages.create(messages=talk, **{**asked, "tools": searching})
    assert len(upstream.chats) == count
