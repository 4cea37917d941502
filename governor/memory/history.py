"""What can be done with a list of messages alone, without a library.

Nothing is stored or indexed, so everything is looked at each time: for a few thousand messages.
"""

import math
import re
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from governor.counting.bound import bound_tokens
from library.analysis import STOP_WORDS, fingerprint, question_words, words

SATURATION, LENGTH_SHARE = 1.2, 0.75
"""BM25's k1 and b, as usual."""
NEIGHBOURS = ((1, 0.3), (2, 0.15))
"""What a message gets of the scores so far beside it: large on human chat (DESIGN 6)."""
LEAST_SHARE = 0.2
"""Of the best score: what is below has nothing to do with the question."""
TOPIC_CHARS_MIN = 3
_ENDS = ".!?\n\u3002\uff01\uff1f"
"""Of sentences, the Chinese and Japanese marks among them."""
_SENTENCE = re.compile(f"[^{_ENDS}]+[{_ENDS}]*")
Message = Mapping[str, object]
"""With `role` and `content`, a text; others are passed over."""


@dataclass(frozen=True, slots=True)
class Related:
    """A message that bears on a question."""

    index: int
    """Its place in the history, from 0."""
    message: Message
    score: float
    """In [0, 1]; 1 is the best of the history."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A word that comes up again and again."""

    word: str
    messages: int
    """In how many messages."""
    first_index: int
    last_index: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """A history in numbers."""

    messages: int
    by_role: Mapping[str, int]
    characters: int
    tokens: int
    """No tokenizer takes more, unless `count` says how one counts."""
    distinct_words: int
    topics: tuple[Topic, ...]


def retrieve_related(
    history: Sequence[Message],
    query: str,
    *,
    limit: int = 4,
    budget_tokens: int | None = None,
    exclude_newest: int = 0,
    count: Callable[[str], int] = bound_tokens,
) -> list[Related]:
    """Return the messages that bear on `query`, in the order of the history.

    At most `limit`, and, with `budget_tokens`, as many as fit, best first. The last
    `exclude_newest` messages are left out: they are in the prompt already. Of equal texts the
    newest is taken. Cost linear in the history.
    """
    texts = _texts(history)
    scores = _scores([texts[index] for index in range(len(texts))], question_words(query))
    stop = len(history) - exclude_newest
    best = max(scores, default=0.0)
    order = sorted(
        (
            index
            for index in range(max(stop, 0))
            if texts[index] and scores[index] > best * LEAST_SHARE
        ),
        key=lambda index: (-scores[index], -index),
    )
    chosen: list[int] = []
    seen: set[int] = set()
    left = budget_tokens
    for index in order:
        mark = fingerprint(" ".join(words(texts[index])))
        cost = count(texts[index]) if left is not None else 0
        if len(chosen) == limit or mark in seen or (left is not None and cost > left):
            continue
        seen.add(mark)
        chosen.append(index)
        left = None if left is None else left - cost
    return [Related(index, history[index], scores[index] / best) for index in sorted(chosen)]


def topics(history: Sequence[Message], *, limit: int = 10, minimum: int = 2) -> list[Topic]:
    """Return the words that most messages speak of, in at least `minimum` of them; no stop words
    and no numbers."""
    places: dict[str, list[int]] = {}
    for index, text in enumerate(_texts(history)):
        for word in dict.fromkeys(words(text)):
            if _is_topic(word):
                places.setdefault(word, []).append(index)
    found = [
        Topic(word, len(at), at[0], at[-1]) for word, at in places.items() if len(at) >= minimum
    ]
    return sorted(found, key=lambda one: (-one.messages, one.first_index, one.word))[:limit]


def statistics(
    history: Sequence[Message], *, count: Callable[[str], int] = bound_tokens
) -> Statistics:
    """Return a history in numbers."""
    texts = _texts(history)
    return Statistics(
        messages=len(history),
        by_role=dict(Tally(str(one.get("role")) for one in history)),
        characters=sum(map(len, texts)),
        tokens=sum(map(count, filter(None, texts))),
        distinct_words=len({word for text in texts for word in words(text)}),
        topics=tuple(topics(history)),
    )


def summary(
    history: Sequence[Message], start: int = 0, stop: int | None = None, *, sentences: int = 5
) -> str:
    """Return the sentences that say most about what `history[start:stop]` is about, word for word,
    in their order, a line each with its speaker. Nothing is made up, and nothing is put together.
    """
    window = history[start:stop]
    texts = _texts(window)
    frequency = Tally(word for text in texts for word in set(words(text)) if _is_topic(word))
    said: list[tuple[float, int, str]] = []
    seen: set[int] = set()
    for one, text in zip(window, texts, strict=True):
        for sentence in _SENTENCE.findall(text):
            own = [word for word in words(sentence) if _is_topic(word)]
            mark = fingerprint(" ".join(own))
            if own and mark not in seen:
                seen.add(mark)
                weight = sum(frequency[word] for word in set(own)) / math.sqrt(len(own))
                said.append((weight, len(said), f"{one.get('role')}: {' '.join(sentence.split())}"))
    best = sorted(said, key=lambda row: (-row[0], row[1]))[:sentences]
    return "\n".join(line for _, _, line in sorted(best, key=lambda row: row[1]))


def _texts(history: Sequence[Message]) -> list[str]:
    contents = (one.get("content") for one in history)
    return [content if isinstance(content, str) else "" for content in contents]


def _is_topic(word: str) -> bool:
    return len(word) >= TOPIC_CHARS_MIN and word not in STOP_WORDS and not word.isdigit()


def _scores(texts: Sequence[str], asked: Sequence[str]) -> list[float]:
    """Return BM25 of each text, and of what stands beside it."""
    bags = [Tally(words(text)) for text in texts]
    mean = sum(map(Tally.total, bags)) / len(bags) if bags else 0.0
    weights = {word: _rarity(sum(word in bag for bag in bags), len(bags)) for word in asked}
    own = [sum(weights[word] * _share(bag, word, mean) for word in asked) for bag in bags]
    return [
        score
        + sum(
            share * own[other]
            for step, share in NEIGHBOURS
            for other in (index - step, index + step)
            if 0 <= other < len(own)
        )
        for index, score in enumerate(own)
    ]


def _rarity(holders: int, total: int) -> float:
    return math.log(1 + (total - holders + 0.5) / (holders + 0.5))


def _share(bag: "Tally[str]", word: str, mean: float) -> float:
    count = bag[word]
    if not count:
        return 0.0
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * bag.total() / mean
    return count * (SATURATION + 1) / (count + SATURATION * length)
