"""The names of embedders, as settings give them. Pure.

| name | what it is |
|---|---|
| `none` | no embedder |
| `hashing` | built in, no model |
| `onnx` | all-MiniLM-L6-v2, from the folder that set-up made |
| `onnx:FOLDER` | any model with a `model.onnx` and a `tokenizer.json` |
| `ollama:MODEL` | a model of the Ollama on this machine |
| `openai:URL#MODEL` | a model of any OpenAI-compatible `URL/embeddings`; without #: its only one |
"""

import re
from typing import NamedTuple

NONE, HASHING, ONNX, OLLAMA, OPENAI = "none", "hashing", "onnx", "ollama", "openai"
_ALONE = (NONE, HASHING, ONNX)
_WITH_PLACE = (ONNX, OLLAMA, OPENAI)
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?(#\S+)?")
"""Without user, password and query: it is stored and shown."""


class EmbedderName(NamedTuple):
    """A name in its parts."""

    kind: str
    place: str
    """Folder, model or URL, or ""."""


def parsed(name: str) -> EmbedderName:
    """Return a name in its parts.

    Raises:
        ValueError: there is no embedder of that name.

    """
    kind, colon, place = name.partition(":")
    if kind == OPENAI and place and not _URL.fullmatch(place):
        raise ValueError(f"{kind}: wants a URL (http://host/v1#MODEL), without user and password")
    if (kind in _ALONE and not colon) or (kind in _WITH_PLACE and place):
        return EmbedderName(kind, place)
    known = "none, hashing, onnx, onnx:FOLDER, ollama:MODEL, openai:URL#MODEL"
    raise ValueError(f"{name!r} is not one of {known}")
