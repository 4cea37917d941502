"""Prompts of which nothing may be left out: held to the budget and passed through."""

import gzip
import json
from typing import Any

import pytest

from tests.e2e.answers import Answer, Gate, Json, json_answer
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.legality import text_tokens
from tests.e2e.protocols import CHAT
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, filler

PATH = "/v1/completions"
SAID: Json = {"id": "cmpl-1", "object": "text_completion", "choices": [{"text": "x", "index": 0}]}


def tokens(text: str) -> list[int]:
    return [1] * text_tokens(text)


@pytest.mark.parametrize(
    ("prompt", "more"),
    [
        ("short text", {"suffix": " and the end"}),
        ("short text", {"echo": True}),
        ("<|fim_prefix|>short text<|fim_suffix|>", {}),
        (["short text", "short text and the end"], {}),
        (tokens("short text"), {}),
        ([tokens("short text"), [1]], {}),
    ],
    ids=["with a suffix", "echoed", "marked", "texts", "tokens", "lists of tokens"],
)
def test_a_prompt_that_fits_goes_out_as_it_came_and_its_count_is_told(
    client: Client, upstream: StubUpstream, gateway: GatewayProcess, prompt: Any, more: Json
) -> None:
    upstream.script(json_answer(SAID), path=PATH)
    before = len(gateway.events())
    body = json.dumps({"model": MODEL, "prompt": prompt, **more}, indent=1).encode()
    answer = client.http.post("/completions", content=body)
    assert answer.json() == SAID
    assert upstream.requests[-1].body == body
    counted = {
        text_tokens(one)
        for one in (
            "short text",
            "short text and the end",
            "<|fim_prefix|>short text<|fim_suffix|>",
        )
    }
    assert int(answer.headers["x-library-prompt-tokens"]) in counted
    assert answer.headers["x-library-budget-tokens"] == "4000"
    assert len(gateway.events()) == before, "it is no conversation"


@pytest.mark.parametrize("form", ["one of several", "tokens", "compressed", "streamed"])
def test_a_prompt_over_the_budget_is_refused_with_numbers(
    client: Client, upstream: StubUpstream, form: str
) -> None:
    """DESIGN 1.1; CASES B5, B10."""
    long = filler(form, words=5_000)
    prompt: Any = {"one of several": ["short", long], "tokens": [7] * 4_001}.get(form, long)
    fields = {"model": MODEL, "prompt": prompt, "suffix": ".", "stream": form == "streamed"}
    body = json.dumps(fields).encode()
    headers = {"content-type": "application/json"}
    if form == "compressed":
        body, headers = gzip.compress(body), headers | {"content-encoding": "gzip"}
    answer = client.http.post("/completions", content=body, headers=headers)
    assert answer.status_code == 400
    assert CHAT.is_refusal(answer.json())
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert "maximum context length of 4000 tokens" in answer.json()["error"]["message"]
    assert upstream.requests == []


@pytest.mark.parametrize("form", ["no model", "object", "behind many", "not JSON", "no object"])
def test_a_prompt_in_a_form_of_some_servers_is_held_to_the_budget_too(
    client: Client, upstream: StubUpstream, form: str
) -> None:
    """DESIGN 1.1; llama.cpp takes all of these but the last, and needs no model's name."""
    long = filler(form, words=5_000)
    body = {
        "no model": {"prompt": long, "suffix": "."},
        "object": {"model": MODEL, "prompt": {"prompt_string": long}},
        "behind many": {"model": MODEL, "prompt": [["x"]] * 2_048 + [long]},
        "not JSON": {"model": MODEL, "prompt": long, "temperature": float("nan")},
        "no object": long,
    }[form]
    answer = client.http.post("/completions", content=json.dumps(body))
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert upstream.requests == []


def test_a_request_may_have_a_budget_of_its_own_or_none(
    client: Client, upstream: StubUpstream
) -> None:
    body = {"model": MODEL, "prompt": filler("own", words=300), "suffix": "."}
    small = {"x-library-budget-tokens": "100"}
    assert client.http.post("/completions", json=body, headers=small).status_code == 400
    upstream.script(json_answer(SAID), path=PATH)
    bypass = small | {"x-library-bypass": "1"}
    assert client.http.post("/completions", json=body, headers=bypass).json() == SAID


@pytest.mark.parametrize("body", [b"{broken", b"[1]", b'{"prompt": 7}', b""])
def test_what_is_no_completion_is_the_upstreams_to_refuse(
    client: Client, upstream: StubUpstream, body: bytes
) -> None:
    upstream.script(json_answer({"error": {"message": "no"}}, status=422), path=PATH)
    assert client.http.post("/completions", content=body).status_code == 422
    assert upstream.requests[-1].body == body


def test_its_stream_is_relayed_as_it_comes(client: Client, upstream: StubUpstream) -> None:
    """CASES D1 (litellm#26102)."""
    gate = Gate()
    steps = (b'data: {"choices": [{"text": "a"}]}\n\n', gate, b"data: [DONE]\n\n")
    headers = (("content-type", "text/event-stream"),)
    upstream.script(Answer(steps, headers=headers), path=PATH)
    body = {"model": MODEL, "prompt": "x", "suffix": "y", "stream": True}
    with client.http.stream("POST", "/completions", json=body) as response:
        pieces = response.iter_raw()
        assert next(pieces) == steps[0]
        gate.open()
        assert b"".join(pieces) == steps[2]
