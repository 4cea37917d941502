"""How far a run is, in a log and on a terminal."""

import io
import sys
import time

import pytest

from gateway.bench.progress import LINE_EVERY_S, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    with progress() as steps:
        steps.begin(2_000)
        steps.say("hand: talk, measured")
        steps.advance(400)
        now_s[0] += LINE_EVERY_S
        steps.advance(600)
        steps.advance(1_000)
    assert capsys.readouterr().err == "1,000 of 2,000 questions; hand: talk, measured\n"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as steps:
        steps.begin(2_000)
        steps.say("hand: talk, measured")
        steps.advance(2_000)
    assert "2000/2000" in terminal.getvalue()
    assert "hand: talk, measured" in terminal.getvalue()
