import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from library.embedding import minilm
from library.embedding.minilm import TOKENIZER, WEIGHTS, ModelFilesUnusable, make_folder
from library.embedding.onnx import OnnxModel

TEXTS = (
    "What did Caroline research?",
    "We moved the deployment from Heroku to AWS because of the cost.",
    "def reader(path):\n    with open(path) as file:\n        return file.read()",
    "The launch is on Tuesday the 14th; bring the blue key of the boathouse. " * 12,
    "我们昨天决定把部署从Heroku迁移到AWS。",
)


class Exact(minilm._Minilm):
    """The same graph with the weights as they came, nothing quantised."""

    def _product(self, name: str, states: str, *parts: str) -> str:
        matrix = np.concatenate([self._weights[f"{part}.weight"] for part in parts])
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        product = self._graph.node("MatMul", states, self._floats(f"{name}.weight", matrix.T))
        return self._graph.node("Add", product, self._floats(f"{name}.bias", bias))

    def _table(self, name: str, ids: str) -> str:
        return self._graph.node(
            "Gather", self._floats(f"{name}.weight", self._weights[f"{name}.weight"]), ids
        )


def test_int8_rows_point_where_exact_ones_do(
    weights: Path, minilm_folder: Path, tmp_path: Path
) -> None:
    exact_folder = shutil.copytree(minilm_folder, tmp_path / "exact")
    (exact_folder / "model.onnx").write_bytes(Exact(minilm._read(weights / WEIGHTS)).written())
    exact, small = OnnxModel(exact_folder), OnnxModel(minilm_folder)
    for text in TEXTS:
        one, other = (
            np.frombuffer(model.row(text, is_question=False), np.int8).astype(np.float32)
            for model in (exact, small)
        )
        assert one @ other / (np.linalg.norm(one) * np.linalg.norm(other)) > 0.975, text


def test_the_folder_is_a_quarter_of_the_weights_and_the_same_each_time(
    weights: Path, minilm_folder: Path, tmp_path: Path
) -> None:
    make_folder(weights, tmp_path / "again")
    made = (tmp_path / "again" / "model.onnx").read_bytes()
    assert made == (minilm_folder / "model.onnx").read_bytes()
    assert len(made) * 3.5 < (weights / WEIGHTS).stat().st_size
    assert os.listdir(tmp_path) == ["again"]


def test_the_states_of_the_tokens_are_a_second_output_whose_mean_is_the_row(
    minilm: OnnxModel,
) -> None:
    """Issue 3: mean pooling, unit rows, token states as a second output."""
    for text in TEXTS:
        ids, _ = minilm._encoded(text)
        given = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)))}
        given["attention_mask"] = given["attention_mask"].astype(np.int64)
        names = ["sentence_embedding", "token_embeddings"]
        (row,), (states,) = minilm._session.run(names, given)
        assert states.shape == (len(ids), minilm.dim)
        assert np.allclose(np.linalg.norm(states, axis=1), 1.0, atol=1e-3)
        assert np.isclose(np.linalg.norm(row), 1.0, atol=1e-3)
        mean = states.mean(axis=0)
        # The row is the mean of states that are not of unit length yet: nearly the same direction.
        assert row @ mean / np.linalg.norm(mean) > 0.98, text


def test_a_folder_that_is_there_is_replaced_whole(weights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"half")
    (folder / "left over").touch()
    make_folder(weights, folder)
    assert OnnxModel(folder).dim == 384
    assert not (folder / "left over").exists()


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_other_weights_than_the_pinned_ones_are_refused(
    weights: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for each in (WEIGHTS, TOKENIZER):
        (source / each).symlink_to(weights / each)
    (source / name).unlink()
    with pytest.raises(ModelFilesUnusable, match="cannot be read"):
        make_folder(source, tmp_path / "m")
    (source / name).write_bytes(b"something else")
    with pytest.raises(ModelFilesUnusable, match="pinned"):
        make_folder(source, tmp_path / "m")
    assert not (tmp_path / "m").exists()
