"""gateway/cli/running/child.py: a program that is not there is told before a gateway is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.main import cli
from gateway.cli.running.child import NOT_FOUND


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program"])
def test_for_a_program_that_is_not_there_no_gateway_is_started(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took 3.3 s to say so."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["run", "--db", str(tmp_path / "library.db"), "--", program])
    assert done.exit_code == NOT_FOUND
    assert done.stderr == f"{program}: No such file or directory\n"
    assert [*tmp_path.iterdir()] == [], "no gateway made a database"
