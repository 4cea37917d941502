"""What lies in deploy/ and can be checked here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy" / "one-machine" / "library-of-context.service"


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze, of Debian's systemd"
)
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    program = "%h/.local/share/library-of-context/venv/bin/library-of-context"
    assert f"ExecStart={program} serve\n" in text
    checked = tmp_path / UNIT.name
    checked.write_text(text.replace(program, "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(checked)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
