"""What the signs of a real model's rows are good for, see `library.vectors.matrix`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from library.embedding.onnx import OnnxModel
from library.passages import ORDINAL_BITS
from library.records import EventRows, Where
from library.vectors import matrix as module
from library.vectors.matrix import Matrix

FIXTURES = Path("tests/fixtures/transcripts")
SENTENCES, QUESTIONS = 500, 40
EVERYWHERE = Where(1, None, (), True, frozenset())


def sentences() -> list[str]:
    """Return distinct sentences that people and models wrote."""
    found: dict[str, None] = {}
    for path in sorted(FIXTURES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for message in json.loads(line)["messages"]:
                pieces = re.split(r"(?<=[.!?])\s+|\n+", str(message.get("content") or ""))
                found |= dict.fromkeys(one for one in pieces if 20 <= len(one) <= 90)
    return list(found)


def test_a_second_look_at_a_tenth_of_real_rows_finds_nearly_all_of_the_ten_nearest(
    minilm: OnnxModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """See `library.vectors.matrix.LEAST_RESCORED`."""
    texts = sentences()[: SENTENCES + QUESTIONS]
    assert len(texts) == SENTENCES + QUESTIONS
    rows = [minilm.row(text, is_question=False) for text in texts]
    asked, stored = rows[:QUESTIONS], rows[QUESTIONS:]
    monkeypatch.setattr(module, "LEAST_RESCORED", SENTENCES // 10)
    matrix = Matrix(minilm.dim)
    matrix.add([EventRows(seq, 1, 1, seq, row) for seq, row in enumerate(stored, 1)])
    array = np.frombuffer(b"".join(stored), np.int8).reshape(-1, minilm.dim).astype(np.float64)
    array /= np.linalg.norm(array, axis=1, keepdims=True)
    found_count = 0
    for question in asked:
        nearest = np.argsort(-(array @ np.frombuffer(question, np.int8)))[:10] + 1
        keys, _ = matrix.search(question, EVERYWHERE, limit=10)
        found = {key >> ORDINAL_BITS for key in keys.tolist()}
        found_count += len(found & set(nearest.tolist()))
    assert found_count > 0.94 * 10 * QUESTIONS  # .97 as measured.
