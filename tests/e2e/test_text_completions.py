"""Text completions that go on: governed like a chat, whatever the text is."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from gateway.wire.completions.cutting import pieces
from tests.e2e.answers import STREAM_HEADERS, Answer, Cut, Hang, Json, event, json_answer
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.legality import text_tokens
from tests.e2e.protocols import CHAT
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import MODEL, Client, filler

PATH = "/v1/completions"
FACT = "The vault code of the harbour office is 7731-Quebec."
QUESTION = "Keeper: What is the vault code of the harbour office?\nAnswer:"


def completed(*texts: str, finish: str = "stop") -> Json:
    choices = [
        {"index": at, "text": text, "logprobs": None, "finish_reason": finish}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
    return {**head, "choices": choices, "usage": usage}


def piece(text: str, finish: str | None = None) -> bytes:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
    return event({**head, "choices": [{"index": 0, "text": text, "finish_reason": finish}]})


def streamed(*steps: Any) -> Answer:
    return Answer((*steps, b"data: [DONE]\n\n"), headers=STREAM_HEADERS)


class Texts:
    """Asks for texts to be gone on with, and sees what the upstream gets."""

    def __init__(self, client: Client, upstream: StubUpstream) -> None:
        self.client = client
        self.upstream = upstream

    def post(
        self, prompt: Any, *, headers: Json | None = None, answer: Answer | None = None, **more: Any
    ) -> httpx.Response:
        self.upstream.script(answer or json_answer(completed(" and so on")), path=PATH)
        body = {"model": MODEL, "prompt": prompt, **more}
        return self.client.http.post("/completions", json=body, headers=headers or {})

    @property
    def sent(self) -> str:
        text = self.upstream.requests[-1].json["prompt"]
        assert isinstance(text, str)
        return text


@pytest.fixture
def texts(client: Client, upstream: StubUpstream) -> Iterator[Texts]:
    yield Texts(client, upstream)
    upstream.reset()


def chapters(name: str, count: int, *, words: int = 60) -> str:
    """Return paragraphs of which none says what another one does."""
    return "".join(f"{name} {at}: {filler(f'{name}{at}', words=words)}.\n\n" for at in range(count))


def told(name: str, *, count: int = 120) -> str:
    """Return a long text with the fact in its first tenth."""
    return f"{chapters(name, 30)}{FACT}\n\n{chapters(name + 'later', count)}"


def stored(gateway: GatewayProcess, turn_id: str) -> list[dict[str, Any]]:
    gateway.report(turn_id)
    return [row for row in gateway.events() if row["turn_id"] == turn_id]


def test_a_text_that_fits_goes_out_byte_for_byte_and_is_recorded_with_its_reply(
    gateway: GatewayProcess, client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES A2 (litellm#6505), E5; DESIGN 1.2, 1.5."""
    upstream.script(json_answer(completed(" and it was so.")), path=PATH)
    prompt = f"{topic}: a short text\n\nthat goes on"
    body = json.dumps({"prompt": prompt, "model": MODEL, "n": 1, "vendor": 1.50}, indent=1).encode()
    answer = client.http.post("/completions", content=body)
    assert upstream.requests[-1].body == body
    assert answer.json() == completed(" and it was so.")
    count = text_tokens(prompt)
    assert count <= int(answer.headers["x-library-prompt-tokens"]) <= count + 2
    said = stored(gateway, answer.headers["x-library-turn"])
    assert [row["text"] for row in said] == [prompt, " and it was so."]
    assert [row["role"] for row in said] == ["user", "assistant"]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_text_past_the_budget_recalls_an_early_fact_for_the_openai_client(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str, is_streamed: bool
) -> None:
    """DESIGN 1.1, 4.6; CASES B8 (headroom#782), C1."""
    text = told(topic)
    head = text[:600]

    def answered(seen: Seen) -> Answer:
        words = FACT if FACT in seen.json["prompt"] else "I do not know."
        if not is_streamed:
            return json_answer(completed(words))
        return streamed(piece(words[:9]), piece(words[9:]), piece("", "stop"))

    with openai.OpenAI(base_url=gateway.url, api_key="sk", max_retries=0) as sdk:
        for ending in ("", chapters(topic + "more", 4) + QUESTION):
            upstream.script(answered, path=PATH)
            text += ending
            if is_streamed:
                with sdk.completions.create(model=MODEL, prompt=text, stream=True) as chunks:
                    said = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
            else:
                said = sdk.completions.create(model=MODEL, prompt=text).choices[0].text
            gateway.wait_indexed()
            text += said if ending else ""
    assert said == FACT
    prompt = upstream.requests[-1].json["prompt"]
    assert text_tokens(prompt) <= 4_000
    assert prompt.startswith(head)
    assert prompt.endswith(QUESTION)
    _, mark, rest = prompt.partition("</reading_desk>\n\n")
    assert mark
    assert text.removesuffix(said).endswith(rest)
    assert len(rest) > 3_000


