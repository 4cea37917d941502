"""Commands that fail: one line and the same code, with and without a running gateway."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.app import build_app
from gateway.cli.main import cli, main
from gateway.cli.ports import bound_socket
from gateway.cli.serving import background
from gateway.settings import Settings
from gateway.waiting.companions import companions
from tests.unit.gateway.serving import chat, served

FAILING = (
    "events nosuch",
    "events --id e99999",
    "open e99999",
    "forget nosuch --yes",
    "pin e99999",
    "unpin e99999",
    "update nosuch text",
    "reports --turn nope",
    "reports --thread nosuch",
    "desk nosuch",
    "retention archive nosuch",
    "retention restore nosuch",
    "purge nosuch --yes",
    "promote e99999 --project",
    "search ''",
    "grep (",
    "search x --since notadate",
    "prepare '' x",
    "remember ''",
)


@pytest.fixture(scope="module", autouse=True)
def _settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIBRARY_OF_CONTEXT_EMBEDDER", "none")
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that nobody has open."""
    database = tmp_path_factory.mktemp("alone") / "library.db"
    assert _run(database, "remember", "Deploys are on Tuesday.").exit_code == 0

    async def say() -> None:
        async with (
            served(database.parent) as client,
            client.post("/v1/chat/completions", json=chat("When are deploys?")) as answer,
        ):
            await answer.read()

    asyncio.run(say())
    return database


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The database of a gateway that runs."""
    folder, ready, loop = tmp_path_factory.mktemp("beside"), threading.Event(), None
    end = asyncio.Event()

    async def serve() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        settings = Settings(
            db=str(folder / "library.db"),
            upstream="offline",
            embedder="none",
            max_inflight_requests=77,
        )
        with bound_socket("127.0.0.1", 0) as listener:
            base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            async with background(build_app(settings, base_url=base_url), listener):
                ready.set()
                await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    yield folder / "library.db"
    assert loop is not None
    loop.call_soon_threadsafe(end.set)
    thread.join()


def _run(database: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--db", str(database)])


def _words(line: str) -> Sequence[str]:
    return ["" if word == "''" else word for word in line.split()]


@pytest.mark.parametrize("command", FAILING)
def test_what_fails_says_so_in_one_line_and_one_code_with_and_without_a_gateway(
    command: str, alone: Path, beside: Path
) -> None:
    """Issue 5; without one it was a traceback of 75 lines, the error in a group of its own."""
    results = [_run(database, *_words(command)) for database in (alone, beside)]
    for result in results:
        assert isinstance(result.exception, SystemExit), repr(result.exception)
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert "Traceback" not in result.output
    assert [result.exit_code for result in results] == [1, 1]
    assert results[0].stderr == results[1].stderr


@pytest.mark.parametrize(
    "command", ["search Deploys --explain", "search Deploys --json", "reports"]
)
def test_a_reader_of_the_output_who_has_gone_ends_a_command_with_141(
    command: str, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EXIT_CODES; `... | head -1` was 1 where a table is printed, or 120."""
    far, near = os.pipe()
    os.close(far)
    monkeypatch.setattr(sys, "argv", ["library-of-context", *command.split(), "--db", str(alone)])
    with os.fdopen(near, "w", encoding="utf-8") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 141


async def test_the_first_of_errors_that_are_alike_is_raised_and_others_in_a_group() -> None:
    async def fail(error: Exception) -> None:
        raise error

    for first, second, raised in (
        (ValueError("a"), ValueError("b"), ValueError),
        (ValueError("a"), KeyError("b"), ExceptionGroup),
    ):
        with pytest.raises(raised):
            async with companions() as group:
                group.create_task(fail(first))
                group.create_task(fail(second))


def test_config_says_what_the_running_gateway_has_otherwise(alone: Path, beside: Path) -> None:
    """It showed its own, whatever a flag had set for the gateway."""
    done = _run(beside, "config")
    assert done.exit_code == 0, done.output
    said = "The gateway that runs on this database has --max-inflight-requests 77."
    assert said in done.stderr.splitlines()
    assert "The gateway" not in _run(beside, "config", "--max-inflight-requests", "77").stderr
    assert "The gateway" not in _run(alone, "config").stderr
