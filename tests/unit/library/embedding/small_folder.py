"""A sentence embedder of four numbers, small enough to know by heart what it must answer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from library.embedding.onnx_file import FLOAT, INT64, Graph

WORDS = ("[UNK]", "red", "green", "blue", "gold")
STATES = np.array(
    [[0, 0, 0, 0], [3, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, -1]], np.float32
)
"""What each word is to the model."""


def make_small(folder: Path, *, extra_input: str = "", is_pooled: bool = False) -> Path:
    """Write a model whose token states are its words' rows; pooled, it gives their sum."""
    folder.mkdir(parents=True)
    graph = Graph()
    ids = graph.input("input_ids", kind=INT64, shape=("b", "s"))
    graph.input("attention_mask", kind=INT64, shape=("b", "s"))
    if extra_input:
        graph.input(extra_input, kind=INT64, shape=("b", "s"))
    table = graph.constant("table", STATES.tobytes(), kind=FLOAT, shape=STATES.shape)
    states = graph.node("Gather", table, ids)
    if is_pooled:
        total = graph.node("ReduceSum", states, graph.integers(1), keepdims=0)
        graph.output("row", total, kind=FLOAT, shape=("b", 4))
    else:
        graph.output("last_hidden_state", states, kind=FLOAT, shape=("b", "s", 4))
    (folder / "model.onnx").write_bytes(graph.model("small"))
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(2)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def say(folder: Path, name: str, settings: Any) -> None:
    """Write one of a folder's settings files."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")
