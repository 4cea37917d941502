"""One gateway for all programs that `run` started on one database: joined, or started and stopped.

Who comes first starts it, who leaves last stops it; a gateway that somebody else started is joined
and left alone. The runs know of each other by locked files in `<db>.runs`, which the operating
system lets go of however a run ends, so that none is counted that is dead. Coming and leaving take
one lock, so that nobody joins a gateway that is being stopped.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.cli.options import Unusable
from library.lock import FileGuard, Owner, read_owner, wait_until_free

START_TIMEOUT_S = 60.0
"""On a cold disk, with a large database."""
STOP_TIMEOUT_S = 30.0
COMING_TIMEOUT_S = 90.0
"""Longer than another run may take to start or to stop the gateway."""
_SAID_CHARS = 2_000
"""Of what a gateway said before it failed."""


class Lodging:
    """The runs on one database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._folder = database.with_name(f"{database.name}.runs")
        self._process: subprocess.Popen[str] | None = None
        """The gateway, where this run started it."""

    @contextmanager
    def gateway(self, serve: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """Yield the origin of a gateway on the database, and whether it was started for this.

        `serve` is the command that starts one; its first line of output is the base URL.

        Raises:
            Unusable: it does not start.

        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._turn():
            owner = self._owner()
            is_started = owner is None
            if owner is None:
                self._start(serve)
                owner = self._owner()
            if owner is None or owner.base_url is None:
                raise Unusable(f"{self._database} is in use by {owner}, which serves no one")
            mine = self._guard(str(os.getpid()))
            mine.take(timeout_s=0)
        try:
            yield owner.base_url.removesuffix("/v1"), is_started
        finally:
            with self._turn():
                mine.release()
                mine.path.unlink(missing_ok=True)
                if not self._has_others():
                    self._stop()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Come or leave, one at a time."""
        guard = self._guard("turn")
        if not guard.take(timeout_s=COMING_TIMEOUT_S):
            raise Unusable(f"another run holds {guard.path}")
        try:
            yield
        finally:
            guard.release()

    def _guard(self, name: str) -> FileGuard:
        return FileGuard(self._folder / f"{name}.lock")

    def _owner(self) -> Owner | None:
        return read_owner(self._database) if self._database.exists() else None

    def _has_others(self) -> bool:
        """Tell whether another run is alive; what dead ones left is cleared away."""
        for path in self._folder.glob("[0-9]*.lock"):
            guard = self._guard(path.stem)
            if not guard.take(timeout_s=0):
                return True
            guard.release()
            path.unlink(missing_ok=True)
        return False

    # -- the gateway's process -------------------------------------------------------------------
    @property
    def _note(self) -> Path:
        """Holds the process of a gateway that a run started."""
        return self._folder / "gateway"

    def _start(self, serve: Sequence[str]) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            # In a group of its own: Ctrl-C is for the program.
            is_windows = sys.platform == "win32"
            process = subprocess.Popen(
                list(serve),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=not is_windows,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            assert process.stdout is not None
            if not _line_of(process):
                process.kill()
                process.wait()
                said.seek(0)
                words = said.read()[-_SAID_CHARS:].strip()
                raise Unusable(f"the gateway did not start: {words or 'it said nothing'}")
            process.stdout.close()
            self._note.write_text(str(process.pid), encoding="utf-8")
            self._process = process

    def _stop(self) -> None:
        """Stop the gateway, if a run started it, and wait until it has let go of the database."""
        owner = self._owner()
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            started = int(self._note.read_text(encoding="utf-8"))
            if owner is not None and owner.pid == started:
                os.kill(started, getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
                wait_until_free(self._database, timeout_s=STOP_TIMEOUT_S)
                if self._process is not None:
                    self._process.wait(STOP_TIMEOUT_S)
        self._note.unlink(missing_ok=True)


def _line_of(process: subprocess.Popen[str]) -> str:
    """Return the first line of a process's output; "" when there is none in time."""
    assert process.stdout is not None
    timer = threading.Timer(START_TIMEOUT_S, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()
