"""An environment of its own for each client, under the user's cache folder, at pinned versions.

A client's dependencies must not meet ours, nor another client's. A folder's name holds a digest of
what is installed in it, so that a new version makes a new one, and one that was half made (its
process was killed) is made again.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.configuration import user_folder

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER / "programs"
INSTALL_TIMEOUT_S = 1_200
NODE = "node"
DONE = ".installed"


@dataclass(frozen=True, slots=True)
class Client:
    """One client as clients.toml has it."""

    name: str
    kind: str
    packages: tuple[str, ...]
    program: str = ""
    protocols: tuple[str, ...] = ()
    ci: bool = False
    budget_tokens: int | None = None
    """Where what the client itself says needs more than the usual budget."""
    without: tuple[str, ...] = ()
    """Steps that the client has not got."""
    run: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The client's own command by protocol, where `library-of-context run` starts it."""

    def steps(self, all_steps: Sequence[str]) -> list[str]:
        return [step for step in all_steps if step not in self.without]

    @property
    def search_path(self) -> list[str]:
        """Where the client's own commands are."""
        bin_folder = "bin" if self.kind == "python" else "node_modules/.bin"
        return [str(self.folder / bin_folder)]

    @property
    def version(self) -> str:
        """What is installed of it, without its extras."""
        return self.packages[0].rpartition("==" if self.kind == "python" else "@")[2]

    @property
    def folder(self) -> Path:
        digest = hashlib.sha256("\n".join(self.packages).encode()).hexdigest()[:8]
        return user_folder("cache", os.environ) / "clients" / f"{self.name}-{digest}"


def listed_clients() -> dict[str, Client]:
    """Return every client with a program, by name."""
    return {name: one for name, one in _read().items() if one.program}


def environment(name: str) -> Client:
    """Return what has an environment of its own and is no client: a tool, Node."""
    return _read()[name]


def _read() -> dict[str, Client]:
    table = tomllib.loads((FOLDER / "clients.toml").read_text(encoding="utf-8"))
    return {
        name: Client(
            name=name,
            kind=row["kind"],
            packages=tuple(row["packages"]),
            program=row.get("program", ""),
            protocols=tuple(row.get("protocols", ())),
            ci=row.get("ci", False),
            budget_tokens=row.get("budget_tokens"),
            without=tuple(row.get("without", ())),
            run=row.get("run", {}),
        )
        for name, row in table.items()
    }


def is_installed(client: Client) -> bool:
    return (client.folder / DONE).exists()


def install(client: Client) -> None:
    """Make the client's environment unless it is there.

    Raises:
        subprocess.CalledProcessError: a package could not be installed.

    """
    if client.kind == NODE and client.name != NODE:
        install(_read()[NODE])
    with _alone(client.folder):
        if not is_installed(client):
            _make(client)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes: tests run in several, and all want Node."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(client: Client) -> None:
    shutil.rmtree(client.folder, ignore_errors=True)
    client.folder.mkdir(parents=True)
    if client.kind == NODE:
        own = {"name": "client", "private": True, "type": "module"}
        (client.folder / "package.json").write_text(json.dumps(own), encoding="utf-8")
        _run([*npm(), "install", "--no-audit", "--no-fund", *client.packages], client.folder)
    else:
        _run([sys.executable, "-m", "venv", "."], client.folder)
        python = str(client.folder / "bin" / "python")
        _run([python, "-m", "pip", "install", "--quiet", *client.packages], client.folder)
    (client.folder / DONE).touch()


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(
        command,
        cwd=folder,
        check=True,
        env={**os.environ, "PATH": search_path(), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        timeout=INSTALL_TIMEOUT_S,
    )


def node() -> str:
    return str(_read()[NODE].folder / "bin" / "node")


def npm() -> list[str]:
    return [str(_read()[NODE].folder / "bin" / "npm")]


def search_path() -> str:
    """Return a PATH that begins with our own Node."""
    return os.pathsep.join([str(_read()[NODE].folder / "bin"), os.environ["PATH"]])


def command_of(client: Client) -> list[str]:
    """Return what runs the client's program."""
    if client.program.endswith(".mjs"):
        # Node looks for packages from where a program lies.
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copyfile(program, client.folder / program.name)
        return [node(), str(client.folder / client.program)]
    has_own_python = client.kind == "python"
    python = str(client.folder / "bin" / "python") if has_own_python else sys.executable
    return [python, str(PROGRAMS / client.program)]
