"""gateway/cli/checking/doctor.py: the embedder and the Redis, in order and out of order."""

import socket
from pathlib import Path

import pytest

from gateway.cli.checking.doctor import check_embedder, check_redis
from gateway.settings import Settings
from library.embedding import opening


def test_an_embedder_that_works_is_in_order_and_so_is_none() -> None:
    for name in ("hashing", "none"):
        assert not check_embedder(Settings(embedder=name)).is_problem


def test_the_built_in_model_that_is_not_there_is_a_problem_with_the_command_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "default_model_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(opening, "installed_weights", lambda: None)
    finding = check_embedder(Settings(embedder="onnx"))
    assert finding.fix == "library-of-context model install"


@pytest.mark.parametrize("name", ["onnx:/no/such/folder", "ollama:nobody"])
def test_any_other_embedder_that_does_not_work_is_a_problem_with_a_way_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{port}")  # Nobody listens there any more.
    finding = check_embedder(Settings(embedder=name))
    assert "another --embedder" in finding.fix


def test_a_redis_that_is_not_there_is_a_problem_and_its_password_is_not_shown() -> None:
    assert not check_redis(Settings()).is_problem
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    finding = check_redis(Settings(redis_url=f"redis://:hidden@127.0.0.1:{port}/0"))
    assert "--status" in finding.fix
    assert str(port) in finding.text
    assert "hidden" not in finding.text + finding.fix
