"""An upper bound on the tokens of a text, for tokenizers that we do not have.

It must hold for every common kind of tokenizer, so each rule is the worst of its kind:

* a digit is a token (Llama 2, Qwen), so is a punctuation mark (BERT), and any white space but the
  one space in front of a word (GPT-2 takes one token a space);
* a character outside ASCII costs its UTF-8 bytes: SentencePiece and byte-level BPE fall back to
  one token a byte for what they do not know. Where NFC makes a text longer (Qwen normalises), the
  longer form is charged;
* a word (a run of ASCII letters) costs 1 or 2 where it stands in `words.txt`, whose words were
  found to cost no more than that, behind a space, in every tokenizer at hand; one more without a
  space in front. Any other word costs by its length, at the rate of random letters.

Never more than one token a byte, which is the law for all of them.

The rejected alternatives: characters / 4 is no bound for code, digits, base64 or Chinese; a
multiple of o200k's count is none for Indonesian or Latin (2.1 times), for spaces or for CJK.

Source: `words.txt` and the rates were measured on cl100k, o200k, p50k, r50k, Qwen 3, Llama 3,
Llama 2 and Mistral v1 (SentencePiece with byte fallback), DeepSeek, Claude 2 and BERT's WordPiece,
over 60 texts (2026-11-30): prose, 15 other languages, code, logs, base64, random letters, runs.
None took more. The bound is 1.45 times o200k's count for English prose, 2.3 for answers full of
markup, 2.7 for source code, 5 for Chinese; calibration.py wins part of that back.
"""

from functools import cache
from pathlib import Path
from string import ascii_letters
from unicodedata import is_normalized, normalize

LOWER_RATE = 0.65
"""Tokens a letter of unknown lower-case words. Random letters take 0.60 at the most (GPT-2)."""
MIXED_RATE = 0.82
"""The same with capitals behind the first letter. Random ones take 0.75 (Llama 2)."""
WORD_TOKENS = 0.5
"""For the rounding up of a short unknown word."""
START_TOKENS = 3
"""SentencePiece's space before the first word, and what a text's two ends may cost."""

_ASCII_LETTERS = frozenset(ascii_letters.encode())
_WORDS = bytes(byte if byte in _ASCII_LETTERS else ord(" ") for byte in range(256))
"""Translates a text to its words."""
_SHAPES = bytes(
    ord("a") if byte in _ASCII_LETTERS else ord(" ") if byte == ord(" ") else ord(".")
    for byte in range(256)
)
"""Translates a text to letters, spaces and the rest, to be counted at the speed of memory."""


def bound_tokens(text: str) -> int:
    """Return a number of tokens that no common tokenizer exceeds on `text`."""
    if not text.isascii() and not is_normalized("NFC", text):
        text = max(text, normalize("NFC", text), key=_size_bytes)
    data = text.encode("utf-8", "surrogatepass")
    in_words = sum(map(_costs().__getitem__, data.translate(_WORDS).split()))
    shape = data.translate(_SHAPES)
    without_space = shape.count(b".aa") + shape.startswith(b"aa")
    beside_words = len(data) - shape.count(b"a") - shape.count(b" a")
    return min(int(in_words) + without_space + beside_words, len(data)) + START_TOKENS


def _size_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class _Costs(dict[bytes, float]):
    """Tokens of a word behind a space; unknown words are not remembered."""

    def __missing__(self, word: bytes) -> float:
        size = len(word)
        rate = LOWER_RATE if word[1:].islower() else MIXED_RATE
        return min(size, rate * size + WORD_TOKENS)


@cache
def _costs() -> _Costs:
    """Return the prices of listed words; read once, 1 MB and 4 ms."""
    ones, twos = Path(__file__).with_name("words.txt").read_bytes().splitlines()
    costs = _Costs()
    for word in twos.split():
        costs[word], costs[word.capitalize()] = 2, 3
    costs.update(dict.fromkeys(ones.split(), 1))
    return costs


def load() -> None:
    """Read the word list now, so that the first count does not wait for the disk."""
    _costs()
