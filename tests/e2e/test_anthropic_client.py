"""The real `anthropic` package against a real gateway: what a user's program does all day."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.e2e.answers import Cut, call, calls, error
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import MESSAGES, named_event
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, small_talk, texts

TOKENS = 512


def tool(name: str) -> Any:
    schema = {"type": "object", "properties": {"q": {"type": "integer"}}}
    return {"name": name, "description": "Does what its name says.", "input_schema": schema}


def base_url(gateway: GatewayProcess) -> str:
    """As ANTHROPIC_BASE_URL has it: the client adds /v1 itself."""
    return gateway.origin


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=base_url(gateway), api_key="sk-test", max_retries=0) as made:
        yield made


def says(text: Any) -> list[Any]:
    return [{"role": "user", "content": text}]


def words_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_a_plain_chat(sdk: anthropic.Anthropic, upstream: StubUpstream, topic: str) -> None:
    done = sdk.messages.create(
        model=MODEL, max_tokens=TOKENS, system="Be brief.", messages=says(topic)
    )
    assert words_of(done) == f"reply to {topic[-60:]}"
    assert (done.usage.input_tokens, done.stop_reason) == (11, "end_turn")
    assert upstream.last.json["system"] == "Be brief."
    assert upstream.last.header("authorization") == "Bearer sk-test"
    assert upstream.last.header("anthropic-version") == "2026-10-21", "the client's own"


async def test_the_async_client(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    async with anthropic.AsyncAnthropic(
        base_url=base_url(gateway), api_key="x", max_retries=0
    ) as sdk:
        dones = await asyncio.gather(
            *(
                sdk.messages.create(
                    model=MODEL, max_tokens=TOKENS, messages=says(f"{topic} {number}")
                )
                for number in range(8)
            )
        )
    wanted = [f"reply to {f'{topic} {number}'[-60:]}" for number in range(8)]
    assert list(map(words_of, dones)) == wanted


def test_a_stream(sdk: anthropic.Anthropic, topic: str) -> None:
    with sdk.messages.stream(model=MODEL, max_tokens=TOKENS, messages=says(topic)) as streaming:
        text = "".join(streaming.text_stream)
        final = streaming.get_final_message()
    assert text == words_of(final) == f"reply to {topic[-60:]}"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (11, 7)


async def test_an_async_stream_of_bare_events(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    async with anthropic.AsyncAnthropic(
        base_url=base_url(gateway), auth_token="a-bearer", max_retries=0
    ) as sdk:
        events = await sdk.messages.create(
            model=MODEL, max_tokens=TOKENS, messages=says(topic), stream=True
        )
        kinds = [event.type async for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert upstream.last.header("authorization") == "Bearer a-bearer"


def streamed_calls() -> bytes:
    def delta(index: int, part: str) -> bytes:
        piece = {"type": "input_json_delta", "partial_json": part}
        return named_event("content_block_delta", index=index, delta=piece)

    def begun(index: int, call_id: str, name: str) -> bytes:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        return named_event("content_block_start", index=index, content_block=block)

    head = MESSAGES.begin.partition(b"event: content_block_start")[0]
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    return b"".join(
        (
            head,
            named_event("ping"),
            begun(0, "a", "read"),
            delta(0, '{"q"'),
            delta(0, ": 1}"),
            named_event("content_block_stop", index=0),
            begun(1, "b", "list"),
            named_event("content_block_stop", index=1),
            named_event("message_delta", delta=ended, usage={"output_tokens": 9}),
            named_event("message_stop"),
        )
    )


@pytest.mark.parametrize("is_stream", [False, True])
def test_parallel_tool_calls_and_their_results(
    sdk: anthropic.Anthropic,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    is_stream: bool,
) -> None:
    tools, talk = [tool("read"), tool("list")], says(topic)
    options: Any = {"model": MODEL, "max_tokens": TOKENS, "tools": tools}
    if is_stream:
        upstream.script(MESSAGES.streamed(streamed_calls()))
        with sdk.messages.stream(messages=talk, **options) as streaming:
            message: Any = streaming.get_final_message()
    else:
        upstream.script(calls(call("a", "read", '{"q": 1}'), call("b", "list", "{}")))
        message = sdk.messages.create(messages=talk, **options)
    assert [(block.id, block.input) for block in message.content] == [("a", {"q": 1}), ("b", {})]
    assert message.stop_reason == "tool_use"
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"did {block.name}"}
        for block in message.content
    ]
    talk += [{"role": "assistant", "content": message.content}, *says(results)]
    raw = sdk.messages.with_raw_response.create(messages=talk, **options)
    assert words_of(raw.parse())
    assert [m["role"] for m in upstream.last.messages] == ["user", "assistant", "tool", "tool"]
    report = gateway.report(raw.headers["x-library-turn"])
    assert report["events_new"] == 2, "the calls are known: what was recorded is what came back"


def test_headers_tell_about_the_turn(sdk: anthropic.Anthropic, topic: str) -> None:
    raw = sdk.messages.with_raw_response.create(
        model=MODEL, max_tokens=TOKENS, messages=says(topic)
    )
    assert words_of(raw.parse())
    for name in ("prompt-tokens", "budget-tokens", "swapped-in", "swapped-out", "retained"):
        assert int(raw.headers[f"x-library-{name}"]) >= 0
    assert raw.headers["x-library-session"]


def test_errors_become_the_clients_own_exceptions(
    sdk: anthropic.Anthropic, upstream: StubUpstream, topic: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        sdk.messages.create(model=MODEL, max_tokens=TOKENS, messages=says(topic + " word" * 20_000))
    assert caught.value.type == "invalid_request_error"
    assert caught.value.error_code == "context_length_exceeded"
    message = str(caught.value.api_message)
    assert message.startswith("prompt is too long: 20")
    assert "> 4000 maximum" in message
    assert upstream.chats == []


@pytest.mark.parametrize(
    ("status", "kind", "exception"),
    [
        (401, "authentication_error", anthropic.AuthenticationError),
        (404, "not_found_error", anthropic.NotFoundError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (529, "overloaded_error", anthropic.InternalServerError),
    ],
)
def test_an_upstreams_errors_stay_its_own(
    fast_failing: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    status: int,
    kind: str,
    exception: type[anthropic.APIStatusError],
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "req_1"}
    upstream.respond = lambda seen: error(status, body)
    with (
        anthropic.Anthropic(base_url=base_url(fast_failing), api_key="x", max_retries=0) as sdk,
        pytest.raises(exception) as caught,
    ):
        sdk.messages.create(model=MODEL, max_tokens=TOKENS, messages=says(topic))
    assert caught.value.body == body


@pytest.mark.parametrize("kind", ["told", "cut"])
def test_a_stream_that_breaks_raises_in_the_client(
    sdk: anthropic.Anthropic, upstream: StubUpstream, topic: str, kind: str
) -> None:
    end = MESSAGES.broken("Overloaded") if kind == "told" else Cut()
    upstream.script(MESSAGES.streamed(MESSAGES.begin, MESSAGES.piece("ab"), end))
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        sdk.messages.stream(model=MODEL, max_tokens=TOKENS, messages=says(topic)) as streaming,
    ):
        for _ in streaming:
            pass
    assert ("Overloaded" in str(caught.value)) == (kind == "told")


def test_a_client_that_leaves_its_stream_closes_the_upstream(
    sdk: anthropic.Anthropic, upstream: StubUpstream, topic: str
) -> None:
    pieces = [MESSAGES.piece(f"{number} ") for number in range(5_000)]
    upstream.script(MESSAGES.streamed(MESSAGES.begin, *pieces, *MESSAGES.end))
    with sdk.messages.stream(model=MODEL, max_tokens=TOKENS, messages=says(topic)) as streaming:
        next(iter(streaming.text_stream))
    assert upstream.last.closed.wait(2.0) or upstream.last.answered.is_set()


def test_a_count_is_that_of_the_governed_prompt(
    sdk: anthropic.Anthropic, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES B7 (billion-context PR#72): of what the next request would send, recorded or not."""
    talk = says(f"{topic} the heron key is 4410")
    for turn in range(20):
        talk += small_talk(f"{topic}{turn}", turns=1, words=100)[::-1]
    options: Any = {"model": MODEL, "system": "Be kind.", "tools": [tool("read")]}
    sdk.messages.create(max_tokens=TOKENS, messages=talk[:-2], **options)
    gateway.wait_indexed()
    asked = [*talk, {"role": "assistant", "content": "ok"}, *says("what is the heron key?")]
    before = len(gateway.events())
    counted = sdk.messages.count_tokens(messages=asked, **options)
    again = sdk.messages.count_tokens(messages=asked, **options)
    assert len(gateway.events()) == before
    assert len(upstream.chats) == 1
    raw = sdk.messages.with_raw_response.create(max_tokens=TOKENS, messages=asked, **options)
    assert counted.input_tokens == again.input_tokens == int(raw.headers["x-library-prompt-tokens"])
    assert 1_000 < counted.input_tokens <= 4_000
    assert "4410" in texts(upstream.last.messages)


