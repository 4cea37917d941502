"""Somebody else's memory in an environment of its own: asked there, charged here.

The peers themselves are not installed for tests; stand-ins with the same calls show that questions,
costs and vectors arrive and that the order comes back.
"""

import asyncio
import sys
import venv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.bench.conversations import Asked, Conversation, DataSet, Said
from gateway.bench.peers import Peer, PeerFailed, PeerMissing, PeerNeedsEmbedder, version
from gateway.bench.remembering import RememberingEmbedder
from gateway.bench.run import Options, Steps, run
from gateway.bench.scoring import Laid
from governor.counting import Counters
from library.embedding.hashing import HashingEmbedder

AT = datetime(2025, 1, 1, tzinfo=UTC)
TEXTS = ("The key lies under the pot.", "So it does.", "Heron ships in May.", "", "Good.")
TALK = Conversation(
    "talk",
    tuple(
        Said(f"m{at}", "a", AT, ("user", "assistant")[at % 2], None, text)
        for at, text in enumerate(TEXTS)
    ),
    (Asked("talk/q", "all", "Where is the key?", ("m0",)),),
)
DATA = DataSet("hand", "1" * 64, (TALK,), 0, 0)
COUNTERS = Counters()
ACOLYTE = """
print("what a peer prints is no answer")

def retrieve_related_messages(history, query_text, **limits):
    words = set(query_text.lower().strip("?").split())
    left, kept = limits["target_token_count"], []
    for one in history:
        if words & set(one["content"].lower().split()) and one["content"]:
            left -= _estimate_tokens(one["content"])
            if left >= 0:
                kept.append({**one, "content": "[RELATED_MEMORY] " + one["content"]})
    return kept
"""
RALC = """
from types import SimpleNamespace

class ContextManager:
    def __init__(self, embedder, token_counter):
        self.embedder, self.counter, self.texts = embedder, token_counter, []

    def add_message(self, role, content):
        self.texts.append(content)
        return f"n{len(self.texts) - 1}"

    def retrieve(self, query, token_budget):
        asked, *rows = self.embedder.embed([query, *self.texts])
        likeness = [sum(a * b for a, b in zip(asked, row)) for row in rows]
        best = max(range(len(rows)), key=likeness.__getitem__)
        if self.counter.count(self.texts[best]) > token_budget:
            return SimpleNamespace(nodes=[])
        return SimpleNamespace(nodes=[SimpleNamespace(id=f"n{best}"), SimpleNamespace(id="other")])
"""
NUMPY = "float32 = None\n\ndef array(rows, kind):\n    return rows\n"


def environment(folder: Path, modules: dict[str, str]) -> Path:
    """Make a Python environment with modules that stand in for a peer's."""
    venv.create(folder, symlinks=sys.platform != "win32")
    (packages,) = folder.rglob("site-packages")
    for name, source in modules.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return folder


def laid(cache: Path, name: str, *, embedder: RememberingEmbedder | None = None) -> dict[int, Laid]:
    peer = Peer(name, folder=cache / "peers" / name, embedder=embedder, counters=COUNTERS)
    options = Options(cache=cache, budgets=(20, 400))
    found = asyncio.run(
        run(
            [DATA],
            [peer],
            options=options,
            embedder=embedder,
            counters=COUNTERS,
            steps=Steps(),
        )
    )
    (finished,) = found[name]["hand"]
    return finished.answers[0].laid


def test_what_a_peer_chooses_is_laid_out_and_counted_here(tmp_path: Path) -> None:
    environment(tmp_path / "peers" / "acolyterag", {"acolyterag/retrieval.py": ACOLYTE})
    found = laid(tmp_path, "acolyterag")
    assert found[400].whole == ("m0",)
    assert 0 < found[400].tokens <= 400
    assert found[20].record_count == 0


def test_a_peer_that_compares_vectors_gets_ours(tmp_path: Path) -> None:
    environment(tmp_path / "peers" / "ralc", {"ralc.py": RALC, "numpy.py": NUMPY})
    embedder = RememberingEmbedder(HashingEmbedder(), tmp_path / "rows")
    assert laid(tmp_path, "ralc", embedder=embedder)[400].whole == ("m0",)
    with pytest.raises(PeerNeedsEmbedder, match="name an --embedder"):
        laid(tmp_path, "ralc")


def test_a_peer_is_named_with_its_version(tmp_path: Path) -> None:
    folder = environment(tmp_path, {"mem0ai-2.2.1.dist-info/METADATA": "", "mem0aix.py": ""})
    assert version("mem0", folder) == "mem0ai-2.2.1"
    assert version("ralc", folder) == "ralc"


def test_a_peer_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(PeerMissing) as raised:
        laid(tmp_path, "mem0")
    text = str(raised.value)
    assert f"-m venv {tmp_path / 'peers' / 'mem0'}" in text
    assert "pip install 'mem0ai'" in text


def test_a_peer_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    environment(tmp_path / "peers" / "langchain", {})
    with pytest.raises(PeerFailed, match=r"langchain failed: ModuleNotFoundError: .*chain_core"):
        laid(tmp_path, "langchain")
