import json
from pathlib import Path

import numpy as np
import pytest

from library.embedding.onnx import OnnxModel
from library.embedding.protocol import EmbedderUnavailable
from tests.unit.library.embedding.small_folder import make_small, say


def numbers(row: bytes) -> list[int]:
    return list(map(int, np.frombuffer(row, np.int8)))


def cosine(one: bytes, other: bytes) -> float:
    left, right = (np.frombuffer(row, np.int8).astype(np.float32) for row in (one, other))
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def test_the_file_of_a_tokenizer_neither_pads_nor_cuts_a_text(tmp_path: Path) -> None:
    """Source: PACKAGES.md; all-MiniLM-L6-v2's file cuts and pads to 128 tokens."""
    model = OnnxModel(make_small(tmp_path / "m"))
    assert model.count("red green blue gold") == 4
    assert numbers(model.row("red green", is_question=False)) == [106, 70, 0, 0]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("mean_tokens", [106, 70, 0, 0]),
        ("max_tokens", [106, 70, 0, 0]),
        ("cls_token", [127, 0, 0, 0]),
        ("lasttoken", [0, 127, 0, 0]),
    ],
)
def test_token_states_are_pooled_as_the_folder_says(
    tmp_path: Path, mode: str, expected: list[int]
) -> None:
    folder = make_small(tmp_path / "m")
    say(folder, "1_Pooling/config.json", {f"pooling_mode_{mode}": True, "word_dimension": 4})
    assert numbers(OnnxModel(folder).row("red green", is_question=False)) == expected


def test_a_graph_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    model = OnnxModel(make_small(tmp_path / "m", is_pooled=True))
    assert (model.dim, numbers(model.row("gold", is_question=False))) == (4, [0, 0, 0, -127])


def test_a_question_is_asked_in_the_form_that_the_folder_says(tmp_path: Path) -> None:
    folder = make_small(tmp_path / "m")
    say(folder, "config_sentence_transformers.json", {"prompts": {"query": "red ", "passage": ""}})
    model = OnnxModel(folder)
    assert numbers(model.row("green", is_question=True)) == [106, 70, 0, 0]
    assert numbers(model.row("green", is_question=False)) == [0, 127, 0, 0]


def test_what_changes_a_row_changes_the_identity(tmp_path: Path) -> None:
    folder = make_small(tmp_path / "m")
    first = OnnxModel(folder).identity
    assert OnnxModel(folder).identity == first
    say(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    assert OnnxModel(folder).identity != first


def test_a_text_of_nothing_known_has_a_row_of_zeros(tmp_path: Path) -> None:
    model = OnnxModel(make_small(tmp_path / "m"))
    assert numbers(model.row("what", is_question=False)) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("model.onnx", None, "holds no model.onnx"),
        ("model.onnx", b"garbage", "cannot be loaded"),
        ("tokenizer.json", None, "holds no tokenizer.json"),
        ("tokenizer.json", b"{}", "is no tokenizer"),
        ("sentence_bert_config.json", b"{", "is no JSON"),
        ("sentence_bert_config.json", b"[]", "is no JSON object"),
        ("config_sentence_transformers.json", b"\xff", "is no JSON"),
    ],
)
def test_a_folder_that_cannot_be_used_says_which_file_is_wrong(
    tmp_path: Path, name: str, data: bytes | None, told: str
) -> None:
    path = make_small(tmp_path / "m") / name
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(EmbedderUnavailable, match=told):
        OnnxModel(tmp_path / "m")


def test_a_pooling_that_is_not_known_is_refused(tmp_path: Path) -> None:
    folder = make_small(tmp_path / "m")
    say(folder, "1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True})
    with pytest.raises(EmbedderUnavailable, match="pooling_mode_weightedmean_tokens"):
        OnnxModel(folder)


def test_a_graph_that_wants_more_than_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="wants pixel_values"):
        OnnxModel(make_small(tmp_path / "m", extra_input="pixel_values"))


def test_a_graph_that_does_not_fit_its_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = make_small(tmp_path / "m")
    path = folder / "tokenizer.json"
    vocabulary = json.loads(path.read_bytes())
    vocabulary["model"]["vocab"]["[UNK]"] = 9
    say(folder, "tokenizer.json", vocabulary)
    with pytest.raises(EmbedderUnavailable, match="fails"):
        OnnxModel(folder)


def test_graphs_that_ask_for_types_and_places_get_them(tmp_path: Path) -> None:
    for name in ("token_type_ids", "position_ids"):
        model = OnnxModel(make_small(tmp_path / name, extra_input=name))
        assert numbers(model.row("blue", is_question=False)) == [0, 0, 127, 0]


# -- the real model ---------------------------------------------------------------------------


def test_like_meanings_are_close_without_a_word_in_common(minilm: OnnxModel) -> None:
    asked = minilm.row("What is the name of my pet?", is_question=True)
    near = minilm.row("My dog is called Rex", is_question=False)
    far = minilm.row("The servers moved to Frankfurt", is_question=False)
    assert cosine(asked, near) > 0.4 > 0.2 > cosine(asked, far)


def test_a_real_row_has_the_length_of_a_unit_row(minilm: OnnxModel) -> None:
    row = np.frombuffer(minilm.row("The blue key opens the boathouse", is_question=False), np.int8)
    assert minilm.dim == len(row) == 384
    assert np.linalg.norm(row.astype(np.float32)) == pytest.approx(127, rel=0.01)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\ud800 alone", "\0", "船屋的钥匙是蓝色的", "a" * 100_000, "é" * 9, "🙂" * 500],
)
def test_any_text_has_a_row(minilm: OnnxModel, text: str) -> None:
    assert len(minilm.row(text, is_question=False)) == 384
    assert minilm.count(text) <= 256
