"""A real small model behind llama.cpp's own OpenAI server.

What a stub cannot show: the counts against the server's own tokenizer and template, a real prefix
cache, a real refusal of what is too long. The model is far too small to be asked for an answer.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.e2e.answers import Json
from tests.e2e.conftest import StartGateway
from tests.e2e.small_model import MODEL, REASON, is_installed, small_model
from tests.e2e.talk import filler, user

BUDGET_TOKENS = 450
TURNS = 6
REPLY_TOKENS = 8

pytestmark = pytest.mark.skipif(not is_installed(), reason=REASON)


@pytest.fixture(scope="module")
def model_url() -> Iterator[str]:
    with small_model() as origin:
        yield f"{origin}/v1"


def test_a_real_model_is_never_sent_more_than_the_budget(
    start_gateway: StartGateway, model_url: str, tmp_path: Path
) -> None:
    """Issue 2, tests with real parts: counted by the model's own tokenizer and template."""
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        '[models."Smol*"]\ntokenizer = "upstream"\nwindow_tokens = 2048\n', encoding="utf-8"
    )
    gateway = start_gateway(url=model_url, config=config, budget_tokens=BUDGET_TOKENS)
    talk: list[Json] = []
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0, timeout=120) as sdk:
        for turn in range(TURNS):
            talk.append(user(f"Turn {turn}. {filler(turn, words=80)}"))
            raw = sdk.chat.completions.with_raw_response.create(
                model=MODEL,
                messages=talk,  # type: ignore[arg-type]
                max_tokens=REPLY_TOKENS,
                temperature=0,
            )
            done = raw.parse()
            assert done.usage is not None
            used_tokens = done.usage.prompt_tokens
            counted = int(raw.headers["x-library-prompt-tokens"])
            assert used_tokens <= counted <= BUDGET_TOKENS
            talk.append({"role": "assistant", "content": done.choices[0].message.content})
    report = gateway.report(raw.headers["x-library-turn"])
    assert report["is_paged"]
    assert report["usage"]["prompt_tokens"] == used_tokens


def test_a_real_model_goes_on_with_a_text_within_the_budget(
    start_gateway: StartGateway, model_url: str, tmp_path: Path
) -> None:
    """Issue 5: llama.cpp's own `/v1/completions`, whose tokenizer joins the pieces as it likes."""
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        '[models."Smol*"]\ntokenizer = "upstream"\nwindow_tokens = 2048\n', encoding="utf-8"
    )
    gateway = start_gateway(url=model_url, config=config, budget_tokens=900)
    text = ""
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0, timeout=120) as sdk:
        for turn in range(3):
            text += f"Part {turn}. {filler(turn, words=300)}.\n\n"
            raw = sdk.completions.with_raw_response.create(
                model=MODEL, prompt=text, max_tokens=REPLY_TOKENS, temperature=0
            )
            done = raw.parse()
            assert done.usage is not None
            counted = int(raw.headers["x-library-prompt-tokens"])
            used_tokens = done.usage.prompt_tokens
            assert used_tokens <= counted <= 900
            text += done.choices[0].text
    report = gateway.report(raw.headers["x-library-turn"])
    assert report["is_paged"]
    assert report["usage"]["prompt_tokens"] == used_tokens


def test_what_a_real_server_refuses_is_told_in_one_wording(
    start_gateway: StartGateway, model_url: str
) -> None:
    """CASES B5: a budget larger than the real window."""
    body = {"model": MODEL, "messages": [user("word " * 3_000)], "max_tokens": 1}
    direct = httpx.post(f"{model_url}/chat/completions", json=body, timeout=60)
    assert direct.status_code == 400
    gateway = start_gateway(url=model_url, budget_tokens=100_000)
    governed = httpx.post(f"{gateway.url}/chat/completions", json=body, timeout=60)
    assert governed.status_code == 400
    detail = governed.json()["error"]
    assert detail["code"] == "context_length_exceeded"
    assert "maximum context length" in detail["message"]


def test_a_real_stream_comes_through_with_its_usage(
    start_gateway: StartGateway, model_url: str
) -> None:
    gateway = start_gateway(url=model_url)
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=0, timeout=120) as sdk:
        chunks = list(
            sdk.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "Say hello."}],
                max_tokens=REPLY_TOKENS,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text in [row["text"] for row in gateway.events()]
