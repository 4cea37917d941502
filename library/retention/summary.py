"""A few sentences that stand for a thread while it is archived. Pure: extraction, no model.

A sentence says much of a text when its words come again and again in it; length is paid for by its
square root, so that a list of everything does not win. What is chosen is shown in the text's order.
"""

import re
from collections import Counter
from collections.abc import Iterable

from library.analysis import STOP_WORDS, words

SUMMARY_CHARS = 400
SENTENCE_CHARS = 200
"""A longer one is cut."""
READ_CHARS = 100_000
"""From the start of a thread; what it is about is said by then."""
_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")  # noqa: RUF001 - the marks that end a sentence


def summary_of(texts: Iterable[str], *, limit_chars: int = SUMMARY_CHARS) -> str:
    """Return at most `limit_chars` characters of sentences of the texts, in their order."""
    sentences = _sentences(texts)
    kept = {sentence: [w for w in words(sentence) if w not in STOP_WORDS] for sentence in sentences}
    counts = Counter(word for some in kept.values() for word in dict.fromkeys(some))
    scores = {
        sentence: sum(counts[word] for word in dict.fromkeys(some)) / max(1, len(some)) ** 0.5
        for sentence, some in kept.items()
    }
    best = sorted(kept, key=lambda one: (-scores[one], sentences[one]))
    chosen: list[str] = []
    left = limit_chars
    for sentence in best:
        if len(sentence) <= left:
            chosen.append(sentence)
            left -= len(sentence) + 1
    return " ".join(sorted(chosen, key=sentences.__getitem__))


def _sentences(texts: Iterable[str]) -> dict[str, int]:
    """Return each sentence once, with its place."""
    found: dict[str, int] = {}
    left = READ_CHARS
    for text in texts:
        for part in _END.split(text[:left]):
            sentence = " ".join(part.split())[:SENTENCE_CHARS]
            if sentence:
                found.setdefault(sentence, len(found))
        left -= len(text)
        if left <= 0:
            break
    return found
