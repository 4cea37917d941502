"""A real redis-server of a test's own: its port, its folder, stopped by its process id.

Debian's redis-tools brings the server under the name redis-check-rdb (the program looks at the name
it is called by), so nothing is installed that starts a second Redis by itself.
"""

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import redis

START_TIMEOUT_S = 10.0
POLL_S = 0.01
PORTS = (20_000, 32_000)
"""Below those that Linux, macOS and Windows give by themselves."""
HOW_TO_ENABLE = "scripts/install-redis (Debian's redis-tools) enables the tests with a real Redis"


def redis_binary(folder: Path) -> str:
    """Return the path of a redis-server; skip the test where there is none."""
    if found := shutil.which("redis-server"):
        return found
    twin = shutil.which("redis-check-rdb")
    if twin is None:
        pytest.skip(HOW_TO_ENABLE)
    link = folder / "redis-server"
    if not link.exists():
        link.symlink_to(Path(twin).resolve())
    return str(link)


def free_port() -> int:
    """Return a port that nobody has, and nobody is given who asks the system for any: a server is
    killed in a test and comes back on its own, and a client's connection may have taken that."""
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """One server; `start` again after `kill` brings it back on the same port, empty."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._binary = redis_binary(folder)
        self._options = options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "RedisServer":
        self.process = subprocess.Popen(
            [
                *(self._binary, "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
                *self._options,
            ],
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_TIMEOUT_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            assert time.monotonic() < until, "redis-server did not start"
            assert self.process.poll() is None, "redis-server ended at once"
            time.sleep(POLL_S)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """Let it accept connections, and answer nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def ask(self, *words: str | bytes, password: str | None = None) -> Any:
        """Return what one command answers; raises redis-py's errors."""
        client = redis.Redis(port=self.port, password=password, socket_timeout=5)
        try:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]
        finally:
            client.close()
