"""CASES B: every count is the model's own, and nothing larger than the budget goes out."""

import base64
import itertools
import random
import struct
import zlib
from pathlib import Path

import pytest

from tests.e2e.answers import Json, completion, error, json_answer, usage
from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.legality import request_tokens
from tests.e2e.protocols import CHAT, PROTOCOLS, RESPONSES, Protocol, in_each_protocol, in_protocols
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import (
    MODEL,
    Client,
    assistant,
    filler,
    small_talk,
    system,
    texts,
    tool,
    user,
)

PER_PART_TOKENS = 2
"""Our own margin for a part: what joins the parts of a message is not published."""


def png(*, width: int, height: int) -> str:
    """Return a real PNG of noise as a data URL; large, because noise does not compress."""
    noise = random.Random(1).randbytes

    def block(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    lines = b"".join(b"\0" + noise(width * 3) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = block(b"IHDR", head) + block(b"IDAT", zlib.compress(lines, 0)) + block(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def with_image(text: str, url: str, **more: str) -> Json:
    return user(
        [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url, **more}}]
    )


@in_protocols(CHAT, RESPONSES)
@pytest.mark.parametrize(
    ("width", "height", "detail", "image_tokens"),
    [(512, 512, "low", 85), (512, 512, "high", 85 + 170), (1024, 1024, "high", 85 + 4 * 170)],
)
def test_an_inline_image_costs_what_the_formula_says(
    ask: Ask,
    topic: str,
    width: int,
    height: int,
    detail: str,
    image_tokens: int,
    protocol: Protocol,
) -> None:
    """CASES B1 (open-interpreter#293); the formula is OpenAI's for gpt-4o. Anthropic's own is in
    test_messages.py."""
    url = png(width=width, height=height)
    assert len(url) > 1_000_000
    talk = [with_image(f"{topic} {detail} what is this?", url, detail=detail)]
    reply, seen = ask(talk, model="gpt-4o")
    plain, _ = ask(
        [user([{"type": "text", "text": f"{topic} {detail} what is this?"}])], model="gpt-4o"
    )
    assert seen.json[protocol.items] == protocol.own(talk)
    over = reply.prompt_tokens - plain.prompt_tokens - image_tokens
    assert 0 <= over <= PER_PART_TOKENS


@in_each_protocol
@pytest.mark.parametrize(
    "part",
    [
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + "A" * 4_000}},
        {"type": "x_hologram", "payload": {"deep": ["nested", 1, None]}},
        {"type": "input_audio", "input_audio": {"data": "A" * 4_000, "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,broken!"}},
        {"type": "image_url", "image_url": "https://example.invalid/x.png"},
        {"no_type": True},
    ],
    ids=str,
)
def test_an_unknown_part_gets_an_estimate_and_no_exception(
    client: Client, upstream: StubUpstream, topic: str, part: Json
) -> None:
    """CASES B1 (litellm#39910)."""
    upstream.budget_tokens = None
    talk = [user([{"type": "text", "text": f"{topic} {str(part)[:60]}"}, part])]
    reply = client.chat(talk, model="gpt-4o")
    assert reply.status == 200, reply.content
    assert upstream.last.json[client.protocol.items] == client.protocol.own(talk)
    assert reply.prompt_tokens > 10


@in_each_protocol
def test_tools_tool_choice_and_response_format_are_counted(ask: Ask, topic: str) -> None:
    """CASES B2 (litellm#36604)."""
    talk = [user(f"{topic} hello")]
    plain, _ = ask(talk)
    tools = [tool(f"tool_{i}", filler(i, words=20)) for i in range(8)]
    with_tools, seen = ask(talk, tools=tools)
    assert with_tools.prompt_tokens - plain.prompt_tokens >= request_tokens(
        seen.chat
    ) - request_tokens({"messages": talk})
    schema = {"type": "object", "properties": {f"field_{i}": {"type": "string"} for i in range(40)}}
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    with_shape, _ = ask(talk, response_format=shape)
    assert with_shape.prompt_tokens > plain.prompt_tokens + 100
    named = {"type": "function", "function": {"name": "tool_1"}}
    with_choice, _ = ask(talk, tools=tools, tool_choice=named)
    assert with_choice.prompt_tokens >= with_tools.prompt_tokens


