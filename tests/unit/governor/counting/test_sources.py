import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from governor.counting.bound import bound_tokens
from governor.counting.cache import CountCache
from governor.counting.sources import PRIME_CONCURRENCY, Asked, Encoding, TokenizerFile
from tests.unit.governor.counting.texts import TEXTS, reference

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_an_encoding_counts_as_openais_own_tokenizer_does(name: str) -> None:
    """CASES B9: CJK, code, base64 and unbroken runs."""
    count, truth = Encoding(name).count, reference(name)
    assert {kind: count(text) for kind, text in TEXTS.items()} == {
        kind: len(truth.encode_ordinary(text)) for kind, text in TEXTS.items()
    }


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|im_start|>", "<|fim_prefix|>"])
def test_text_that_names_a_special_token_counts_as_ordinary_text(special: str) -> None:
    assert Encoding("o200k_base").count(special) > 1


def test_a_lone_surrogate_is_counted_and_does_not_raise(tmp_path: Path) -> None:
    assert Encoding("o200k_base").count("a\ud800b") >= 3
    assert TokenizerFile(small_tokenizer(tmp_path)).count("a \ud800 b") >= 3


def small_tokenizer(folder: Path) -> Path:
    """Return a file of the kind that sentence embedders ship: it cuts and pads to 4 tokens."""
    words = {"[PAD]": 0, "[UNK]": 1, "one": 2, "two": 3, "<s>": 4}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4, pad_token="[PAD]")
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_file_neither_cuts_nor_pads_nor_reads_special_tokens(tmp_path: Path) -> None:
    source = TokenizerFile(small_tokenizer(tmp_path))
    assert source.count("one") == 1
    assert source.count("one two " * 50) == 100
    assert source.count("<s>") == 3


class Upstream:
    """Counts words, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.most_at_once = 0
        self.is_down = False
        self._at_once = 0

    async def count(self, text: str) -> int | None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1
        self.asked.append(text)
        return None if self.is_down else len(text.split())


async def test_the_upstream_is_asked_once_for_each_text_and_a_few_at_a_time() -> None:
    upstream, cache = Upstream(), CountCache(1_000_000)
    asked = Asked("upstream:here", upstream.count, cache)
    texts = [f"text {number} of many" for number in range(50)]
    await asked.prime(texts + texts)
    await asked.prime(texts)
    assert sorted(upstream.asked) == sorted(texts)
    assert upstream.most_at_once <= PRIME_CONCURRENCY
    assert cache.get(cache.salt("upstream:here"), texts[7]) == 4
    assert not asked.degraded


async def test_an_upstream_that_cannot_count_leaves_the_bound_and_says_so() -> None:
    upstream, cache = Upstream(), CountCache(1_000_000)
    asked = Asked("upstream:here", upstream.count, cache)
    upstream.is_down = True
    await asked.prime(["some text"])
    assert asked.degraded == "tokenizer"
    assert asked.count("some text") == bound_tokens("some text")
    upstream.is_down = False
    await asked.prime(["some text"])
    assert not asked.degraded


async def test_an_upstream_that_never_answers_does_not_hold_a_request_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("governor.counting.sources.PRIME_TIMEOUT_S", 0.01)

    async def never(_text: str) -> int | None:
        await asyncio.Event().wait()
        return 1

    asked = Asked("upstream:here", never, CountCache(1_000_000))
    await asked.prime(["some text"])
    assert asked.degraded


OFFLINE = """
import sys

def refuse(event, args):
    if event.startswith("socket."):
        raise SystemExit(f"{event} {args}")

sys.addaudithook(refuse)
from governor.counting import Counters
counters = Counters()
for tokenizer in (None, "o200k", "cl100k", "qwen3", "llama3", "bound", sys.argv[1]):
    assert counters.counter_for("gpt-4o", tokenizer=tokenizer).count("hello there") > 0
"""


def test_counting_needs_no_network_ever(tmp_path: Path) -> None:
    """CASES B4 (litellm#19768, tiktoken#317): every socket call ends the process."""
    command = [sys.executable, "-c", OFFLINE, str(small_tokenizer(tmp_path))]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
