import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import orjson
import pytest
import uvicorn
from openai.types.chat import ChatCompletionToolParam

from gateway.upstream.offline import CHOICES_MAX, MODEL, OfflineUpstream, offline_app
from gateway.upstream.offline_answer import FOUND, NOTED
from gateway.upstream.protocol import Upstream, UpstreamRequest
from governor.counting import Counters

COUNTERS = Counters()
FACT = "My cat is called Miso."
QUESTION = "What is my cat called?"
TALK = [{"role": "user", "content": FACT}, {"role": "user", "content": QUESTION}]


async def sent(
    fields: Any, *, path: str = "/chat/completions", method: str = "POST", **options: Any
) -> tuple[int, bytes]:
    upstream: Upstream = OfflineUpstream(counters=COUNTERS, **options)
    body = orjson.dumps(fields)
    reply = await upstream.open(UpstreamRequest(method, path, {}, body))
    return reply.status, b"".join([chunk async for chunk in reply.chunks()])


async def completion(**fields: Any) -> dict[str, Any]:
    status, body = await sent({"model": MODEL, "messages": TALK, **fields})
    assert status == 200, body
    loaded: dict[str, Any] = orjson.loads(body)
    return loaded


async def events(**fields: Any) -> list[dict[str, Any]]:
    status, body = await sent({"model": MODEL, "messages": TALK, "stream": True, **fields})
    assert status == 200
    lines = body.split(b"\n\n")
    assert lines[-2:] == [b"data: [DONE]", b""]
    return [orjson.loads(line.removeprefix(b"data: ")) for line in lines[:-2]]


async def test_equal_requests_get_equal_bytes() -> None:
    request = {"model": MODEL, "messages": TALK, "stream": True}
    assert await sent(request) == await sent(request)


async def test_usage_counts_what_was_sent_and_said() -> None:
    answer = await completion()
    counter = COUNTERS.counter_for("gpt-4o")
    said = answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens"] == counter.count(said)
    # 3 for the reply; 3 a message, 1 for its role. Source: OpenAI cookbook.
    texts = sum(counter.count(message["content"]) for message in TALK)
    assert answer["usage"]["prompt_tokens"] == 3 + 2 * 4 + texts


async def test_a_stream_says_what_a_whole_answer_says_word_by_word() -> None:
    chunks = await events()
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert len(deltas) > 8
    said = "".join(delta.get("content", "") for delta in deltas)
    assert said == (await completion())["choices"][0]["message"]["content"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "stop"]
    assert not any("usage" in chunk for chunk in chunks)


async def test_a_usage_chunk_comes_last_when_it_is_asked_for() -> None:
    chunks = await events(stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == (await completion())["usage"]


async def test_a_maximum_cuts_the_answer_and_says_so() -> None:
    choice = (await completion(max_tokens=5))["choices"][0]
    assert choice["finish_reason"] == "length"
    said = choice["message"]["content"]
    assert 0 < COUNTERS.counter_for(MODEL).count(said) <= 5
    assert FOUND.startswith(said)


async def test_several_choices_are_numbered() -> None:
    answer = await completion(n=3)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    one = (await completion())["usage"]["completion_tokens"]
    assert answer["usage"]["completion_tokens"] == 3 * one
    assert {chunk["choices"][0]["index"] for chunk in await events(n=2)} == {0, 1}
    assert len((await completion(n=1_000))["choices"]) == CHOICES_MAX


async def test_a_prompt_beyond_the_window_is_refused_in_openais_words() -> None:
    """CASES B5 (litellm#28063)."""
    long = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 200}]}
    status, body = await sent(long, window_tokens=100)
    error = orjson.loads(body)["error"]
    assert status == 400
    assert error["code"] == "context_length_exceeded"
    assert error["message"].startswith("This model's maximum context length is 100 tokens.")
    assert (await sent({**long, "max_tokens": 50}, window_tokens=240))[0] == 400
    assert (await sent(long, window_tokens=240))[0] == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [1], "model": "x"}, "messages"),
    ],
)
async def test_a_malformed_request_gets_an_error(fields: Any, param: str) -> None:
    status, body = await sent(fields)
    assert status == 400
    assert orjson.loads(body)["error"]["param"] == param


async def test_it_lists_its_model_and_knows_no_other_path() -> None:
    status, body = await sent(None, path="/models", method="GET")
    assert (status, orjson.loads(body)["data"][0]["id"]) == (200, MODEL)
    assert (await sent(None, path=f"/models/{MODEL}?x=1", method="GET"))[0] == 200
    for method, path in (("POST", "/embeddings"), ("GET", "/chat/completions"), ("GET", "/")):
        status, body = await sent(None, path=path, method=method)
        assert (status, orjson.loads(body)["error"]["code"]) == (404, "not_found")
        assert f"({method} /v1{path.rstrip('/')})" in orjson.loads(body)["error"]["message"]


async def test_it_counts_and_is_always_there() -> None:
    upstream: Upstream = OfflineUpstream(counters=COUNTERS)
    assert await upstream.count_tokens("hello there") == 2
    assert await upstream.probe() is None
    await upstream.close()


@asynccontextmanager
async def client(window_tokens: int | None = None) -> AsyncIterator[openai.AsyncOpenAI]:
    """Serve the offline model over HTTP and yield a real client of it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(offline_app(window_tokens=window_tokens), log_level="error")
        server = uvicorn.Server(config)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=2) as made:
                yield made
            server.should_exit = True


WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
}


async def test_the_real_client_talks_to_it() -> None:
    async with client() as openai_client:
        first = await openai_client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": FACT}]
        )
        assert first.choices[0].message.content == NOTED
        assert [model.id async for model in openai_client.models.list()] == [MODEL]
        stream = await openai_client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": FACT}, {"role": "user", "content": QUESTION}],
            stream=True,
        )
        said = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert FACT in "".join(said)


async def test_the_real_client_puts_streamed_tool_calls_together() -> None:
    """CASES D4: parallel calls keep their index."""
    async with client() as openai_client:
        stream = openai_client.chat.completions.stream(
            model=MODEL,
            messages=[
                {
                    "role": "user",
                    "content": 'call get_weather {"city": "Paris"} and call get_weather '
                    '{"city": "Llanfairpwllgwyngyll"}',
                }
            ],
            tools=[WEATHER],
        )
        async with stream as opened:
            final = await opened.get_final_completion()
        calls = final.choices[0].message.tool_calls or []
        assert [call.function.arguments for call in calls] == [
            '{"city": "Paris"}',
            '{"city": "Llanfairpwllgwyngyll"}',
        ]
        assert len({call.id for call in calls}) == 2
        assert final.choices[0].finish_reason == "tool_calls"


async def test_the_real_client_is_told_when_the_window_is_too_small() -> None:
    async with client(window_tokens=20) as openai_client:
        with pytest.raises(openai.BadRequestError) as caught:
            await openai_client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "word " * 50}]
            )
    assert caught.value.code == "context_length_exceeded"
