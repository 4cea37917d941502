"""The real `openai` package's Responses API against a real gateway, its upstream speaking it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.e2e.answers import Gate, Hang, Pause, Step, openai_error
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.responses_answers import (
    RESPONSES_PATH,
    Events,
    calling,
    reasoned,
    responded,
    responses_stream,
    spoken,
    streamed_items,
)
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, filler, texts

TOOLS: list[Any] = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}},
     "strict": False}
    for name in ("read", "list")
]  # fmt: skip


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.url, api_key="sk-test", max_retries=0) as made:
        yield made


def test_a_plain_answer(sdk: openai.OpenAI, upstream: StubUpstream, topic: str) -> None:
    done = sdk.responses.create(model=MODEL, input=topic, instructions="Be brief.")
    assert done.output_text == f"reply to {topic[-60:]}"
    assert done.usage is not None
    assert done.usage.input_tokens == 11
    assert upstream.last.json == {"model": MODEL, "input": topic, "instructions": "Be brief."}


async def test_the_async_client(gateway: GatewayProcess, topic: str) -> None:
    async with openai.AsyncOpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        asked = [f"{topic} {n}" for n in range(8)]
        dones = await asyncio.gather(
            *(sdk.responses.create(model=MODEL, input=one) for one in asked)
        )
        stream = await sdk.responses.create(model=MODEL, input=topic, stream=True)
        kinds = [event.type async for event in stream]
    assert [done.output_text for done in dones] == [f"reply to {one[-60:]}" for one in asked]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


def test_a_stream(sdk: openai.OpenAI, topic: str) -> None:
    with sdk.responses.stream(model=MODEL, input=topic) as events:
        numbers = [event.sequence_number for event in events]
        done = events.get_final_response()
    assert done.output_text == f"reply to {topic[-60:]}"
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("is_stream", [False, True])
def test_parallel_tool_calls_and_their_results(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """CASES A1, D4, F1: what the model said goes back to it word for word."""
    output = [
        reasoned(),
        calling(f"a{topic}", "read", '{"q": "x"}'),
        calling(f"b{topic}", "list", '{"q": "y"}'),
    ]
    upstream.script((streamed_items if is_stream else responded)(*output), path=RESPONSES_PATH)
    talk: list[Any] = [{"role": "user", "content": topic}]
    if is_stream:
        with sdk.responses.stream(model=MODEL, input=talk, tools=TOOLS, store=False) as events:
            first: Response = events.until_done().get_final_response()
    else:
        first = sdk.responses.create(model=MODEL, input=talk, tools=TOOLS, store=False)
    asked = [item for item in first.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in asked] == [
        ("read", {"q": "x"}),
        ("list", {"q": "y"}),
    ]
    talk += [item.model_dump(exclude_none=True, warnings=False) for item in first.output]
    talk += [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"of {call.name}"}
        for call in asked
    ]
    sdk.responses.create(model=MODEL, input=talk, tools=TOOLS, store=False)
    assert upstream.last.json["input"] == talk


def test_a_chain_of_answers_sends_the_whole_talk_upstream(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES H4: each request names the answer before, one moment after it came."""
    first = sdk.responses.create(
        model=MODEL,
        input=[{"role": "developer", "content": f"D {topic}"}, {"role": "user", "content": topic}],
        instructions="Only now.",
    )
    second = sdk.responses.create(model=MODEL, input="two", previous_response_id=first.id)
    with sdk.responses.stream(model=MODEL, input="three", previous_response_id=second.id) as events:
        third = events.until_done().get_final_response()
    assert third.output_text == "reply to three"
    sent = upstream.last.json
    assert "previous_response_id" not in sent
    assert "instructions" not in sent
    said = [(message["role"], message["content"]) for message in upstream.last.messages]
    assert said == [
        ("developer", f"D {topic}"),
        ("user", topic),
        ("assistant", f"reply to {topic[-60:]}"),
        ("user", "two"),
        ("assistant", "reply to two"),
        ("user", "three"),
    ]


