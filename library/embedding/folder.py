"""A folder that holds a sentence embedder: which files it has, and what they say about its use.

The layout is the one of sentence-transformers and of its ONNX exports: `model.onnx` (or
`onnx/model.onnx`) and `tokenizer.json`; beside them, where they are, `1_Pooling/config.json`,
`sentence_bert_config.json`, `tokenizer_config.json`, and `config_sentence_transformers.json` with
what goes in front of questions and passages. Nothing here opens the model.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from library.embedding.protocol import EmbedderUnavailable

LONGEST_TOKENS = 512
"""A passage has 250. Where the folder allows more, more would only cost more."""
_MODELS = "model.onnx", "onnx/model.onnx"
_POOLING, _LENGTH = "1_Pooling/config.json", "sentence_bert_config.json"
_PROMPTS, _TOKENIZER_SETTINGS = "config_sentence_transformers.json", "tokenizer_config.json"
_SLICE_BYTES = 1 << 20

Pooling = Literal["mean", "cls", "max", "lasttoken"]
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What is needed to run the model of a folder."""

    name: str
    model: Path
    tokenizer: Path
    digest: str
    """Of every file that changes a row."""
    longest_tokens: int
    pooling: Pooling
    """Of token states, where the graph gives no sentence embedding by itself."""
    question_prefix: str
    passage_prefix: str


def read_folder(path: Path) -> ModelFolder:
    """Read a folder; its files are read whole once, for their digest.

    Raises:
        EmbedderUnavailable: something is missing, or cannot be understood.

    """
    try:
        return _read(path)
    except OSError as error:
        raise EmbedderUnavailable(f"{error.filename}: {error.strerror}") from error


def _read(path: Path) -> ModelFolder:
    model = next((path / name for name in _MODELS if (path / name).is_file()), None)
    if model is None:
        raise EmbedderUnavailable(f"{path} holds no {' or '.join(_MODELS)}")
    tokenizer = path / "tokenizer.json"
    if not tokenizer.is_file():
        raise EmbedderUnavailable(f"{path} holds no tokenizer.json")
    settings = [path / name for name in (_POOLING, _LENGTH, _PROMPTS, _TOKENIZER_SETTINGS)]
    weights = sorted(model.parent.glob(f"{model.name}_data*"))  # A large model's numbers.
    prompts = _json(path / _PROMPTS).get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    return ModelFolder(
        name=path.name,
        model=model,
        tokenizer=tokenizer,
        digest=_digest([model, *weights, tokenizer, *settings]),
        longest_tokens=_longest(path),
        pooling=_pooling(path),
        question_prefix=_prompt(prompts, "query", "search_query", "question"),
        passage_prefix=_prompt(prompts, "document", "passage", "search_document"),
    )


def _longest(path: Path) -> int:
    known = (
        _json(path / _LENGTH).get("max_seq_length"),
        _json(path / _TOKENIZER_SETTINGS).get("model_max_length"),
    )
    return min(
        [LONGEST_TOKENS, *(int(one) for one in known if isinstance(one, int | float) and one > 0)]
    )


def _pooling(path: Path) -> Pooling:
    settings = _json(path / _POOLING)
    chosen = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in _POOLINGS:
        raise EmbedderUnavailable(f"{path / _POOLING}: {' and '.join(chosen)} is not known here")
    return _POOLINGS[chosen[0]]


def _prompt(prompts: Mapping[str, Any], *names: str) -> str:
    return next((str(prompts[name]) for name in names if name in prompts), "")


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise EmbedderUnavailable(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise EmbedderUnavailable(f"{path} is no JSON object")
    return found


def _digest(paths: list[Path]) -> str:
    digest = sha256()
    for path in paths:
        if path.is_file():
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            for data in _slices(path):
                digest.update(data)
    return digest.hexdigest()


def _slices(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(_SLICE_BYTES):
            yield data
