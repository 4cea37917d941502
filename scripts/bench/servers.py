"""Starts what is measured, each in a process of its own, and reads what it costs from /proc."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
START_TIMEOUT_S = 180.0
LITELLM = "litellm[proxy]==1.108.7"
"""The newest that installs (PyPI, November 2026)."""


_running: list["Server"] = []


@contextlib.contextmanager
def all_stopped() -> Iterator[None]:
    """Leave no process behind, however the run ends."""
    try:
        yield
    finally:
        for server in _running:
            server.stop()


@dataclass(slots=True)
class Server:
    """One running process under test."""

    name: str
    port: int
    process: "subprocess.Popen[str]"
    started_at: float
    db: Path | None = None

    def __post_init__(self) -> None:
        _running.append(self)

    def cpu_s(self) -> float:
        """Return user and system time of all its threads so far; steps of 10 ms."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def memory_mb(self, kind: str = "VmRSS") -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(row for row in text.splitlines() if row.startswith(kind + ":"))
        return int(line.split()[1]) / 1024

    def descriptor_count(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self) -> None:
        """End it; once more does no harm."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start_stub() -> Server:
    return _start_printing("stub", ["-m", "scripts.bench.stub"])


def start_relay(upstream_port: int) -> Server:
    url = f"http://127.0.0.1:{upstream_port}/v1"
    return _start_printing("relay", ["-m", "scripts.bench.relay", url])


def start_gateway(upstream_port: int, db: Path, **settings: object) -> Server:
    """Start our gateway with its defaults, but for what is given."""
    named = {f"LIBRARY_OF_CONTEXT_{k.upper()}": str(v) for k, v in settings.items()}
    arguments = ["-m", "gateway.cli.main", "serve", "--port", "0", "--db", str(db)]
    arguments += ["--upstream", f"http://127.0.0.1:{upstream_port}/v1"]
    return _start_printing("gateway", arguments, environment=named, db=db)


_COUNTED = """
import json, pathlib, sys
from library.store import lanes
counts, group_max = pathlib.Path(sys.argv.pop(1)), int(sys.argv.pop(1))
if group_max:
    lanes.GROUP_MAX = group_max
written = []
def counted(own):
    def made(*arguments, **named):
        written.append(own(*arguments, **named))
        return written[-1]
    return made
lanes.WriterCounts = counted(lanes.WriterCounts)
from gateway.cli.main import main
try:
    main()
finally:
    counts.write_text(json.dumps({"commits": sum(one.commits for one in written)}))
"""
"""A gateway that leaves behind how often it committed, and commits so many jobs at most at once."""


def start_counted_gateway(
    upstream_port: int, db: Path, *, counts: Path, group_max: int | None
) -> Server:
    """Start our gateway; when it ends it writes how often it committed to `counts`."""
    arguments = ["-c", _COUNTED, str(counts), str(group_max or 0), "serve", "--port", "0"]
    arguments += ["--db", str(db), "--upstream", f"http://127.0.0.1:{upstream_port}/v1"]
    return _start_printing("gateway", arguments, db=db)


def _start_printing(
    name: str,
    arguments: list[str],
    *,
    environment: dict[str, str] | None = None,
    db: Path | None = None,
) -> Server:
    """Start a Python process whose first line ends with its port."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LIBRARY_OF_CONTEXT_")}
    # Start-up is measured as a user has it, with compiled modules.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env |= {"PYTHONPATH": str(ROOT)} | (environment or {})
    started = time.monotonic()
    # Standard error goes to a file, not to a pipe that nobody empties.
    with tempfile.NamedTemporaryFile(prefix=f"bench-{name}-", suffix=".log") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            env=env,
            cwd=ROOT,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline().strip().rstrip("/").removesuffix("/v1")
        if not line:
            raise RuntimeError(
                f"{name} did not start: {Path(log.name).read_text(encoding='utf-8')}"
            )
    return Server(name, int(line.rpartition(":")[2]), process, started, db)


def wait_for(server: Server, path: str) -> float:
    """Return the seconds from the start of the process to the first 200 of `path`."""
    until = server.started_at + START_TIMEOUT_S
    while time.monotonic() < until:
        try:
            url = f"http://127.0.0.1:{server.port}{path}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return time.monotonic() - server.started_at
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if server.process.poll() is not None:
                raise RuntimeError(f"{server.name} ended while it was started") from None
        time.sleep(0.005)
    raise RuntimeError(f"{server.name} does not answer on {path}")


def own_environment(name: str, package: str) -> Path:
    """Return the Python of an environment that has one package, making it when it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "library-of-context-bench" / name
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, folder], check=True)
            install: list[str | Path] = [uv, "pip", "install", "-q", "-p", python, package]
        else:
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            install = [python, "-m", "pip", "install", "-q", package]
        environment = os.environ | {"UV_COMPILE_BYTECODE": "1", "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run(install, check=True, env=environment)
        done.touch()
    return python


def start_litellm(upstream_port: int, folder: Path) -> Server:
    """Start LiteLLM proxy with one model, no database, no logging of bodies."""
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n"
        "  - model_name: gpt-4o-mini\n"
        "    litellm_params:\n"
        "      model: openai/gpt-4o-mini\n"
        f"      api_base: http://127.0.0.1:{upstream_port}/v1\n"
        "      api_key: sk-bench\n"
        "litellm_settings:\n"
        "  num_retries: 0\n"
        "  telemetry: false\n",
        encoding="utf-8",
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "LITELLM_MASTER_KEY": "sk-bench",
        "OPENAI_API_KEY": "sk-bench",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOG": "ERROR",
    }
    python = own_environment("litellm-1.108.7", LITELLM)
    started = time.monotonic()
    arguments = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [python.parent / "litellm", *arguments, "--num_workers", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        text=True,
    )
    server = Server("litellm", port, process, started)
    wait_for(server, "/health/liveliness")
    return server
