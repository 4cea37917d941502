"""The litellm upstream: real litellm, against its own mock and a local OpenAI-compatible server."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.upstream.litellm import LitellmUpstream, missing_keys
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamRequest
from tests.e2e.answers import DONE, ROLE, Cut, Hang, chunk, error, said, stream, usage_event
from tests.e2e.stub_upstream import StubUpstream
from tests.unit.gateway.peers import read

PATIENCE = Patience(connect_s=1.0, first_byte_s=5.0, idle_s=0.5, retries=0)
PATH = "/chat/completions"
MESSAGES = [{"role": "user", "content": "hi"}]

pytestmark = [
    # litellm's and its libraries' own, at import and at exit; none is ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
async def upstream(server: StubUpstream) -> AsyncIterator[LitellmUpstream]:
    server.reset()
    made = LitellmUpstream(
        "lite", model="openai/stub-1", patience=PATIENCE, options={"api_base": server.url}
    )
    yield made
    await made.close()


def mocked(reply: str, model: str = "anthropic/claude-3-5-haiku-20241022") -> LitellmUpstream:
    options = {"mock_response": reply, "api_key": "x"}
    return LitellmUpstream("lite", model=model, patience=PATIENCE, options=options)


def asked(**fields: Any) -> UpstreamRequest:
    body = {"model": "whatever", "messages": MESSAGES} | fields
    headers = {"authorization": "Bearer sk-client"}
    return UpstreamRequest("POST", PATH, headers, json.dumps(body).encode())


def events(body: bytes) -> list[Any]:
    lines = body.decode().strip().split("\n\n")
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_a_whole_answer_has_openais_form() -> None:
    reply = await mocked("hello there").open(asked())
    body = json.loads(await read(reply))
    assert reply.status == 200
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "hello there"}
    assert body["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize("wants_usage", [True, False])
async def test_a_stream_has_openais_form_and_usage_only_when_asked(wants_usage: bool) -> None:
    """CASES D2 (litellm#9657, #23847)."""
    options = {"stream_options": {"include_usage": True}} if wants_usage else {}
    chunks = events(await read(await mocked("hello there").open(asked(stream=True, **options))))
    with_choices = [one for one in chunks if one["choices"]]
    text = "".join(one["choices"][0]["delta"].get("content", "") for one in with_choices)
    assert text == "hello there"
    assert with_choices[-1]["choices"][0]["finish_reason"] == "stop"
    if wants_usage:
        assert all(one["usage"] is None for one in with_choices)
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["prompt_tokens"] > 0
    else:
        assert not any("usage" in one for one in chunks)


async def test_every_field_arrives_and_the_clients_key_is_used(
    server: StubUpstream, upstream: LitellmUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES E5 (litellm#10791, #6516): litellm drops `metadata` and raises on `verbosity`."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fields = {
        "user": "u-1",
        "metadata": {"team": "a"},
        "verbosity": "low",
        "x_vendor": {"nested": [1, None]},
        "temperature": 0.5,
        "seed": 7,
    }
    server.script(said("ok"))
    await read(await upstream.open(asked(**fields)))
    sent = server.last.json
    assert sent.pop("model") == "stub-1"
    assert sent.pop("messages") == MESSAGES
    assert sent == fields
    assert server.last.header("authorization") == "Bearer sk-client"


@pytest.mark.parametrize("status", [401, 404, 429, 500])
async def test_an_error_keeps_its_status_and_is_not_tried_again_behind_our_back(
    server: StubUpstream, upstream: LitellmUpstream, status: int
) -> None:
    server.respond = lambda _: error(status, {"error": {"message": "no", "code": "c"}})
    reply = await upstream.open(asked())
    told = json.loads(await read(reply))["error"]
    assert reply.status == status
    assert "no" in told["message"]
    assert told.keys() == {"message", "type", "param", "code"}
    assert len(server.chats) == 1


async def test_an_overflow_has_openais_code(
    server: StubUpstream, upstream: LitellmUpstream
) -> None:
    """CASES B5 (litellm#28063)."""
    text = "This model's maximum context length is 10 tokens."
    server.script(error(400, {"error": {"message": text, "code": "context_length_exceeded"}}))
    reply = await upstream.open(asked())
    told = json.loads(await read(reply))["error"]
    assert (reply.status, told["code"]) == (400, "context_length_exceeded")
    assert "maximum context length" in told["message"]


async def test_a_stream_is_relayed_with_its_usage(
    server: StubUpstream, upstream: LitellmUpstream
) -> None:
    steps = [ROLE, chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, finish="stop")]
    server.script(stream([*steps, usage_event(), DONE]))
    request = asked(stream=True, stream_options={"include_usage": True})
    chunks = events(await read(await upstream.open(request)))
    text = "".join(
        one["choices"][0]["delta"].get("content", "") for one in chunks if one["choices"]
    )
    assert text == "ab"
    assert chunks[-1]["usage"]["prompt_tokens"] == 11


async def test_closing_a_stream_ends_the_providers_work(
    server: StubUpstream, upstream: LitellmUpstream
) -> None:
    """CASES D6 (litellm#30244): leaving litellm's stream does not."""
    server.script(stream([ROLE, chunk({"content": "a"}), Hang()]))
    reply = await upstream.open(asked(stream=True))
    pieces = reply.chunks()
    await anext(pieces)
    await pieces.aclose()
    await reply.aclose()
    assert await asyncio.to_thread(server.last.closed.wait, 1.0)


@pytest.mark.parametrize(("end", "kind"), [(Hang(), "timeout"), (Cut(), "broken")])
async def test_a_stream_that_stops_in_the_middle_says_how(
    server: StubUpstream, upstream: LitellmUpstream, end: Hang | Cut, kind: str
) -> None:
    """CASES D9."""
    server.script(stream([ROLE, chunk({"content": "a"}), end]))
    reply = await upstream.open(asked(stream=True))
    with pytest.raises(UpstreamFailed) as failed:
        await read(reply)
    await reply.aclose()
    assert failed.value.kind == kind


async def test_a_provider_that_is_not_there_is_refused() -> None:
    options = {"api_base": "http://127.0.0.1:1/v1", "api_key": "x"}
    nowhere = LitellmUpstream("lite", model="openai/m", patience=PATIENCE, options=options)
    try:
        reply = await nowhere.open(asked())
    except UpstreamFailed as failure:
        assert failure.status == 502
    else:
        assert reply.status >= 500
        await reply.aclose()
    await nowhere.close()


async def test_only_chat_completions_and_the_list_of_models_are_served() -> None:
    upstream = mocked("x")
    listed = await upstream.open(UpstreamRequest("GET", "/models", {}, b""))
    assert b"claude-3-5-haiku" in await read(listed)
    with pytest.raises(UpstreamFailed, match="chat completions only") as failed:
        await upstream.open(UpstreamRequest("POST", "/embeddings", {}, b"{}"))
    assert failed.value.status == 404


FIRST_REQUESTS = """
import asyncio, os, sys, threading
from gateway.upstream.litellm import LitellmUpstream
from gateway.upstream.protocol import Patience, UpstreamRequest

seen = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "litellm":
            is_main = threading.current_thread() is threading.main_thread()
            seen.append((is_main, os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP")))

async def main():
    patience = Patience(connect_s=1.0, first_byte_s=60.0, idle_s=9.0, retries=0)
    options = {"mock_response": "hi", "api_key": "x"}
    upstream = LitellmUpstream("lite", model="openai/gpt-4o", patience=patience, options=options)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    request = UpstreamRequest("POST", "/chat/completions", {}, body)
    assert "litellm" not in sys.modules
    replies = await asyncio.gather(*(upstream.open(request) for _ in range(4)))
    print([reply.status for reply in replies], seen)

sys.meta_path.insert(0, Watch())
asyncio.run(main())
"""


async def test_the_first_requests_import_litellm_once_in_a_thread_with_its_switches_set() -> None:
    """Issue 2: importing it takes seconds, and would fetch a table of prices from the network."""
    environ = {name: value for name, value in os.environ.items() if "LITELLM" not in name}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", FIRST_REQUESTS),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
    )
    said_out, _ = await process.communicate()
    assert said_out.decode().splitlines()[0] == "[200, 200, 200, 200] [(False, 'True')]"


def test_the_keys_that_a_provider_lacks_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert missing_keys("anthropic/claude-sonnet-4-5") == ["ANTHROPIC_API_KEY"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert missing_keys("anthropic/claude-sonnet-4-5") == []
