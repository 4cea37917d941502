"""Look-ups: the model searches and opens what was said before, by tools that the client never
sees (issue 5). Every body that the upstream gets is checked for its budget and its order by the
scripted upstream itself."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.e2e import responses_answers
from tests.e2e.answers import (
    DONE,
    ROLE,
    Answer,
    Gate,
    Hang,
    Json,
    call,
    chunk,
    completion,
    error,
    json_answer,
    stream,
    usage_event,
)
from tests.e2e.answers import said as answered
from tests.e2e.conftest import BUDGET_TOKENS
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import CHAT, MESSAGES, RESPONSES, Protocol, named_event
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, filler, small_talk, texts, tool, user

ROUNDS_MAX = 2
SEARCH, OPEN = "library_search", "library_open"
NESTED: Any = json.loads("[" * 300 + "]" * 300)
NEEDLE = "The depot key for bay nineteen hangs behind the walnut clock"


@pytest.fixture(scope="module")
def looking_process(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    gateway = GatewayProcess(
        db=tmp_path_factory.mktemp("looking") / "library.db",
        upstream=upstream_process.url,
        settings={
            "budget_tokens": BUDGET_TOKENS,
            "lookup_rounds": ROUNDS_MAX,
            "upstream_retries": 0,
            "minimum_relevance": 1.0,  # Nothing lies on the desk, so that it has to be looked up.
        },
    )
    yield gateway
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def looking(looking_process: GatewayProcess, upstream: StubUpstream) -> GatewayProcess:
    """A gateway whose models may look things up; its upstream is `upstream`."""
    return looking_process


@pytest.fixture(params=[CHAT, RESPONSES, MESSAGES], ids=lambda one: one.name)
def spoken(request: pytest.FixtureRequest) -> Protocol:
    assert isinstance(request.param, Protocol)
    return request.param


def asking(call_id: str, name: str = SEARCH, **arguments: Any) -> Json:
    return call(call_id, name, json.dumps(arguments))


def said(protocol: Protocol, words: str | None, *calls: Json, is_stream: bool) -> Answer:
    """Answer with words, and calls behind them."""
    if not is_stream:
        message: Json = {"role": "assistant", "content": words}
        body = completion(
            message | ({"tool_calls": list(calls)} if calls else {}),
            finish="tool_calls" if calls else "stop",
        )
        return json_answer(protocol.reply(body))
    return {"chat": _chat, "messages": _messages, "responses": _responses}[protocol.name](
        words, calls
    )


def _chat(words: str | None, calls: tuple[Json, ...]) -> Answer:
    steps = [ROLE]
    steps += [chunk({"content": piece}) for piece in _pieces(words)]
    for index, one in enumerate(calls):
        function = one["function"]
        opened = {**one, "index": index, "function": {**function, "arguments": ""}}
        steps.append(chunk({"tool_calls": [opened]}))
        for piece in (function["arguments"][:5], function["arguments"][5:]):
            fragment = {"index": index, "function": {"arguments": piece}}
            steps.append(chunk({"tool_calls": [fragment]}))
    finish = "tool_calls" if calls else "stop"
    return stream([*steps, chunk({}, finish=finish), usage_event(), DONE])


def _messages(words: str | None, calls: tuple[Json, ...]) -> Answer:
    blocks: list[tuple[Json, list[Json]]] = []
    if words:
        pieces = [{"type": "text_delta", "text": piece} for piece in _pieces(words)]
        blocks.append(({"type": "text", "text": ""}, pieces))
    for one in calls:
        function = one["function"]
        block = {"type": "tool_use", "id": one["id"], "name": function["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
        blocks.append((block, [delta]))
    message: Json = {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": "stub-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    steps = [named_event("message_start", message=message), named_event("ping")]
    for index, (block, deltas) in enumerate(blocks):
        steps.append(named_event("content_block_start", index=index, content_block=block))
        steps += [named_event("content_block_delta", index=index, delta=one) for one in deltas]
        steps.append(named_event("content_block_stop", index=index))
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    steps.append(named_event("message_delta", delta=ended, usage={"output_tokens": 7}))
    return stream([*steps, named_event("message_stop")])


def _responses(words: str | None, calls: tuple[Json, ...]) -> Answer:
    items = [responses_answers.spoken(words)] if words else []
    items += [
        responses_answers.calling(one["id"], one["function"]["name"], one["function"]["arguments"])
        for one in calls
    ]
    tools = [{"type": "function", "name": SEARCH}]
    answer = responses_answers.streamed_items(*items, tools=tools)
    own = f"msg_{next(_numbers)}_".encode()  # As anywhere, no two answers have an item in common.
    steps = (step.replace(b"msg_1", own) for step in answer.steps if isinstance(step, bytes))
    return stream([*steps])


_numbers = itertools.count(1)


def _pieces(words: str | None) -> list[str]:
    found = (words or "").split(" ") if words else []
    return [word if at == 0 else f" {word}" for at, word in enumerate(found)]


class Spoken:
    """What a client makes of an answer, streamed or whole: by the protocol's own SDK."""

    def __init__(self, origin: str, protocol: Protocol, session: str) -> None:
        self.protocol = protocol
        self.session = {"x-library-session": session}
        self._origin = origin

    def ask(self, talk: list[Json], *, is_stream: bool, **more: Any) -> Json:
        """Return text, names of calls, prompt tokens and completion tokens."""
        body = self.protocol.request({"model": "gpt-4o-mini", "messages": talk, **more})
        if self.protocol is MESSAGES:
            with anthropic.Anthropic(base_url=self._origin, api_key="k", max_retries=0) as client:
                return self._message(client, body, is_stream)
        url = f"{self._origin}/v1"
        with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as other:
            if self.protocol is CHAT:
                return self._chat(other, body, is_stream)
            return self._response(other, body, is_stream)

    def _chat(self, client: openai.OpenAI, body: Json, is_stream: bool) -> Json:
        if not is_stream:
            whole = client.chat.completions.create(**body, extra_headers=self.session)
        else:
            body["stream_options"] = {"include_usage": True}
            with client.chat.completions.stream(**body, extra_headers=self.session) as events:
                whole = events.get_final_completion()
        assert whole.usage is not None
        message = whole.choices[0].message
        names = [one.function.name for one in message.tool_calls or () if one.type == "function"]
        return _answer(
            message.content, names, whole.usage.prompt_tokens, whole.usage.completion_tokens
        )

    def _message(self, client: anthropic.Anthropic, body: Json, is_stream: bool) -> Json:
        if is_stream:
            with client.messages.stream(**body, extra_headers=self.session) as events:
                whole: Any = events.get_final_message()
        else:
            whole = client.messages.create(**body, extra_headers=self.session)
        text = "\n\n".join(block.text for block in whole.content if block.type == "text")
        names = [block.name for block in whole.content if block.type == "tool_use"]
        assert whole.stop_reason == ("tool_use" if names else "end_turn")
        return _answer(text, names, whole.usage.input_tokens, whole.usage.output_tokens)

    def _response(self, client: openai.OpenAI, body: Json, is_stream: bool) -> Json:
        if is_stream:
            with client.responses.stream(**body, extra_headers=self.session) as events:
                numbers = [event.sequence_number for event in events]
                whole: Any = events.get_final_response()
            assert numbers == list(range(len(numbers)))
        else:
            whole = client.responses.create(**body, extra_headers=self.session)
        assert not any(getattr(one, "name", None) == SEARCH for one in whole.tools)
        items = whole.output
        text = "\n\n".join(
            part.text for item in items if item.type == "message" for part in item.content
        )
        names = [item.name for item in items if item.type == "function_call"]
        return _answer(text, names, whole.usage.input_tokens, whole.usage.output_tokens)


