"""Anthropic's Messages API, with what it alone has: blocks, thinking, markers, its errors.

What holds for every protocol is tested with the others (`in_each_protocol`).
"""

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.answers import Json
from tests.e2e.conftest import BUDGET_TOKENS, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import MESSAGES, named_event
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, filler, small_talk, texts, user
from tests.e2e.test_isolation import add_key

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def http(gateway: GatewayProcess) -> Client:
    return Client(gateway.url, MESSAGES)


def posted(client: Client, body: Json, **headers: str) -> httpx.Response:
    """Post a bare request of this protocol."""
    return client.http.post(
        "/messages", json={"model": MODEL, "max_tokens": 64} | body, headers=headers
    )


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def says(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def answers(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str, name: str = "look", **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


LOOP: list[Json] = [
    answers(
        {"type": "thinking", "thinking": "first look, then leap", "signature": "c2lnbmF0dXJl"},
        text("I will look.\n"),
        use("c1", q=1.50, b=[1, {"y": None}]),
        use("c2"),
    ),
    says(
        result("c1", [text("one"), text("more", x_vendor=1)]),
        result("c2", "two", is_error=True, x_vendor={"kept": [1]}),
    ),
    answers(
        {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"x": "enc"}]},
        use("c3"),
    ),
    says(result("c3", "three", cache_control={"type": "ephemeral"})),
]


@pytest.mark.parametrize("budget", [1_500, 4_000])
def test_the_open_tool_loop_goes_back_verbatim(
    http: Client, upstream: StubUpstream, topic: str, budget: int
) -> None:
    """CASES F1 (openai-agents-python#678, litellm#25322): thinking, signatures, unknown keys."""
    upstream.budget_tokens = None
    talk = [*small_talk(f"{topic}{budget}", turns=14), user("task"), *LOOP]
    sent = posted(http, {"messages": talk}, **{"x-library-budget-tokens": str(budget)})
    assert sent.status_code == 200, sent.content
    assert upstream.last.json["messages"][-4:] == LOOP
    assert (len(upstream.last.json["messages"]) < len(talk)) == (budget == 1_500)


