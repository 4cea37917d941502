"""The names of embedders, as settings give them. Pure.

| name | what it is |
|---|---|
| `none` | no embedder |
| `hashing` | built in, no model |
| `onnx` | all-MiniLM-L6-v2, from the folder that set-up made |
| `onnx:FOLDER` | any model with a `model.onnx` and a `tokenizer.json` |
"""

from typing import NamedTuple

NONE, HASHING, ONNX = "none", "hashing", "onnx"
_ALONE = (NONE, HASHING, ONNX)
_WITH_PLACE = (ONNX,)


class EmbedderName(NamedTuple):
    """A name in its parts."""

    kind: str
    place: str
    """Folder, or ""."""


def parsed(name: str) -> EmbedderName:
    """Return a name in its parts.

    Raises:
        ValueError: there is no embedder of that name.

    """
    kind, colon, place = name.partition(":")
    if (kind in _ALONE and not colon) or (kind in _WITH_PLACE and place):
        return EmbedderName(kind, place)
    raise ValueError(f"{name!r} is not one of none, hashing, onnx, onnx:FOLDER")
