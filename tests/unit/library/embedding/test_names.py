import pytest

from library.embedding.names import parsed


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("none", "none", ""),
        ("hashing", "hashing", ""),
        ("onnx", "onnx", ""),
        ("onnx:/models/e5", "onnx", "/models/e5"),
        (r"onnx:C:\models\e5", "onnx", r"C:\models\e5"),
        ("ollama:nomic-embed-text:v1.5", "ollama", "nomic-embed-text:v1.5"),
        ("openai:http://127.0.0.1:8080/v1", "openai", "http://127.0.0.1:8080/v1"),
        ("openai:https://api.openai.com/v1#m", "openai", "https://api.openai.com/v1#m"),
    ],
)
def test_a_name_has_a_kind_and_a_place(name: str, kind: str, place: str) -> None:
    assert parsed(name) == (kind, place)


@pytest.mark.parametrize(
    "name",
    ["", "x", "onnx:", "none:x", "hashing:x", "ollama", "ollama:", "openai", "openai:host/v1",
     "openai:https://me:pw@host/v1", "openai:https://host/v1?key=x", "ONNX"],
)  # fmt: skip
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="openai"):
        parsed(name)
