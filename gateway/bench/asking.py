"""Which questions each conversation is asked, and how they are spelled.

* Usually its own.
* *Unrelated*: those of another conversation, of another set where there are several. Nothing in the
  past answers them, so the desk should stay nearly empty.
* *Typos*: a share of the words with one slip of the finger each - two letters swapped, one left
  out, one doubled, or one of a neighbouring key. The same slips in every run.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.bench.conversations import Asked, Conversation

LEAST_LETTERS = 4
"""A slip in a shorter word makes another word of it."""
SEED = 20_251
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE = {
    key: row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    for row in _KEYS
    for at, key in enumerate(row)
}


class NothingUnrelated(Exception):
    """There is only one conversation, so every question is about it."""

    def __init__(self) -> None:
        super().__init__("unrelated questions need a second conversation or a second file")


def with_typos(question: Asked, share: float) -> Asked:
    """Return the question with a slip in that share of its words, at least one if there are any
    of `LEAST_LETTERS` letters."""
    words = question.text.split(" ")
    able = [at for at, word in enumerate(words) if _letters(word) >= LEAST_LETTERS]
    count = min(len(able), max(1, round(share * len(words)))) if share > 0 else 0
    # Seeded by the question, so that leaving out another one changes nothing here.
    chance = random.Random(f"{SEED} {question.id}")
    for at in chance.sample(able, count):
        words[at] = _slipped(words[at], chance)
    return replace(question, text=" ".join(words))


def _letters(word: str) -> int:
    return sum(char.isascii() and char.isalpha() for char in word)


def _slipped(word: str, chance: random.Random) -> str:
    places = [at for at, char in enumerate(word) if char.isascii() and char.isalpha()]
    while True:
        at, kind = chance.choice(places[1:]), chance.randrange(4)
        char = word[at]
        if kind == 0 and word[at - 1] != char:
            slipped = word[: at - 1] + char + word[at - 1] + word[at + 1 :]
        elif kind == 1:
            slipped = word[:at] + word[at + 1 :]
        elif kind == 2:
            slipped = word[:at] + char + word[at:]
        else:
            slipped = word[:at] + chance.choice(_BESIDE[char.lower()]) + word[at + 1 :]
        if slipped != word:
            return slipped


def unrelated(
    conversations: Mapping[str, Sequence[Conversation]],
) -> dict[tuple[str, str], tuple[Asked, ...]]:
    """Return by set and conversation the questions of another one, without labels.

    Raises:
        NothingUnrelated: there is no other one.

    """
    names = list(conversations)
    found = {}
    for number, name in enumerate(names):
        others = conversations[names[(number + 1) % len(names)]]
        shift = 1 if len(names) == 1 else 0
        for at, conversation in enumerate(conversations[name]):
            other = others[(at + shift) % len(others)]
            if other is conversation:
                raise NothingUnrelated
            found[name, conversation.id] = tuple(
                replace(one, evidence=()) for one in other.questions
            )
    return found