@pytest.mark.parametrize("budget", [700, 1_500, 4_000])
@pytest.mark.parametrize("kind", ["prose", "Chinese", "code", "base64", "one run", "no lines"])
def test_whatever_the_text_is_what_goes_out_is_within_the_budget(
    texts: Texts, kind: str, budget: int, topic: str
) -> None:
    """DESIGN 1.1; CASES B9."""
    text = {
        "prose": chapters(topic, 200),
        "Chinese": f"{topic}。图书馆里有很多书。" * 900,
        "code": "".join(
            f"    if value[{at}] != other[{at}]:\n        go({at})\n" for at in range(900)
        ),
        "base64": "".join(f"{at:x}QmFzZTY0" for at in range(6_000)),
        "one run": "a" * 40_000,
        "no lines": " ".join(f"word{at}" for at in range(9_000)),
    }[kind]
    headers = {"x-library-budget-tokens": str(budget)}
    answer = texts.post(f"{topic} {text}", headers=headers)
    if answer.status_code == 400:
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert budget < 4_000
        assert texts.upstream.requests == []
        return
    assert text_tokens(texts.sent) <= int(answer.headers["x-library-prompt-tokens"]) <= budget
    assert texts.sent.endswith(text[-100:])


def test_where_head_and_last_piece_alone_are_too_much_it_is_refused_with_the_numbers(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """CASES B10 (ollama#8531), A5."""
    text = chapters(topic, 40)
    answer = texts.post(text, headers={"x-library-budget-tokens": "200"})
    assert answer.status_code == 400
    assert CHAT.is_refusal(answer.json())
    refusal = answer.json()["error"]
    assert (refusal["code"], refusal["param"]) == ("context_length_exceeded", "prompt")
    assert "maximum context length of 200 tokens" in refusal["message"]
    assert texts.upstream.requests == []
    kept = stored(gateway, answer.headers["x-library-turn"])
    assert "".join(row["text"] for row in kept) == text[-len("".join(r["text"] for r in kept)) :]


def test_a_text_that_grows_is_one_thread_and_no_piece_of_it_is_stored_twice(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 1.6; CASES E3 (better-ccflare PR#465), H4."""
    text, threads = chapters(topic, 20), set()
    for step in range(5):
        text += f" and so on {step}.\n\n" + chapters(f"{topic}{step}", 3)
        answers = [texts.post(text) for _ in range(2)]
        threads |= {answer.headers["x-library-session"] for answer in answers}
    assert len(threads) == 1
    rows = [row for row in gateway.events() if row["thread_id"] in threads]
    of_prompt = [row["text"] for row in rows if row["role"] == "user"]
    assert len({*of_prompt}) == len(of_prompt)
    assert {*pieces(text)[1:]} <= {*of_prompt}


def test_each_of_several_choices_is_recorded(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    answer = texts.post(topic, n=2, best_of=3, answer=json_answer(completed(" one", " two")))
    said = stored(gateway, answer.headers["x-library-turn"])
    assert [row["text"] for row in said if row["role"] == "assistant"] == [" one", " two"]


def test_two_texts_with_one_head_are_two_threads_and_another_head_splits_none(
    texts: Texts, topic: str
) -> None:
    """CASES H1 (headroom#1808), H2 (billion-context#61)."""
    head, one, other = (chapters(f"{topic}{name}", 20) for name in ("head", "one", "other"))
    session = [
        texts.post(head[:1_000] + rest).headers["x-library-session"] for rest in (one, other)
    ]
    assert session[0] != session[1]
    assert texts.post(head[:1_000] + one + " and more").headers["x-library-session"] == session[0]
    assert (
        texts.post("It is Monday.\n\n" + head[:1_000] + one).headers["x-library-session"]
        == session[0]
    )


def test_a_text_whose_client_dropped_its_oldest_lines_is_known_and_recalled_from(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 4.2: a client that cut its own history is matched by overlap."""
    text = told(topic)
    first = texts.post(text)
    gateway.wait_indexed()
    cut = text[:1_000] + text[text.index(f"{topic}later 80") :] + QUESTION
    answer = texts.post(cut)
    assert answer.headers["x-library-session"] == first.headers["x-library-session"]
    assert FACT not in cut
    assert FACT in texts.sent


@pytest.mark.parametrize("at", [0, 1, 2], ids=["head", "first piece", "second piece"])
def test_an_edit_near_the_start_of_a_text_makes_a_branch_and_the_dead_words_are_not_recalled(
    texts: Texts, gateway: GatewayProcess, topic: str, at: int
) -> None:
    """CASES H5: what stands behind the edited piece is as it was, and nothing was dropped."""
    text = chapters(topic, 80)
    begin = text.index(" ", sum(len(each) for each in pieces(text)[:at]) + 300)
    before, edited = (
        f"{text[:begin]} The vault code of the harbour office is {code}. {text[begin:]}{QUESTION}"
        for code in ("7731-Quebec", "4410-Quebec")
    )
    first = texts.post(before)
    second = texts.post(edited)
    gateway.wait_indexed()
    third = texts.post(edited)
    sessions = {answer.headers["x-library-session"] for answer in (first, second, third)}
    assert len(sessions) == 1
    assert "7731-Quebec" not in texts.sent
    report = gateway.report(second.headers["x-library-turn"])
    assert (report["has_forked"], report["matched_by"]) == (at > 0, "content")
    kept = stored(gateway, second.headers["x-library-turn"])
    assert ("4410-Quebec" in "".join(row["text"] for row in kept)) == (at > 0)


def test_a_session_that_is_named_holds_its_text_whatever_becomes_of_it(
    texts: Texts, topic: str
) -> None:
    """DESIGN 4.2: nothing is ever put in front of a text, for it is always there whole."""
    headers = {"x-library-session": topic}
    for text in (topic, f"{topic} goes on", "quite another beginning", chapters(topic, 9)):
        answer = texts.post(text, headers=headers)
        assert texts.sent == text
        assert answer.headers["x-library-identified-by"] == "x-library-session"


def test_headers_of_one_request_hold_for_a_text_too(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    text = told(topic)
    before = len(gateway.events())
    texts.post(text, headers={"x-library-record": "off"})
    assert text_tokens(texts.sent) <= 4_000
    assert len(gateway.events()) == before
    texts.post(text, headers={"x-library-bypass": "1"})
    assert texts.sent == text
    gateway.wait_indexed()
    texts.post(text + QUESTION, headers={"x-library-recall": "off"})
    assert "reading_desk" not in texts.sent
    assert text.startswith(texts.sent[:600])


def test_the_prompts_of_a_growing_text_share_their_beginning(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """CASES G1 (headroom#3379), G2 (bifrost#2347)."""
    text = told(topic)
    texts.post(text)
    gateway.wait_indexed()
    shares = []
    for step in range(8):
        text += chapters(f"{topic}s{step}", 1)
        answer = texts.post(text)
        shares.append(gateway.report(answer.headers["x-library-turn"])["prefix_share"])
        again = texts.sent
        texts.post(text)
        assert texts.sent == again
    assert sum(shares) / len(shares) > 0.5


def test_a_governed_text_that_comes_back_is_not_recorded_as_somebodys_words(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 1.7; CASES A8 (Memori PR#440), A10 (hermes-agent PR#18650), J1."""
    texts.post(told(topic))
    gateway.wait_indexed()
    texts.post(told(topic) + QUESTION)
    governed = texts.sent
    assert "<reading_desk" in governed
    answer = texts.post(governed)
    assert texts.sent == governed
    kept = stored(gateway, answer.headers["x-library-turn"])
    assert not any("reading_desk" in row["text"] + str(row["body"]) for row in kept)


def test_an_upstreams_own_error_comes_through_and_the_turn_is_failed(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """CASES D9 (any-llm PR#847)."""
    refusal = json_answer({"error": {"message": "no more", "type": "x", "code": "y"}}, status=403)
    answer = texts.post(topic, answer=refusal)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "y")
    assert gateway.report(answer.headers["x-library-turn"])["state"] == "failed"


def test_an_upstreams_own_overflow_says_so_of_the_prompt(texts: Texts, topic: str) -> None:
    """CASES B5 (litellm#28063)."""
    message = "the request exceeds the available context size, try increasing it"
    refusal = {"error": {"code": 400, "message": message, "type": "exceed_context_size_error"}}
    answer = texts.post(topic, answer=json_answer(refusal, status=400))
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert answer.json()["error"]["param"] == "prompt"
    assert "maximum context length" in answer.json()["error"]["message"]


def test_a_stream_that_breaks_says_so_and_keeps_what_came(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """CASES D7 (litellm#14457), D9."""
    broken = Answer((piece("as far as"), Cut()), headers=STREAM_HEADERS)
    answer = texts.post(topic, stream=True, answer=broken)
    assert answer.content.startswith(piece("as far as"))
    assert b'"error"' in answer.content
    assert b"[DONE]" not in answer.content
    said = stored(gateway, answer.headers["x-library-turn"])[-1]
    assert (said["text"], said["is_partial"]) == ("as far as", 1)


def test_a_client_that_goes_stops_the_upstream(
    texts: Texts, gateway: GatewayProcess, topic: str
) -> None:
    """CASES D6 (litellm#30244)."""
    hanging = Answer((piece("so far"), Hang()), headers=STREAM_HEADERS)
    texts.upstream.script(hanging, path=PATH)
    body = {"model": MODEL, "prompt": topic, "stream": True}
    with texts.client.http.stream("POST", "/completions", json=body) as response:
        assert next(response.iter_raw())
        turn_id = response.headers["x-library-turn"]
        left_at = time.monotonic()
    seen = texts.upstream.requests[-1]
    assert seen.closed.wait(5)
    assert seen.closed_at - left_at < 1
    assert gateway.report(turn_id)["state"] == "abandoned"


def test_the_offline_upstream_goes_on_with_a_text(start_gateway: StartGateway) -> None:
    gateway = start_gateway(url="offline", budget_tokens=1_500)
    text = told("offline")
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0) as sdk:
        sdk.completions.create(model="offline", prompt=text)
        gateway.wait_indexed()
        whole = sdk.completions.create(model="offline", prompt=text + QUESTION)
        assert FACT in whole.choices[0].text
        assert whole.usage is not None
        assert whole.usage.prompt_tokens <= 1_500
        with sdk.completions.create(model="offline", prompt=text + QUESTION, stream=True) as chunks:
            assert FACT in "".join(chunk.choices[0].text for chunk in chunks)


def test_a_litellm_provider_has_no_such_api_and_says_so(start_gateway: StartGateway) -> None:
    gateway = start_gateway(url="litellm:anthropic/claude-sonnet-4-5")
    body = {"model": "claude-sonnet-4-5", "prompt": "a text"}
    answer = httpx.post(f"{gateway.url}/completions", json=body, timeout=30)
    assert answer.status_code == 404
    assert "chat completions only" in answer.json()["error"]["message"]