@in_each_protocol
def test_tools_over_the_budget_are_refused_with_numbers(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES B2 (litellm#36604)."""
    tools = [tool(f"tool_{i}", filler(i, words=200)) for i in range(40)]
    reply = client.chat([user(f"{topic} hello")], tools=tools)
    assert reply.status == 400
    assert reply.code == "context_length_exceeded"
    assert upstream.chats == []


LIMITS = [(one, one.reply_limit) for one in PROTOCOLS] + [(CHAT, "max_completion_tokens")]


def test_the_reply_is_reserved_when_the_window_is_the_limit(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """CASES B3 (claude-code-router#1292)."""
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        f'[models."{MODEL}"]\nwindow_tokens = 3000\nbudget_tokens = 8000\n', encoding="utf-8"
    )
    gateway = start_gateway(config=config)
    for protocol, field in LIMITS:
        talk = [*small_talk(f"{topic}{field}", turns=20), user("so?")]
        upstream.budget_tokens = 3_000 - 1_200
        body = protocol.request({"model": MODEL, "messages": talk}) | {field: 1_200}
        answer = Client(gateway.url).http.post(protocol.path, json=body)
        assert answer.status_code == 200, answer.content
        assert answer.headers["x-library-budget-tokens"] == "1800"
        assert upstream.last.json[field] == 1_200


NETWORK_GUARD = """
import socket, pathlib, os
_connect = socket.socket.connect
_lookup = socket.getaddrinfo
_log = pathlib.Path(os.environ["GUARD_LOG"])
def _note(what):
    with _log.open("a") as log:
        log.write(f"{what}\\n")
    raise OSError(f"no network: {what}")
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        _note(address)
    return _connect(self, address)
def lookup(host, *rest, **more):
    if host not in ("127.0.0.1", "::1", "localhost", None):
        _note(host)
    return _lookup(host, *rest, **more)
socket.socket.connect = connect
socket.getaddrinfo = lookup
"""


def test_counting_needs_no_network(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """CASES B4 (litellm#19768, tiktoken#317): a guard in the process notes every attempt."""
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(NETWORK_GUARD, encoding="utf-8")
    log = tmp_path / "guard.log"
    path = f"{guard}:{Path(__file__).parents[2]}"
    gateway = start_gateway(environment={"PYTHONPATH": path, "GUARD_LOG": str(log)})
    upstream.budget_tokens = None
    models = ("gpt-4o", "gpt-3.5-turbo", "o3", "llama3:8b", "qwen3", "claude-x", "never-heard")
    for protocol, model in itertools.product(PROTOCOLS, models):
        client = Client(gateway.url, protocol)
        reply = client.chat([*small_talk(topic, turns=2), user(f"{model}?")], model=model)
        assert reply.status == 200
        assert reply.prompt_tokens > 200
    assert not log.exists(), log.read_text(encoding="utf-8")


OVERFLOWS: dict[str, tuple[int, Json]] = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your "
                "messages resulted in 9100 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    "OpenAI, new wording": (
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model. Please adjust "
                "your input and try again.",
                "type": "invalid_request_error",
                "param": "input",
                "code": "context_length_exceeded",
            }
        },
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested "
            "5000 tokens in the messages, Please reduce the length of the messages.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9100,
                "n_ctx": 8192,
            }
        },
    ),
    "llama.cpp, older": (
        500,
        {
            "error": {
                "code": 500,
                "message": "the request exceeds the available context size. try increasing the "
                "context size or enable context shift",
                "type": "server_error",
            }
        },
    ),
    "Ollama": (
        400,
        {"error": "input length (9100 tokens) exceeds the model's maximum context length (8192)"},
    ),
    "Ollama, older": (500, {"error": "the input length exceeds the context length"}),
    "LM Studio": (
        400,
        {
            "error": "Trying to keep the first 9100 tokens when context the overflows. However, "
            "the model is loaded with context length of only 8192 tokens, which is not enough."
        },
    ),
    "Anthropic-like": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 209000 tokens > 200000 maximum",
            },
        },
    ),
    "Gemini-like": (
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count (1100000) exceeds the maximum number of tokens "
                "allowed (1048576).",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
}


