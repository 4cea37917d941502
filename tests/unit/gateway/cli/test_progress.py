"""gateway/cli/progress.py: how far long work is, for people and for logs."""

import os
import pty
import subprocess
import sys

import pytest

from gateway.cli import progress as module
from gateway.cli.progress import progress

WORK = """
from gateway.cli.progress import progress
from gateway.cli.tables import print_table
with progress() as tell:
    for step in range(1, 5):
        tell(step / 4, f"{step} of [4] files")
print_table(("id", "text"), [("e1", "[red]words[/red]")])
"""


def test_a_log_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_EVERY_S", 0.0)
    with progress() as tell:
        tell(0.25, "1 of 4 files")
        tell(0.5, "2 of 4 files")
    assert capsys.readouterr() == ("", " 25% 1 of 4 files\n 50% 2 of 4 files\n")


def test_short_or_quiet_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for is_quiet in (False, True):
        with progress(is_quiet=is_quiet) as tell:
            tell(0.5, "half")
    assert capsys.readouterr() == ("", "")


def on_terminal(**environment: str) -> str:
    """Run the work above on a terminal of its own; return what that shows."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=plain | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4_096)
            except OSError:  # Linux says so when the other side is closed.
                break
            if not piece:
                break
            shown += piece
        assert process.wait(30) == 0
    os.close(ours)
    return shown.decode()


def test_a_terminal_gets_a_bar_and_colour_and_no_markup_of_the_words() -> None:
    """Issue 6: colour only on a terminal; the other half is in tests/e2e/test_cli.py."""
    shown = on_terminal()
    assert "100%" in shown and "4 of [4] files" in shown
    assert "\x1b[" in shown and "[red]words[/red]" in shown
