"""The real `openai` package against a real gateway: what a user's program does all day."""

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.e2e.answers import DONE, ROLE, call, calls, chunk, stream
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, small_talk, texts, tool


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.url, api_key="sk-test", max_retries=0) as made:
        yield made


def says(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_a_plain_chat(sdk: openai.OpenAI, topic: str) -> None:
    done = sdk.chat.completions.create(model=MODEL, messages=says(topic))
    assert done.choices[0].message.content == f"reply to {topic[-60:]}"
    assert done.usage is not None
    assert done.usage.prompt_tokens == 11


async def test_the_async_client(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    async with openai.AsyncOpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        dones = await asyncio.gather(
            *(
                sdk.chat.completions.create(model=MODEL, messages=says(f"{topic} {n}"))
                for n in range(8)
            )
        )
    assert [d.choices[0].message.content for d in dones] == [
        f"reply to {f'{topic} {n}'[-60:]}" for n in range(8)
    ]


def test_a_stream(sdk: openai.OpenAI, topic: str) -> None:
    with sdk.chat.completions.create(model=MODEL, messages=says(topic), stream=True) as chunks:
        text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == f"reply to {topic[-60:]}"


async def test_an_async_stream_with_usage(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    async with openai.AsyncOpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        chunks = await sdk.chat.completions.create(
            model=MODEL,
            messages=says(topic),
            stream=True,
            stream_options={"include_usage": True},
        )
        usages = [c.usage async for c in chunks]
    assert usages[-1] is not None
    assert usages[-1].total_tokens == 18
    assert usages[:-1] == [None] * (len(usages) - 1)


@pytest.mark.parametrize("is_stream", [False, True])
def test_parallel_tool_calls_and_their_results(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    tools: list[Any] = [tool("read"), tool("list")]
    talk = says(topic)
    if is_stream:
        first = [
            {
                "index": 0,
                "id": "a",
                "type": "function",
                "function": {"name": "read", "arguments": ""},
            },
            {
                "index": 1,
                "id": "b",
                "type": "function",
                "function": {"name": "list", "arguments": ""},
            },
        ]
        upstream.script(
            stream(
                [
                    ROLE,
                    chunk({"tool_calls": first}),
                    chunk({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}),
                    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q": 1}'}}]}),
                    chunk({}, finish="tool_calls"),
                    DONE,
                ]
            )
        )
        with sdk.chat.completions.stream(model=MODEL, messages=talk, tools=tools) as streaming:
            message: Any = streaming.get_final_completion().choices[0].message
    else:
        upstream.script(calls(call("a", "read", '{"q": 1}'), call("b", "list", "{}")))
        done = sdk.chat.completions.create(model=MODEL, messages=talk, tools=tools)
        message = done.choices[0].message
    assert [c.function.arguments for c in message.tool_calls] == ['{"q": 1}', "{}"]
    talk.append(message)
    talk += [
        {"role": "tool", "tool_call_id": c.id, "content": f"did {c.function.name}"}
        for c in message.tool_calls
    ]
    done = sdk.chat.completions.create(model=MODEL, messages=talk, tools=tools)
    assert done.choices[0].message.content
    assert [m["role"] for m in upstream.last.messages] == ["user", "assistant", "tool", "tool"]


def test_headers_tell_about_the_turn(sdk: openai.OpenAI, topic: str) -> None:
    raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=says(topic))
    assert raw.parse().choices[0].message.content
    for name in ("prompt-tokens", "budget-tokens", "swapped-in", "swapped-out", "retained"):
        assert int(raw.headers[f"x-library-{name}"]) >= 0
    assert raw.headers["x-library-session"]
    assert raw.headers["x-library-turn"]


def test_headers_of_a_stream_come_before_its_end(sdk: openai.OpenAI, topic: str) -> None:
    raw = sdk.chat.completions.with_raw_response.create(
        model=MODEL, messages=says(topic), stream=True
    )
    assert raw.headers["x-library-turn"]
    assert [c.choices[0].finish_reason for c in raw.parse()][-1] == "stop"


def test_errors_become_the_clients_own_exceptions(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.chat.completions.create(model=MODEL, messages=says(topic + " word" * 20_000))
    assert caught.value.code == "context_length_exceeded"
    assert upstream.chats == []


def test_a_stream_that_breaks_raises_in_the_client(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    upstream.script(
        stream([ROLE, chunk({"content": "ab"}), b'data: {"error": {"message": "x"}}\n\n'])
    )
    with pytest.raises(openai.APIError):
        for _ in sdk.chat.completions.create(model=MODEL, messages=says(topic), stream=True):
            pass


def test_models_can_be_listed(sdk: openai.OpenAI) -> None:
    assert "stub-1" in [model.id for model in sdk.models.list()]


def test_a_user_chats_far_past_the_budget_and_gets_an_early_fact_back(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """Issue 2: what the product is for; every request is checked against the budget."""
    talk = says(f"{topic} my locker has the number 5582, remember it")
    for turn in range(40):
        done = sdk.chat.completions.create(model=MODEL, messages=talk)
        talk.append({"role": "assistant", "content": done.choices[0].message.content})
        [question, answer] = small_talk(f"{topic}{turn}", turns=1, words=100)
        talk.append(question | {"content": question["content"] + answer["content"]})
    gateway.wait_indexed()
    talk += [{"role": "assistant", "content": "ok"}, *says("What number has my locker?")]
    sdk.chat.completions.create(model=MODEL, messages=talk)
    assert "5582" in texts(upstream.last.messages)
    assert len(upstream.last.messages) < len(talk)


def test_a_newcomer_sees_memory_work_without_any_model(
    start_gateway: StartGateway, topic: str
) -> None:
    """Issue 2: tell it something, chat past the budget, ask, and get the line back."""
    gateway = start_gateway(url="offline", budget_tokens=1_000)
    fact = "My grandmother's recipe needs 350 grams of buckwheat flour."
    talk = says(fact)
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        for turn in range(20):
            done = sdk.chat.completions.create(model=MODEL, messages=talk)
            talk.append({"role": "assistant", "content": done.choices[0].message.content})
            talk += small_talk(f"{topic}{turn}", turns=1, words=45)[:1]
        gateway.wait_indexed()
        talk[-1] = says("How much buckwheat flour does the recipe need?")[0]
        with sdk.chat.completions.create(model=MODEL, messages=talk, stream=True) as chunks:
            answer = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert fact in answer
    assert "offline" in answer