def test_an_answer_can_be_gone_on_from_with_system_text_alone(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """A developer's word behind the answer, and no question: it is the newest of the talk."""
    first = sdk.responses.create(model=MODEL, input=topic)
    word: Any = [{"role": "developer", "content": "Now in French."}]
    done = sdk.responses.create(
        model=MODEL, input=word, instructions="Be brief.", previous_response_id=first.id
    )
    assert done.output_text
    said = [(message["role"], message["content"]) for message in upstream.last.messages]
    reply = f"reply to {topic[-60:]}"
    talk = [("system", "Be brief."), ("user", topic), ("assistant", reply)]
    assert said == [*talk, ("developer", "Now in French.")]


def test_an_answer_can_be_gone_on_from_twice(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES H5."""
    first = sdk.responses.create(model=MODEL, input=topic)
    for words in ("left", "right"):
        sdk.responses.create(model=MODEL, input=words, previous_response_id=first.id)
        said = [message["content"] for message in upstream.last.messages]
        assert said == [topic, f"reply to {topic[-60:]}", words]


def test_tool_results_alone_go_behind_their_calls(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES A4."""
    name = f"resp_{topic}"
    upstream.script(responded(reasoned(), calling(f"c{topic}"), name=name), path=RESPONSES_PATH)
    first = sdk.responses.create(model=MODEL, input=topic, tools=TOOLS)
    result = {"type": "function_call_output", "call_id": f"c{topic}", "output": "seen"}
    sdk.responses.create(model=MODEL, input=[result], previous_response_id=first.id)  # type: ignore[list-item]
    kinds = [item.get("type") for item in upstream.last.json["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    assert upstream.last.json["input"][1]["encrypted_content"] == "gAAAAsealed"


def test_a_conversation_goes_on_where_it_is(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    for _ in range(2):
        sdk.responses.create(model=MODEL, input=f"go on {topic}", conversation=f"conv_{topic}")
    assert "conversation" not in upstream.last.json
    assert [message["role"] for message in upstream.last.messages] == ["user", "assistant", "user"]


def test_an_item_that_is_only_referred_to_is_sent_itself(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """Clients of upstreams that keep items, such as the AI SDK, send ids in place of them."""
    item = {**spoken(f"said {topic}"), "id": f"msg_{topic}"}
    upstream.script(responded(item, name=f"resp_{topic}"), path=RESPONSES_PATH)
    sdk.responses.create(model=MODEL, input=topic)
    talk: list[Any] = [
        {"role": "user", "content": topic},
        {"type": "item_reference", "id": f"msg_{topic}"},
        {"role": "user", "content": "more"},
    ]
    sdk.responses.create(model=MODEL, input=talk)
    assert upstream.last.json["input"] == [talk[0], item, talk[2]]
    with pytest.raises(openai.NotFoundError, match="msg_nobody"):
        sdk.responses.create(
            model=MODEL, input=[talk[0], {"type": "item_reference", "id": "msg_nobody"}]
        )


def test_a_talk_far_past_the_budget_stays_answerable_and_recalls_its_start(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES B8: every step names the one before, and nothing else of the past is sent."""
    before = None
    said = f"The harbour code of {topic} is BRASS-{len(topic)}-OWL."
    for turn in range(30):
        words = said if turn == 0 else f"{topic} {turn}: {filler(f'{topic}{turn}', words=150)}"
        done = sdk.responses.create(model=MODEL, input=words, previous_response_id=before)
        before = done.id
    gateway.wait_indexed()
    sdk.responses.create(
        model=MODEL, input=f"What is the harbour code of {topic}?", previous_response_id=before
    )
    assert f"BRASS-{len(topic)}-OWL" in texts(upstream.last.messages)
    assert upstream.last.json["input"][0].get("role") == "user"


SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": False}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: X"}
FIELDS: dict[str, dict[str, Any]] = {
    "truncation auto": {"truncation": "auto"},
    "truncation disabled": {"truncation": "disabled"},
    "text.format": {"text": {"format": SCHEMA, "verbosity": "low"}},
    "reasoning": {
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    },
    "tools": {
        "tools": [*TOOLS, {"type": "custom", "name": "patch", "format": GRAMMAR},
                  {"type": "web_search"}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
    },
}  # fmt: skip


@pytest.mark.parametrize("turn_count", [0, 30], ids=["fits", "paged"])
@pytest.mark.parametrize("kind", FIELDS)
def test_its_fields_and_what_the_user_attached_arrive_as_they_were_sent(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, kind: str, turn_count: int
) -> None:
    """Issue 5; CASES E5, A13: paging shortens the talk alone, whatever `truncation` says."""
    talk: list[Any] = []
    for turn in range(turn_count):
        talk.append({"role": "user", "content": f"{topic} {turn} {filler(turn, words=90)}"})
        talk.append({"role": "assistant", "content": f"{turn} {filler(-turn, words=90)}"})
    question: Any = {"role": "user", "content": [
        {"type": "input_text", "text": f"{topic}: what is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,QQ=="},
    ]}  # fmt: skip
    sdk.responses.create(model=MODEL, input=[*talk, question], **FIELDS[kind])
    sent = upstream.last.json
    assert {name: sent[name] for name in FIELDS[kind]} == FIELDS[kind]
    assert {*sent} == {"model", "input", *FIELDS[kind]}
    assert sent["input"][-1]["content"][-3:] == question["content"]
    assert (len(sent["input"]) < len(talk) + 1) == (turn_count > 0)


def test_an_upstreams_error_is_the_clients(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES D9, B5."""
    upstream.script(openai_error(429, "slow down", code="rate_limit_exceeded"), path=RESPONSES_PATH)
    upstream.script(openai_error(429, "slow down", code="rate_limit_exceeded"), path=RESPONSES_PATH)
    upstream.script(openai_error(429, "slow down", code="rate_limit_exceeded"), path=RESPONSES_PATH)
    with pytest.raises(openai.RateLimitError, match="slow down"):
        sdk.responses.create(model=MODEL, input=topic)
    upstream.reset_scripts()
    upstream.script(openai_error(500, "prompt is too long", code=None), path=RESPONSES_PATH)
    upstream.script(openai_error(500, "prompt is too long", code=None), path=RESPONSES_PATH)
    upstream.script(openai_error(500, "prompt is too long", code=None), path=RESPONSES_PATH)
    with pytest.raises(openai.BadRequestError, match="maximum context length") as refused:
        sdk.responses.create(model=MODEL, input=topic)
    assert refused.value.code == "context_length_exceeded"
    upstream.reset_scripts()


def test_what_does_not_fit_is_refused_with_numbers(sdk: openai.OpenAI, topic: str) -> None:
    """CASES B10."""
    with pytest.raises(openai.BadRequestError, match="context length of 4000") as refused:
        sdk.responses.create(model=MODEL, input=f"{topic} {filler(topic, words=6_000)}")
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")


@pytest.mark.parametrize("field", [{"background": True}, {"prompt": {"id": "pmpt_1"}}])
def test_what_cannot_be_governed_is_refused_by_its_name(
    sdk: openai.OpenAI, topic: str, field: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.responses.create(model=MODEL, input=topic, **field)
    assert refused.value.param == next(iter(field))


def test_an_unknown_answer_cannot_be_gone_on_from(sdk: openai.OpenAI, topic: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.responses.create(model=MODEL, input=topic, previous_response_id="resp_nobody")
    assert refused.value.code == "previous_response_not_found"
    assert refused.value.param == "previous_response_id"


def test_a_stream_that_breaks_is_an_error_and_what_came_is_kept(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES D7, D9: no false end."""
    events = Events()
    steps = [*events.begun(name=f"resp_{topic}"), *events.said(0, f"half of {topic} here")[:4]]
    upstream.script(responses_stream(steps), path=RESPONSES_PATH)
    with pytest.raises(openai.APIError, match="ended its stream"):
        for event in sdk.responses.create(model=MODEL, input=topic, stream=True):
            last = event.type
    assert last == "response.output_text.delta"
    assert [row["text"] for row in gateway.events() if row["is_partial"]][-1] == "half of"


@pytest.mark.parametrize("kind", ["failed", "incomplete"])
def test_how_a_stream_ends_is_relayed_as_it_came(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str, kind: str
) -> None:
    events = Events()
    item, name = spoken(f"some {topic}"), f"resp_{topic}"
    more: dict[str, Any] = {"incomplete_details": {"reason": "max_output_tokens"}}
    if kind == "failed":
        more = {"error": {"code": "server_error", "message": "it broke"}}
    end = events.ended(item, kind=kind, name=name, **more)
    steps = [*events.begun(name=name), *events.said(0, f"some {topic}"), end]
    upstream.script(responses_stream(steps), path=RESPONSES_PATH)
    raw = sdk.responses.with_raw_response.create(model=MODEL, input=topic, stream=True)
    assert raw.http_response.read() == b"".join(step for step in steps if isinstance(step, bytes))
    report = gateway.report(raw.headers["x-library-turn"])
    assert report["state"] == ("failed" if kind == "failed" else "done")
    stored = sdk.responses.retrieve(name)
    assert stored.status == kind
    assert stored.output_text == f"some {topic}"


def test_a_client_that_goes_closes_the_upstream(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES D6."""
    events = Events()
    steps: list[Step] = [*events.begun(), *events.said(0, "one two three")[:3], Hang()]
    upstream.script(responses_stream(steps), path=RESPONSES_PATH)
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        stream = sdk.responses.create(model=MODEL, input=topic, stream=True)
        for event in stream:
            if event.type == "response.output_text.delta":
                break
        stream.close()
    assert upstream.last.closed.wait(2)


def test_the_end_comes_after_the_answer_is_stored(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.5, CASES D1: what comes is shown at once; the last event waits for the commit."""
    gate = Gate()
    events = Events()
    name = f"resp_{topic}"
    steps: list[Step] = [*events.begun(name=name), *events.said(0, f"said {topic}"), gate]
    steps += [events.ended(spoken(f"said {topic}"), name=name), Pause(0.01)]
    upstream.script(responses_stream(steps), path=RESPONSES_PATH)
    for event in sdk.responses.create(model=MODEL, input=topic, stream=True):
        if event.type == "response.output_item.done":
            with pytest.raises(openai.NotFoundError):
                sdk.responses.retrieve(name)
            gate.open()
        if event.type == "response.completed":
            assert sdk.responses.retrieve(name).output_text == f"said {topic}"


def test_what_a_providers_search_read_does_not_make_our_counts_dearer(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES B6: its count is told as it is, and teaches nothing about what was sent."""
    model = "gpt-4o-with-search"
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {
        "type": "search", "query": "x"}}  # fmt: skip
    counted = {"input_tokens": 3_000, "output_tokens": 7, "total_tokens": 3_007}
    said = responded(search, spoken("found"), name=f"resp_{topic}", usage=counted)
    upstream.script(said, path=RESPONSES_PATH)
    question = f"{topic} {filler(topic, words=700)}"
    asked = sdk.responses.with_raw_response.create(model=model, input=question)
    again = sdk.responses.with_raw_response.create(model=model, input=question)
    assert asked.headers["x-library-prompt-tokens"] == again.headers["x-library-prompt-tokens"]
    assert asked.parse().usage.input_tokens == 3_000  # type: ignore[union-attr]


# -- below /v1/responses -------------------------------------------------------------------------
def test_an_answer_is_had_again_and_its_name_deleted(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    first = sdk.responses.create(model=MODEL, input=topic)
    second = sdk.responses.create(model=MODEL, input="two", previous_response_id=first.id)
    again = sdk.responses.retrieve(second.id)
    assert (again.id, again.status, again.output_text) == (second.id, "completed", "reply to two")
    assert again.usage is not None
    assert again.usage.input_tokens == 11
    newest = list(sdk.responses.input_items.list(second.id, limit=2))
    assert [item.content[0].text for item in newest] == [  # type: ignore[union-attr, index]
        "two", f"reply to {topic[-60:]}", topic]  # fmt: skip
    oldest = sdk.responses.input_items.list(second.id, order="asc", limit=1)
    assert [item.content[0].text for item in oldest.data] == [topic]  # type: ignore[union-attr, index]
    assert oldest.has_more
    count = len(upstream.requests)
    sdk.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(second.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.delete(second.id)
    with pytest.raises(openai.BadRequestError):
        sdk.responses.cancel(first.id)
    assert len(upstream.requests) == count, "none of it is asked upstream"


def test_tokens_are_counted_for_what_would_be_sent(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES B7: exactly where all fits; never above the budget where it does not."""
    talk: list[Any] = [{"role": "user", "content": topic}]
    counted = sdk.responses.input_tokens.count(model=MODEL, input=talk, tools=TOOLS)
    sent = sdk.responses.with_raw_response.create(model=MODEL, input=talk, tools=TOOLS)
    assert counted.input_tokens == int(sent.headers["x-library-prompt-tokens"])
    for turn in range(40):
        talk.append({"role": "assistant", "content": f"{turn} {filler(turn, words=90)}"})
        talk.append({"role": "user", "content": f"{topic} {turn} {filler(-turn, words=90)}"})
    long = sdk.responses.input_tokens.count(model=MODEL, input=talk)
    sent = sdk.responses.with_raw_response.create(model=MODEL, input=talk)
    assert int(sent.headers["x-library-prompt-tokens"]) <= long.input_tokens <= 4_000
    assert len([row for row in gateway.events() if row["text"] == topic]) == 1


def test_a_transcript_is_compacted_by_paging(
    sdk: openai.OpenAI, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    said = f"The lantern of {topic} is number 4711."
    talk: list[Any] = [{"role": "user", "content": said}]
    for turn in range(40):
        talk.append({"role": "assistant", "content": f"{turn} {filler(turn, words=90)}"})
        talk.append({"role": "user", "content": f"{topic} {turn} {filler(-turn, words=90)}"})
    compacted = sdk.responses.compact(model=MODEL, input=talk)
    kept = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
    assert kept == talk[-len(kept) :]
    assert len(kept) < len(talk)
    gateway.wait_indexed()
    question = {"role": "user", "content": f"Which number has the lantern of {topic}?"}
    answer = {"role": "assistant", "content": "Noted."}
    sdk.responses.create(model=MODEL, input=[*kept, answer, question])  # type: ignore[list-item]
    assert "4711" in texts(upstream.last.messages)