@in_each_protocol
@pytest.mark.parametrize("wording", OVERFLOWS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_overflow_reaches_the_client_in_one_wording(
    client: Client, upstream: StubUpstream, topic: str, wording: str, stream: bool
) -> None:
    """CASES B5 (litellm#28063, ik_llama.cpp PR#2051)."""
    status, body = OVERFLOWS[wording]
    upstream.script(error(status, body))
    reply = client.chat([user(f"{topic} hi")], stream=stream)
    assert reply.status == 400
    if reply.protocol.name == "messages" and wording == "Anthropic-like":
        assert reply.json == body, "what Anthropic itself says is what its clients read"
        return
    detail = reply.json["error"]
    assert reply.code == "context_length_exceeded"
    assert "maximum context length" in detail["message"]
    assert detail["type"] == "invalid_request_error"


@in_each_protocol
def test_other_errors_are_not_taken_for_an_overflow(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES B5, the other side."""
    body = {"error": {"message": "max_tokens is too large: 90000", "type": "x", "code": "bad"}}
    upstream.script(error(400, body))
    reply = client.chat([user(f"{topic} hi")])
    assert (reply.status, reply.json) == (400, body)


@in_each_protocol
def test_usage_returned_to_the_client_is_the_upstreams(
    ask: Ask, gateway: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES B6 (headroom PR#2942): its own numbers, in its own words; the report has them too."""
    body = protocol.reply(completion({"role": "assistant", "content": "fine"}))
    usage = body["usage"] = USAGE[protocol.name]
    upstream.script(json_answer(body))
    reply, _ = ask([user(f"{topic} hi")])
    assert reply.json["usage"] == usage
    told = gateway.report(reply.turn_id)["usage"]
    assert (told["prompt_tokens"], told["completion_tokens"]) == (4_321, 99)
    assert gateway.report(reply.turn_id)["cached_tokens"] == 17


USAGE: dict[str, Json] = {
    "chat": usage(4_321, 99) | {"prompt_tokens_details": {"cached_tokens": 17}},
    "messages": {"input_tokens": 4_304, "output_tokens": 99, "cache_read_input_tokens": 17},
    "responses": {
        "input_tokens": 4_321,
        "input_tokens_details": {"cached_tokens": 17},
        "output_tokens": 99,
        "total_tokens": 4_420,
    },
}


@in_each_protocol
def test_a_history_ten_times_the_window_stays_answerable(
    ask: Ask, topic: str, gateway: GatewayProcess
) -> None:
    """CASES B6, B8 (headroom PR#2942, headroom#782)."""
    talk = small_talk(topic, turns=140, words=120)
    assert request_tokens({"messages": talk}) > 10 * 4_000
    reply, seen = ask([system("Be kind."), *talk, user("Short question?")])
    assert seen.messages[0] == system("Be kind.")
    assert texts(seen.messages[-1:]).endswith("Short question?")
    report = gateway.report(reply.turn_id)
    assert report["paged_out_count"] > 200
    assert report["prompt_tokens"] <= report["budget_tokens"] == 4_000


SCRIPTS = {
    "Chinese": "记忆图书馆把每一次对话都保存在磁盘上然后只发送需要的部分",
    "Japanese": "図書館はすべての会話を保存し、必要な部分だけを送ります。カタカナ",
    "Korean": "도서관은 모든 대화를 저장하고 필요한 부분만 보냅니다",
    "Arabic": "تحفظ المكتبة كل محادثة وترسل ما يلزم فقط",
    "emoji": "🧭🗺️👩‍👩‍👧‍👦🏳️‍🌈🀄",
    "code": "def f(x):\n\treturn {k: v for k, v in x.items() if not k.startswith('__')}\n",
    "base64": base64.b64encode(random.Random(3).randbytes(300)).decode(),
    "whitespace": " \t\n   \n\n\t\t    x",
}


@in_each_protocol
@pytest.mark.parametrize("kind", SCRIPTS)
def test_any_script_stays_within_the_budget_by_the_real_tokenizer(
    ask: Ask, topic: str, kind: str
) -> None:
    """CASES B9."""
    piece = SCRIPTS[kind]
    talk = [
        m for n in range(30) for m in (user(f"{topic}{n} {piece * 3}"), assistant(f"{n} {piece}"))
    ]
    for budget in (700, 1_300):
        reply, seen = ask([*talk, user(f"{piece}?")], budget=budget)
        assert request_tokens(seen.chat) == reply.prompt_tokens


@in_each_protocol
@pytest.mark.parametrize("run", ["x", "7", "=", "é", "漢"])
def test_one_unbroken_run_of_ten_thousand_characters_stays_within_the_budget(
    ask: Ask, topic: str, run: str
) -> None:
    """CASES B9."""
    talk = [user(f"{topic} {run * 10_000}"), assistant("ok"), *small_talk(topic, turns=3)]
    ask([*talk, user("and?")], budget=1_200)


@in_each_protocol
def test_system_text_with_the_newest_message_over_budget_is_refused_with_numbers(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES B10 (ollama#8531)."""
    rules = system(filler(topic, words=2_500))
    reply = client.chat([rules, user(filler(f"{topic} q", words=2_500))])
    assert reply.status == 400
    message = reply.json["error"]["message"]
    assert reply.code == "context_length_exceeded"
    assert "4000" in message.replace(",", "")
    assert "maximum context length" in message
    assert upstream.chats == []


@in_each_protocol
def test_system_text_is_never_dropped_to_make_room(ask: Ask, topic: str) -> None:
    """CASES B10 (ollama#8531)."""
    rules = system(f"{topic} rules: " + filler(topic, words=300))
    late = {"role": "developer", "content": f"{topic} a later rule"}
    talk = [rules, *small_talk(topic, turns=8), late, *small_talk(f"{topic}2", turns=8), user("?")]
    _, seen = ask(talk, budget=1_100)
    assert seen.messages[0]["content"] == rules["content"]
    assert late["content"] in texts(seen.messages[1:])


@in_each_protocol
def test_system_text_alone_over_the_budget_is_refused_with_numbers(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES B10 (ollama#8531): where there is no message that could be paged."""
    reply = client.chat([system("Be brief."), system(filler(topic, words=5_000))])
    assert (reply.status, reply.code) == (400, "context_length_exceeded")
    assert upstream.chats == []