def _answer(text: str | None, names: list[str], prompt: int, told: int) -> Json:
    return {"text": text or "", "calls": names, "prompt": prompt, "completion": told}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_a_model_finds_by_itself_what_its_prompt_no_longer_holds(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    """Issue 5, agent work: bounded, within budget, invisible to the client, recorded once."""
    client = Spoken(looking.origin, spoken, topic)
    talk = [user(f"{topic}: {NEEDLE}."), *small_talk(topic, turns=30)]
    talk.insert(1, {"role": "assistant", "content": f"noted {topic}"})
    upstream.script(
        said(
            spoken,
            None,
            asking("c1", query="depot key bay nineteen"),
            asking("c2", OPEN, id="e999999"),
            is_stream=is_stream,
        ),
        said(spoken, "It hangs behind the clock.", is_stream=is_stream),
    )
    answer = client.ask([*talk, user(f"{topic} where now?")], is_stream=is_stream)
    assert answer == _answer("It hangs behind the clock.", [], 22, 14)
    first, second = upstream.chats
    assert NEEDLE not in texts(first.messages)
    assert NEEDLE in texts(second.messages)
    assert "no event 'e999999'" in texts(second.messages)
    names = [one["function"]["name"] for one in first.chat["tools"]]
    assert names == [SEARCH, OPEN]
    [turn] = looking.wait_turns(session=topic, count=1)
    report = looking.report(turn["id"])
    searched, opened = report["lookups"]
    assert searched["query"] == "depot key bay nineteen"
    assert searched["found"]
    assert (opened["record"] if "record" in opened else opened["error"], opened["found"]) == (
        "no event 'e999999' in this collection",
        [],
    )
    assert report["prompt_tokens"] < searched["prompt_tokens"] <= BUDGET_TOKENS
    stored = [event["text"] for event in looking.events()]
    assert len([text for text in stored if topic in text]) == len(talk) + 1
    assert "It hangs behind the clock." in stored
    assert not any("library_" in text for text in stored)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_words_that_came_with_a_look_up_stand_in_front_of_the_answer(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    client = Spoken(looking.origin, spoken, topic)
    upstream.script(
        said(spoken, "Let me look.", asking("c1", query="x"), is_stream=is_stream),
        said(spoken, "Once more.", asking("c1", query="y"), is_stream=is_stream),
        said(spoken, "Nothing there.", is_stream=is_stream),
    )
    asked = user(f"{topic} hello")
    answer = client.ask([asked], is_stream=is_stream)
    assert answer == _answer("Let me look.\n\nOnce more.\n\nNothing there.", [], 33, 21)
    upstream.reset_scripts()
    whole: Json = {"role": "assistant", "content": answer["text"]}
    reply = Client(looking.url, spoken).chat([asked, whole, user(f"{topic} on")], session=topic)
    assert reply.status == 200
    if spoken is CHAT:  # The echo is the message that was recorded.
        assert looking.report(reply.turn_id)["events_new"] == 1


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_a_call_of_the_clients_goes_to_the_client_and_one_of_ours_beside_it_is_left_out(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    client = Spoken(looking.origin, spoken, topic)
    upstream.script(
        said(
            spoken,
            "Both.",
            asking("c1", query="x"),
            asking("c2", "look", q="y"),
            is_stream=is_stream,
        )
    )
    answer = client.ask([user(f"{topic} go")], is_stream=is_stream, tools=[tool("look")])
    assert answer == _answer("Both.", ["look"], 11, 7)
    assert len(upstream.chats) == 1
    names = [one["function"]["name"] for one in upstream.last.chat["tools"]]
    assert names == ["look", SEARCH, OPEN]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_a_model_that_never_stops_looking_is_answered_for_in_bounded_rounds(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    """After its rounds nothing may be called; after that it is asked without our tools."""
    client = Spoken(looking.origin, spoken, topic)
    for at in range(ROUNDS_MAX + 1):
        upstream.script(said(spoken, None, asking(f"c{at}", query="x"), is_stream=is_stream))
    upstream.script(said(spoken, "plain", is_stream=is_stream))
    answer = client.ask([user(f"{topic} go")], is_stream=is_stream)
    assert answer["text"] == "plain"
    *_, last, plain = upstream.chats
    assert len(upstream.chats) == ROUNDS_MAX + 2
    forbidden = last.json["tool_choice"]
    assert forbidden == ({"type": "none"} if spoken is MESSAGES else "none")
    assert not plain.json.get("tools")
    assert len(plain.messages) == 1


@pytest.mark.parametrize(
    ("told", "look_ups"),
    [({"content": "\ud83d"}, ROUNDS_MAX + 1), ({"annotations": NESTED}, 1)],
    ids=["half a character", "nested"],
)
def test_a_call_that_cannot_be_written_again_is_answered_for_without_our_tools(
    looking: GatewayProcess, upstream: StubUpstream, told: Json, look_ups: int, topic: str
) -> None:
    """JSON is read more deeply nested than it is written, and with half a character."""
    calling = {"role": "assistant", "content": None, "tool_calls": [asking("c", query="x")], **told}
    body = json.dumps(completion(calling, finish="tool_calls")).encode()
    headers = (("content-type", "application/json"),)
    upstream.script(*[Answer((body,), headers=headers, framing="length")] * look_ups)
    upstream.script(answered("plain"))
    reply = Client(looking.url).chat([user(f"{topic} go")], session=topic)
    assert (reply.status, reply.text.split()[-1:]) == (200, ["plain"])
    assert len(upstream.chats) == look_ups + 1
    assert not upstream.last.json.get("tools")


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_a_model_with_tools_of_the_clients_is_told_when_there_are_no_more_look_ups(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    client = Spoken(looking.origin, spoken, topic)
    for at in range(ROUNDS_MAX + 1):
        upstream.script(said(spoken, None, asking(f"c{at}", query="x"), is_stream=is_stream))
    upstream.script(said(spoken, None, asking("own", "look", q="y"), is_stream=is_stream))
    answer = client.ask([user(f"{topic} go")], is_stream=is_stream, tools=[tool("look")])
    assert answer["calls"] == ["look"]
    assert "no more look-ups" in str(upstream.last.messages[-1]["content"])
    assert "tool_choice" not in upstream.last.json


def test_an_answer_without_a_look_up_is_shown_as_it_comes(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, topic: str
) -> None:
    """CASES D1 (litellm#26102): nothing waits for what may still be called."""
    whole = said(spoken, "one two three", is_stream=True)
    at = next(at for at, step in enumerate(whole.steps) if b"two" in step)  # type: ignore[operator]
    gate = Gate()
    upstream.script(stream([*whole.steps[:at], gate, *whole.steps[at:]]))
    client = Client(looking.url, spoken)
    with client.streaming([user(f"{topic} go")], session=topic) as answer:
        got = b""
        for data in answer.iter_raw():
            got += data
            if b"one" in got:
                gate.open()
    assert b"three" in got
    if spoken is not RESPONSES:  # A response repeats the request's tools: ours are taken out.
        assert got == b"".join(step for step in whole.steps if isinstance(step, bytes))


def test_an_upstream_that_fails_in_a_later_round_fails_the_answer_in_its_own_shape(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, topic: str
) -> None:
    """CASES D9 (any-llm PR#847)."""
    failed = error(503, {"error": {"message": "gone fishing", "type": "x", "code": None}})
    client = Client(looking.url, spoken)
    upstream.script(said(spoken, None, asking("c1", query="x"), is_stream=False), failed)
    reply = client.chat([user(f"{topic} go")], session=topic)
    assert (reply.status, b"gone fishing" in reply.content) == (503, True)
    upstream.script(said(spoken, "So", asking("c1", query="x"), is_stream=True), failed)
    with client.streaming([user(f"{topic} again")], session=f"{topic}s") as answer:
        content = answer.read()
    assert answer.status_code == 200
    assert b"So" in content
    assert b"gone fishing" in content
    assert not any(end in content for end in (b"[DONE]", b"message_stop", b"response.completed"))
    [turn] = looking.wait_turns(session=f"{topic}s", count=1)
    assert turn["state"] == "failed"


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_goes_in_a_later_round_stops_the_upstream(
    looking: GatewayProcess, upstream: StubUpstream, spoken: Protocol, is_stream: bool, topic: str
) -> None:
    """CASES D6 (litellm#30244, #37140)."""
    hanging = Answer((Hang(),), headers=(("content-type", "text/event-stream"),))
    silent = Answer((), before=(Hang(),))
    upstream.script(
        said(spoken, "So", asking("c1", query="x"), is_stream=is_stream),
        hanging if is_stream else silent,
    )
    client = Client(looking.url, spoken)
    body = spoken.request({"model": "gpt-4o-mini", "messages": [user(topic)], "stream": is_stream})
    with pytest.raises(httpx.ReadTimeout):
        client.http.post(spoken.path, json=body, headers={"x-library-session": topic}, timeout=1.0)
    second = upstream.wait_for_chats(2)[1]
    assert second.closed.wait(2)
    [turn] = looking.wait_turns(session=topic, count=1)
    assert turn["state"] == "abandoned"


def test_tools_are_offered_only_where_the_client_left_the_choice(
    looking: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    client = Client(looking.url)
    own = [tool("look")]
    forced = {"type": "function", "function": {"name": "look"}}
    requests: list[Json] = [
        {"tools": own, "tool_choice": forced},
        {"tools": own, "tool_choice": "required"},
        {"tools": [tool(SEARCH)]},
        {"n": 2},
        {"headers": {"x-library-bypass": "1"}},
        {"headers": {"x-library-record": "off"}},
        {"headers": {"x-library-recall": "off"}},
    ]
    for number, more in enumerate(requests):
        assert client.chat([user(f"{topic} {number}")], **more).status == 200
        names = [one["function"]["name"] for one in upstream.last.json.get("tools", ())]
        assert OPEN not in names, more


def test_tools_that_leave_too_little_room_are_not_offered(
    looking: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    client = Client(looking.url)
    upstream.budget_tokens = 400
    reply = client.chat([user(f"{topic} {filler(topic, words=180)}")], budget=400)
    assert reply.status == 200
    assert "tools" not in upstream.last.json
    assert reply.headers["x-library-degraded"] == "lookups"


def test_a_model_reads_no_other_conversation_where_recall_is_from_the_thread(
    looking: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.8."""
    secret = f"{topic} the password of the other thread is marzipan"
    client = Client(looking.url)
    client.chat([user(secret)], session=f"{topic}-other")
    looking.wait_indexed()
    theirs = [one["id"] for one in looking.events() if one["text"] == secret]
    upstream.script(
        said(
            CHAT,
            None,
            asking("c1", query="password of the other thread"),
            asking("c2", OPEN, id=theirs[0]),
            is_stream=False,
        )
    )
    client.chat([user(f"{topic} mine")], session=f"{topic}-mine")
    assert "marzipan" not in texts(upstream.last.messages)
    upstream.script(said(CHAT, None, asking("c2", OPEN, id=theirs[0]), is_stream=False))
    client.chat(
        [user(f"{topic} all")],
        session=f"{topic}-all",
        headers={"x-library-recall": "project"},
    )
    assert "marzipan" in texts(upstream.last.messages)


def test_the_recipe_of_the_readme_shows_a_look_up_on_the_offline_upstream(tmp_path: Path) -> None:
    """What the desk holds already is named as lying in the prompt; without a desk it is found."""
    settings = {"budget_tokens": 2_400, "lookup_rounds": 4, "embedder": "none"}
    gateway = GatewayProcess(db=tmp_path / "library.db", upstream="offline", settings=settings)
    client = Client(gateway.url)
    fact = "Remember: the blue key opens the boathouse."
    client.chat([user(fact)], session="try")
    for number in range(10):
        client.chat([user(f"Tell me of {filler(str(number), words=200)}")], session="try")
    gateway.wait_indexed()
    asked = [user('call library_search {"query": "blue key boathouse"}')]
    lying = client.chat(asked, session="try")
    found = client.chat(asked, session="try", headers={"x-library-desk-tokens": "0"})
    assert f'In your prompt already: e1 "{fact}"' in lying.text
    assert f"¶e1 user: {fact}" in found.text
    assert gateway.stop() == 0, gateway.stderr
