"""A Responses client on upstreams that have chat completions only."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.e2e.answers import (
    DONE,
    ROLE,
    Answer,
    Gate,
    Step,
    call,
    calls,
    chunk,
    error,
    said,
    stream,
    usage_event,
)
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.responses_answers import RESPONSES_PATH
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, filler, texts

LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
PATCH: Any = {"type": "custom", "name": "patch", "description": "Changes files."}
AGENTS: Any = {"type": "namespace", "name": "agents", "description": "Of agents.",
               "tools": [LOOK, PATCH]}  # fmt: skip


@pytest.fixture(scope="module")
def chat_only_process(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("chat-only")
    config = folder / "gateway.toml"
    config.write_text(
        f'[upstreams.local]\nurl = "{upstream_process.url}"\nspeaks = ["chat"]\n',
        encoding="utf-8",
    )
    gateway = GatewayProcess(
        db=folder / "library.db",
        upstream="local",
        config=config,
        settings={"budget_tokens": 4_000},
    )
    yield gateway
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def chat_only(chat_only_process: GatewayProcess, upstream: StubUpstream) -> GatewayProcess:
    return chat_only_process


@pytest.fixture
def sdk(chat_only: GatewayProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=chat_only.url, api_key="sk-test", max_retries=0) as made:
        yield made


def calling(made: list[dict[str, Any]], *, is_stream: bool) -> Answer:
    """Return an upstream's answer that calls tools side by side."""
    if not is_stream:
        return calls(*made)
    parts = [chunk({"tool_calls": [{"index": at, **one}]}) for at, one in enumerate(made)]
    return stream([ROLE, *parts, chunk({}, finish="tool_calls"), usage_event(), DONE])


def answered(sdk: openai.OpenAI, talk: list[Any], *, tools: list[Any], is_stream: bool) -> Response:
    if not is_stream:
        return sdk.responses.create(model=MODEL, input=talk, tools=tools)
    with sdk.responses.stream(model=MODEL, input=talk, tools=tools) as events:
        return events.until_done().get_final_response()


def test_an_answer_is_asked_for_as_a_chat(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    done = sdk.responses.create(model=MODEL, input=topic, instructions="Be brief.", store=False)
    assert done.output_text == f"reply to {topic[-60:]}"
    assert (done.status, done.instructions) == ("completed", "Be brief.")
    assert done.usage is not None
    assert (done.usage.input_tokens, done.usage.output_tokens) == (11, 7)
    assert upstream.last.path == "/v1/chat/completions"
    assert upstream.last.json["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": topic},
    ]