def test_under_budget_the_body_goes_out_byte_for_byte(
    http: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES A2 (litellm#6505), E5 (litellm#10791): vendor fields, spacing and numbers included."""
    upstream.budget_tokens = None
    body = json.dumps(
        {
            "x_vendor": 1.50,
            "system": [text("Be brief.", cache_control={"type": "ephemeral"})],
            "messages": [says(text(topic), text("x")), answers(text("  y  ")), says(text("z"))],
            "model": MODEL,
            "max_tokens": 10,
            "metadata": {"user_id": "somebody"},
        },
        indent=1,
    ).encode()
    sent = http.http.post("/messages", content=body, headers={"content-type": "application/json"})
    assert sent.status_code == 200
    assert upstream.last.body == body


def test_a_message_with_results_and_words_is_one_again_with_results_first(
    http: Client, upstream: StubUpstream, topic: str
) -> None:
    """The desk stands in front of the words, behind the results: there it is legal."""
    early = [user(f"{topic} the cobalt key is 7731"), answers(text("Noted."))]
    first = posted(http, {"messages": [*early, user("ok?")]}, **{"x-library-session": topic})
    assert first.status_code == 200
    ask = says(result("c9", "done"), text("Which key is the cobalt key?"))
    talk = [*early, user("ok?"), answers(text("ok")), *small_talk(topic, turns=14), user("go")]
    talk += [answers(use("c9")), ask]
    http_headers = {"x-library-session": topic, "x-library-budget-tokens": "1300"}
    sent = posted(http, {"messages": talk}, **http_headers)
    assert sent.status_code == 200, sent.content
    last = upstream.last.json["messages"][-1]
    kinds = [block["type"] for block in last["content"]]
    assert kinds == ["tool_result", "text", "text"]
    assert last["content"][0] == ask["content"][0]
    assert "7731" in last["content"][1]["text"]
    assert last["content"][2] == ask["content"][1]


def test_a_reminder_beside_results_is_not_taken_for_the_task(
    http: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES A6 (free-claude-code PR#318), H2: what Claude Code puts behind its tools' results."""
    task = user(f"{topic}: rename the module and run the tests")
    talk = [task]
    for step in range(40):
        reminder = f"<system-reminder>\nIt is step {step}.\n</system-reminder>"
        talk.append(answers(use(f"c{step}", n=step)))
        talk.append(says(result(f"c{step}", filler(step, words=30)), text(reminder)))
    sent = posted(http, {"messages": talk}, **{"x-library-budget-tokens": "1000"})
    assert sent.status_code == 200, sent.content
    messages = upstream.last.json["messages"]
    assert texts([messages[0]]).endswith(task["content"])
    assert messages[-1] == talk[-1]
    assert len(messages) < 30


def test_system_as_blocks_stays_as_it_came_when_the_talk_is_paged(
    http: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES B10 (ollama#8531), G4: text, order and markers."""
    system = [text("One."), text("Two.", cache_control={"type": "ephemeral"})]
    talk = [*small_talk(topic, turns=20), user("so?")]
    sent = posted(http, {"system": system, "messages": talk}, **{"x-library-budget-tokens": "900"})
    assert sent.status_code == 200
    assert upstream.last.json["system"] == system
    assert len(upstream.last.json["messages"]) < len(talk)


FIELDS: dict[str, Json] = {
    "server tools": {
        "tools": [
            {"name": "look", "input_schema": {"type": "object"}},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
            {"type": "bash_20250124", "name": "bash"},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "mcp_servers": [{"type": "url", "url": "https://example.invalid/mcp", "name": "m"}],
    },
    "thinking": {
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    },
    "the form of the answer": {
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "stop_sequences": ["END"],
        "service_tier": "auto",
    },
}


@pytest.mark.parametrize("turn_count", [0, 90], ids=["fits", "paged"])
@pytest.mark.parametrize("kind", FIELDS)
def test_its_fields_and_betas_and_what_the_user_attached_arrive_as_they_were_sent(
    http: Client, upstream: StubUpstream, topic: str, kind: str, turn_count: int
) -> None:
    """Issue 5; CASES E5, A13: tools that Anthropic runs and betas are passed through."""
    talk = small_talk(topic, turns=turn_count)
    pages = {"type": "text", "media_type": "text/plain", "data": f"{topic} some pages"}
    pixel = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    question = says(
        text(f"{topic}: what is this?"),
        {"type": "image", "source": pixel},
        {"type": "document", "source": pages, "title": "a", "citations": {"enabled": True}},
    )
    beta = "web-search-2025-03-05,context-management-2025-06-27"
    upstream.budget_tokens = None  # It has no opinion on what these fields cost.
    headers = {"anthropic-beta": beta, "x-library-budget-tokens": "12000"}
    sent = posted(http, {"messages": [*talk, question], **FIELDS[kind]}, **headers)
    assert sent.status_code == 200, sent.content
    body = upstream.last.json
    assert {name: body[name] for name in FIELDS[kind]} == FIELDS[kind]
    assert {*body} == {"model", "max_tokens", "messages", *FIELDS[kind]}
    assert upstream.last.header("anthropic-beta") == beta
    assert body["messages"][-1]["content"][-3:] == question["content"]
    assert (len(body["messages"]) < len(talk) + 1) == (turn_count > 0)


def has_mark(message: Json) -> bool:
    content = message["content"]
    return isinstance(content, list) and any("cache_control" in block for block in content)


def test_markers_survive_with_their_message_and_are_four_at_most(
    http: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES G4: also where each request of a client that sends only its newest brought one."""
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [text("Be brief.", **mark)]
    for turn in range(7):
        one = says(text(f"{topic} {turn}", **mark))
        sent = posted(
            http, {"system": system, "messages": [one]}, **{"x-library-session": f"{topic}-marks"}
        )
        assert sent.status_code == 200, sent.content
    body = upstream.last.json
    assert len(body["messages"]) == 13
    assert body["system"] == system
    marked = [at for at, message in enumerate(body["messages"]) if has_mark(message)]
    assert marked == [8, 10, 12]
    assert body["messages"][-1] == one


def test_images_and_documents_cost_what_the_formulas_say(http: Client, topic: str) -> None:
    """CASES B1 (open-interpreter#293, litellm#39910); Anthropic's formulas."""

    def counted(*blocks: Json, model: str = "claude-opus-5-5") -> int:
        body = {"model": model, "messages": [says(text(topic), *blocks)]}
        large = {"x-library-budget-tokens": "100000"}
        answer = http.http.post("/messages/count_tokens", json=body, headers=large)
        assert answer.status_code == 200, answer.content
        tokens = answer.json()["input_tokens"]
        assert isinstance(tokens, int)
        return tokens

    def image(**source: str) -> Json:
        return {"type": "image", "source": source}

    plain = counted()
    pixel = image(type="base64", media_type="image/png", data=PIXEL)
    linked = image(type="url", url="https://example.invalid/a.png")
    part = 10
    assert 1 <= counted(pixel) - plain <= part
    assert 0 <= counted(linked, model="claude-opus-5-5") - plain - 4_784 * 1.35 <= 2 * part
    words = {"type": "document", "source": {"type": "text", "data": filler(topic, words=400)}}
    assert counted(words) - plain > 400
    pages = b"%PDF-1.4 " + b"<< /Type /Page >>" * 3 + b"<< /Type /Pages /Count 3 >>"
    source = {"type": "base64", "media_type": "application/pdf"}
    pdf = {"type": "document", "source": source | {"data": base64.b64encode(pages).decode()}}
    assert counted(pdf) - plain > 3 * 3_000
    assert counted({"type": "x_hologram", "deep": [1, None]}) > plain


CLAUDE_CODE = {"metadata": {"user_id": "user_ab_account_cd_session_SESSION"}}
NAMED: dict[str, tuple[Json, dict[str, str]]] = {
    "metadata.user_id": (CLAUDE_CODE, {}),
    "metadata.user_id as JSON": (
        {"metadata": {"user_id": '{"device_id":"d","session_id":"SESSION"}'}},
        {},
    ),
    "x-claude-code-session-id": (CLAUDE_CODE, {"x-claude-code-session-id": "SESSION"}),
}


@pytest.mark.parametrize("kind", NAMED)
def test_claude_code_names_its_session(http: Client, topic: str, kind: str) -> None:
    """DESIGN 4.2: header, else the session part of `metadata.user_id`."""
    threads = []
    for session, words in [("a", "one"), ("b", "one"), ("a", "two")]:
        name = f"{topic[-80:]}{session}"
        fields, headers = json.loads(json.dumps(NAMED[kind]).replace("SESSION", name))
        sent = posted(http, {"messages": [user(f"{topic} {words}")]} | fields, **headers)
        assert sent.status_code == 200, sent.content
        threads.append(sent.headers["x-library-session"])
    assert sent.headers["x-library-identified-by"] == kind.split(" ")[0]
    assert threads[0] == threads[2] != threads[1]


def test_blocks_of_a_stream_are_put_together_and_known_again(
    http: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES D4 (litellm#33678), D11 (Memori#434): signatures, citations, interleaved calls."""

    def delta(index: int, **fields: Any) -> bytes:
        return named_event("content_block_delta", index=index, delta=fields)

    def begun(index: int, **block: Any) -> bytes:
        return named_event("content_block_start", index=index, content_block=block)

    opening, _, _ = MESSAGES.begin.partition(b"event: content_block_start")
    steps = [
        opening,
        begun(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="hm, "),
        delta(0, type="thinking_delta", thinking="yes"),
        delta(0, type="signature_delta", signature="c2ln"),
        begun(1, type="text", text=""),
        begun(2, type="tool_use", id="a", name="read", input={}),
        delta(2, type="input_json_delta", partial_json='{"p": '),
        delta(1, type="text_delta", text="I look."),
        delta(1, type="citations_delta", citation={"cited_text": "c"}),
        delta(2, type="input_json_delta", partial_json="1}"),
        begun(3, type="tool_use", id="b", name="list", input={}),
        *MESSAGES.end[1:],
    ]
    upstream.script(MESSAGES.streamed(*steps))
    reply = http.chat([user(topic)], stream=True)
    gateway.report(reply.turn_id)
    [row] = [row for row in gateway.events() if row["turn_id"] == reply.turn_id][1:]
    stored = row["body"]
    assert stored["content"] == [
        {"type": "thinking", "thinking": "hm, yes", "signature": "c2ln"},
        text("I look.", citations=[{"cited_text": "c"}]),
        use("a", "read", p=1),
        use("b", "list"),
    ]
    upstream.budget_tokens = None
    talk = [user(topic), stored, says(result("a", "1"), result("b", "2"))]
    again = posted(http, {"messages": talk})
    assert gateway.report(again.headers["x-library-turn"])["events_new"] == 2


REFUSALS: dict[str, tuple[str, bytes, dict[str, str], int, str]] = {
    "no JSON": ("/messages", b"{", {}, 400, "invalid_request_error"),
    "no messages": ("/messages", b'{"model": "m"}', {}, 400, "invalid_request_error"),
    "a bad role": (
        "/messages",
        b'{"model": "m", "messages": [{"role": "tool", "content": "x"}]}',
        {},
        400,
        "invalid_request_error",
    ),
    "a bad header": (
        "/messages",
        b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}',
        {"x-library-budget-tokens": "many"},
        400,
        "invalid_request_error",
    ),
    "an unknown encoding": (
        "/messages",
        b"x",
        {"content-encoding": "rot13"},
        415,
        "invalid_request_error",
    ),
    "a foreign host": ("/messages", b"{}", {"host": "evil.example"}, 403, "permission_error"),
    "a count of nothing": ("/messages/count_tokens", b"[]", {}, 400, "invalid_request_error"),
    "with a slash": ("/messages/", b"{", {}, 400, "invalid_request_error"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_every_refusal_on_these_paths_has_anthropics_shape(http: Client, kind: str) -> None:
    """DESIGN 1.1, STYLE Errors: in the client protocol's own error shape."""
    path, body, headers, status, error_type = REFUSALS[kind]
    sent = http.http.post(path, content=body, headers=headers)
    assert sent.status_code == status
    refused = sent.json()
    assert refused["type"] == "error"
    assert refused["error"]["type"] == error_type
    assert refused["error"]["message"]
    assert refused["error"]["details"]["error_code"]


def test_a_get_is_refused_in_the_same_shape_and_other_paths_keep_openais(http: Client) -> None:
    assert http.http.get("/messages").json()["error"]["type"] == "not_found_error"
    refused = http.http.post("/chat/completions", content=b"{").json()
    assert refused["error"]["code"] == "invalid_request"


def test_a_gateway_key_is_taken_in_either_header_and_never_leaves(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """Issue 5: x-api-key and bearer; DESIGN 9."""
    keys = tmp_path / "keys.json"
    key = add_key(keys, "someone")
    gateway = start_gateway(keys_file=str(keys))
    client = Client(gateway.url, MESSAGES)
    for headers in ({"x-api-key": key}, {"authorization": f"Bearer {key}"}):
        assert posted(client, {"messages": [user(topic)]}, **headers).status_code == 200
        assert key not in str(upstream.last.headers)
    refused = posted(client, {"messages": [user(topic)]}, **{"x-api-key": "loc-wrong"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")


def test_an_anthropic_style_upstream_gets_its_key_where_it_looks_for_it(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """Issue 5: the setting `speaks`, x-api-key, anthropic-version, the client's beta headers."""
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        f'[upstreams.claude]\nurl = "{upstream.url}"\napi_key_env = "THE_KEY"\n'
        'speaks = ["messages"]\n',
        encoding="utf-8",
    )
    gateway = start_gateway(url="claude", config=config, environment={"THE_KEY": "sk-ant-secret"})
    client = Client(gateway.url, MESSAGES)
    beta = {"anthropic-beta": "context-1m,tools-2"}
    assert posted(client, {"messages": [user(topic)]}, **beta).status_code == 200
    seen = upstream.last
    assert seen.header("x-api-key") == "sk-ant-secret"
    assert seen.header("authorization") is None
    assert seen.header("anthropic-version") == "2023-06-01"
    assert seen.header("anthropic-beta") == beta["anthropic-beta"]
    chat = Client(gateway.url).chat([user(topic)])
    assert chat.status == 400
    assert chat.json["error"]["code"] == "protocol_unsupported"


def test_a_count_keeps_within_the_budget_whatever_comes(http: Client, topic: str) -> None:
    """CASES B7 (billion-context PR#72)."""
    talk = [*small_talk(topic, turns=80), user("so?")]
    answer = http.http.post("/messages/count_tokens", json={"model": MODEL, "messages": talk})
    assert 2_000 < answer.json()["input_tokens"] <= BUDGET_TOKENS
    long = [user("word " * 9_000)]
    refused = http.http.post("/messages/count_tokens", json={"model": MODEL, "messages": long})
    assert refused.status_code == 400
    assert "prompt is too long" in refused.json()["error"]["message"]