def test_a_short_request_counts_as_it_is(sdk: anthropic.Anthropic, topic: str) -> None:
    one = sdk.messages.count_tokens(model=MODEL, messages=says(topic))
    more = sdk.messages.count_tokens(model=MODEL, messages=says(f"{topic} {topic}"))
    assert 0 < one.input_tokens < more.input_tokens


def test_a_user_chats_far_past_the_budget_and_gets_an_early_fact_back(
    sdk: anthropic.Anthropic, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """Issue 5: every client gets the same fixed budget and the same memory."""
    talk = says(f"{topic} my locker has the number 5582, remember it")
    for turn in range(40):
        done = sdk.messages.create(model=MODEL, max_tokens=TOKENS, messages=talk)
        talk.append({"role": "assistant", "content": done.content})
        [question, answer] = small_talk(f"{topic}{turn}", turns=1, words=100)
        talk.append(question | {"content": question["content"] + answer["content"]})
    gateway.wait_indexed()
    talk += [{"role": "assistant", "content": "ok"}, *says("What number has my locker?")]
    sdk.messages.create(model=MODEL, max_tokens=TOKENS, messages=talk)
    assert "5582" in texts(upstream.last.messages)
    assert len(upstream.last.messages) < len(talk)


def test_a_newcomer_sees_memory_work_without_any_model(
    start_gateway: StartGateway, topic: str
) -> None:
    """Issue 5: the offline upstream speaks this protocol too, streams and counts included."""
    gateway = start_gateway(url="offline", budget_tokens=1_000)
    fact = "My grandmother's recipe needs 350 grams of buckwheat flour."
    talk, options = says(fact), {"model": MODEL, "max_tokens": TOKENS}
    with anthropic.Anthropic(base_url=base_url(gateway), api_key="x", max_retries=0) as made:
        sdk: Any = made
        for turn in range(20):
            done = sdk.messages.create(messages=talk, **options)
            talk.append({"role": "assistant", "content": done.content})
            talk += small_talk(f"{topic}{turn}", turns=1, words=45)[:1]
        gateway.wait_indexed()
        talk[-1] = says("How much buckwheat flour does the recipe need?")[0]
        with sdk.messages.stream(messages=talk, **options) as streaming:
            answer = words_of(streaming.get_final_message())
        called = sdk.messages.create(
            messages=says('call read {"q": 7}'), tools=[tool("read")], **options
        )
    assert fact in answer
    assert "offline" in answer
    assert [(block.name, block.input) for block in called.content] == [("read", {"q": 7})]
