"""Runs a program in the foreground, as if nothing stood between it and the terminal."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

NOT_FOUND, NOT_RUNNABLE, BY_SIGNAL = 127, 126, 128
"""Exit codes as shells give them. Source: POSIX, Shell Command Language, 2.8.2."""
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")


class NotStarted(Exception):
    """The program `command` cannot be run; `exit_code` is what a shell would give."""

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"{command}: {error.strerror}")
        self.exit_code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE


def check_there(program: str) -> None:
    """Look whether there is such a program: that costs nothing, before a gateway is started for it.

    Raises:
        NotStarted: there is none.

    """
    if shutil.which(program) is None and not Path(program).exists():
        raise NotStarted(program, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end and return its exit code; 128 + N where signal N ended it.

    Signals go on to it. Ctrl-C at a terminal comes to both, and means the program.

    Raises:
        NotStarted: there is no such program, or it may not be run.

    """
    try:
        # Its own reading of Ctrl-C begins before ours ends, so that none is lost.
        process = subprocess.Popen(list(command), env=dict(environment))
    except OSError as error:
        raise NotStarted(command[0], error) from error

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not sys.stdin.isatty():
            process.send_signal(number)

    named = (getattr(signal, name, None) for name in (*_PASSED_ON, "SIGINT"))
    before = {number: signal.signal(number, pass_on) for number in named if number is not None}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else BY_SIGNAL - code