@pytest.mark.parametrize("is_stream", [False, True])
def test_tools_of_both_kinds_are_called_and_answered(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """CASES A1, D4."""
    made = [
        call(f"a{topic}", "look", '{"q": "x"}'),
        call(f"b{topic}", "patch", '{"input": "*** Begin Patch"}'),
    ]
    upstream.script(calling(made, is_stream=is_stream))
    talk: list[Any] = [{"role": "user", "content": topic}]
    first = answered(sdk, talk, tools=[LOOK, PATCH], is_stream=is_stream)
    look, patch = first.output
    assert look.type == "function_call"
    assert json.loads(look.arguments) == {"q": "x"}
    assert patch.type == "custom_tool_call"
    assert patch.input == "*** Begin Patch"
    results: list[Any] = [
        {"type": "function_call_output", "call_id": f"a{topic}", "output": "seen"},
        {"type": "custom_tool_call_output", "call_id": f"b{topic}", "output": "patched"},
    ]
    done = sdk.responses.create(
        model=MODEL, input=results, tools=[LOOK, PATCH], previous_response_id=first.id
    )
    assert done.output_text == f"reply to {topic[-60:]}"
    sent = upstream.last.json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]
    assert [one["id"] for one in sent[1]["tool_calls"]] == [f"a{topic}", f"b{topic}"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_tools_of_a_namespace_are_called_side_by_side_and_answered(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """Codex has its sub-agents and the tools of its MCP servers in namespaces."""
    made = [
        call(f"a{topic}", "agents__look", '{"q": "x"}'),
        call(f"b{topic}", "agents__patch", '{"input": "*** Begin Patch"}'),
        call(f"c{topic}", "look", "{}"),
    ]
    upstream.script(calling(made, is_stream=is_stream))
    talk: list[Any] = [{"role": "user", "content": topic}]
    tools = [LOOK, AGENTS]
    first = answered(sdk, talk, tools=tools, is_stream=is_stream)
    came = [item.to_dict() for item in first.output]
    assert [(item.get("namespace"), item["name"]) for item in came] == [
        ("agents", "look"), ("agents", "patch"), (None, "look")]  # fmt: skip
    assert came[1]["input"] == "*** Begin Patch"
    kinds = ["function_call_output", "custom_tool_call_output", "function_call_output"]
    results: list[Any] = [
        {"type": kind, "call_id": item["call_id"], "output": "seen"}
        for kind, item in zip(kinds, came, strict=True)
    ]
    done = sdk.responses.create(model=MODEL, input=[*talk, *came, *results], tools=tools)  # type: ignore[list-item]
    assert done.output_text == f"reply to {topic[-60:]}"
    body = upstream.last.json
    offered = [tool["function"]["name"] for tool in body["tools"]]
    assert offered == ["look", "agents__look", "agents__patch"]
    sent = body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", *["tool"] * 3]
    told = [one["function"]["name"] for one in sent[1]["tool_calls"]]
    assert told == ["agents__look", "agents__patch", "look"]


def test_each_piece_is_shown_when_it_comes(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES D1."""
    gate = Gate()
    steps: list[Step] = [ROLE, chunk({"content": "one"}), gate, chunk({"content": " two"})]
    upstream.script(stream([*steps, chunk({}, finish="stop"), DONE]))
    got = []
    for event in sdk.responses.create(model=MODEL, input=topic, stream=True):
        if event.type == "response.output_text.delta":
            got.append(event.delta)
            gate.open()
    assert got == ["one", " two"]


def test_a_cut_stream_is_an_error_in_the_clients_form(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    """CASES D9."""
    upstream.script(stream([ROLE, chunk({"content": "half"})]))
    with pytest.raises(openai.APIError, match="ended its stream"):
        for event in sdk.responses.create(model=MODEL, input=topic, stream=True):
            assert event.type != "response.completed"


def test_what_has_no_counterpart_is_refused_and_nothing_is_sent(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str
) -> None:
    with pytest.raises(openai.BadRequestError, match="'web_search'") as refused:
        sdk.responses.create(model=MODEL, input=topic, tools=[{"type": "web_search"}])
    assert (refused.value.code, refused.value.param) == ("unsupported_by_upstream", "tools")
    assert upstream.chats == []


def test_a_talk_past_the_budget_recalls_its_start(
    sdk: openai.OpenAI, chat_only: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES B8."""
    talk: list[Any] = [{"role": "user", "content": f"The cellar code of {topic} is 7781."}]
    for turn in range(30):
        talk.append({"role": "assistant", "content": f"{turn} {filler(turn, words=90)}"})
        talk.append({"role": "user", "content": f"{topic} {turn} {filler(-turn, words=90)}"})
    sdk.responses.create(model=MODEL, input=talk)
    chat_only.wait_indexed()
    question = {"role": "user", "content": f"What is the cellar code of {topic}?"}
    answer = {"role": "assistant", "content": f"reply to {talk[-1]['content'][-60:]}"}
    sdk.responses.create(model=MODEL, input=[*talk, answer, question])  # type: ignore[list-item]
    assert "7781" in texts(upstream.last.messages)


def test_an_upstream_is_asked_in_the_clients_protocol_until_it_has_no_such_path(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    gateway = start_gateway()
    no_path = error(404, {"error": {"message": "no such path"}})
    upstream.script(no_path, path=RESPONSES_PATH)
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        for number in range(2):
            assert sdk.responses.create(model=MODEL, input=f"{topic} {number}").output_text
    paths = [seen.path for seen in upstream.chats]
    assert paths == [RESPONSES_PATH, "/v1/chat/completions", "/v1/chat/completions"]


def test_one_conversation_may_change_its_protocol(
    sdk: openai.OpenAI, chat_only: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 4.2: identity is over what was said."""
    upstream.script(said(f"hello {topic}"))
    asked: list[Any] = [{"role": "user", "content": topic}]
    first = sdk.responses.with_raw_response.create(model=MODEL, input=asked)
    talk = [*asked, {"role": "assistant", "content": f"hello {topic}"},
            {"role": "user", "content": "go on"}]  # fmt: skip
    second = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=talk)
    assert second.headers["x-library-session"] == first.headers["x-library-session"]
    assert len([row for row in chat_only.events() if topic in row["text"]]) == 2


@pytest.mark.parametrize("begins", ["chat", "responses"])
def test_a_session_goes_on_in_another_protocol_with_its_calls(
    sdk: openai.OpenAI, upstream: StubUpstream, topic: str, begins: str
) -> None:
    """DESIGN 4.2: the past that a client does not send is read as its protocol has it."""
    headers = {"x-library-session": f"{topic}-{begins}"}
    upstream.script(calls(call(f"a{topic}", "look", "{}")))
    talk: list[Any] = [{"role": "user", "content": topic}]
    chat_tool: Any = {"type": "function", "function": {"name": "look", "parameters": {}}}
    if begins == "chat":
        sdk.chat.completions.create(
            model=MODEL, messages=talk, tools=[chat_tool], extra_headers=headers
        )
        result = {"type": "function_call_output", "call_id": f"a{topic}", "output": "seen"}
        sdk.responses.create(model=MODEL, input=[result], extra_headers=headers)  # type: ignore[list-item]
    else:
        sdk.responses.create(model=MODEL, input=talk, tools=[LOOK], extra_headers=headers)
        answer: Any = {"role": "tool", "tool_call_id": f"a{topic}", "content": "seen"}
        sdk.chat.completions.create(model=MODEL, messages=[answer], extra_headers=headers)
    sent = upstream.last.json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["id"] == f"a{topic}"
    assert sent[2]["content"] == "seen"


def test_the_offline_upstream_streams_like_a_real_one(
    start_gateway: StartGateway, topic: str
) -> None:
    gateway = start_gateway(url="offline")
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        first = sdk.responses.create(model=MODEL, input=f"My owl {topic} is called Ulu.")
        with sdk.responses.stream(
            model=MODEL, input=f"What is my owl {topic} called?", previous_response_id=first.id
        ) as events:
            kinds = {event.type for event in events}
            done = events.get_final_response()
    assert "Ulu" in done.output_text
    assert {"response.created", "response.output_text.delta", "response.completed"} <= kinds
