"""What the growth bench stores: passages of real text, repeated with changed words.

To embed a million passages takes a day, so only the distinct ones are embedded for real. A copy
with changed words gets its original's vector turned a little in a random direction; searching pays
the same for it, and what it finds is not judged here.
"""

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from library.embedding.protocol import ROW_MAX
from library.passages import passages_of

CHANGED_SHARE = 0.15
"""Of the words of a copy, each put in place of another one of the data, as often as it occurs."""
TURN = 0.5
"""Length of what is added to a unit row: cosine 0.89 to the original."""
LEAST_WORDS = 5
SEED = 1


class Material:
    """Numbered passages; number n is always the same text."""

    def __init__(self, data: Sequence[Path], *, most: int) -> None:
        """Read at most `most` distinct passages, spread over all conversations of the files."""
        texts: list[str] = []
        questions: list[str] = []
        for path in data:
            for line in path.read_text(encoding="utf-8").splitlines():
                conversation = json.loads(line)
                for message in conversation["messages"]:
                    texts += _cut(message["content"])
                questions += [one["question"] for one in conversation["questions"]]
        chance = random.Random(SEED)
        unique = list(dict.fromkeys(texts))
        chance.shuffle(unique)
        chance.shuffle(questions)
        self._questions = questions
        self.originals = unique[:most]
        self._words = [word for text in self.originals for word in text.split(" ")]

    def text(self, number: int) -> tuple[str, int]:
        """Return a passage and the number of its original."""
        copy, at = divmod(number, len(self.originals))
        words = self.originals[at].split(" ")
        if copy:
            chance = random.Random(number)
            for _ in range(max(1, int(CHANGED_SHARE * len(words)))):
                words[int(chance.random() * len(words))] = self._words[
                    int(chance.random() * len(self._words))
                ]
        return " ".join(words)[: len(self.originals[at])], at

    def question(self, number: int) -> str:
        """Return a question that no other number has: what was asked before is kept somewhere."""
        again, at = divmod(number, len(self._questions))
        more = [random.Random(number).choice(self._words)] if again else []
        return " ".join([self._questions[at], *more])


def _cut(text: str) -> Iterator[str]:
    for passage in passages_of(0, text):
        own = text[passage.start : passage.stop].strip()
        if own.count(" ") >= LEAST_WORDS:
            yield own


class TurnedEmbedder:
    """Stands for the real embedder, by its identity, where copies are stored."""

    def __init__(self, identity: str, rows: NDArray[np.int8]) -> None:
        self.identity = identity
        self.dim = rows.shape[1]
        units = rows.astype(np.float32)
        self._units = units / np.linalg.norm(units, axis=1, keepdims=True)
        self.original_of: dict[int, int] = {}
        """CRC-32 of a text to the number of its original."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        codes = [zlib.crc32(text.encode()) for text in texts]
        chance = np.random.default_rng(codes[0] if codes else 0)
        turns = chance.standard_normal((len(texts), self.dim), np.float32)
        turns *= TURN / np.linalg.norm(turns, axis=1, keepdims=True)
        rows = self._units[[self.original_of[code] for code in codes]] + turns
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return [row.tobytes() for row in np.rint(rows * ROW_MAX).astype(np.int8)]

    async def embed_question(self, text: str) -> bytes:
        raise NotImplementedError("nothing is asked while the store grows")

    async def close(self) -> None:
        """Nothing to close."""
