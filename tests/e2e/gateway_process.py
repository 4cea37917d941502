"""A real gateway in a process of its own, started as a user starts it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "gateway.cli.main")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
WAIT_S = 20.0
POLL_S = 0.01
TURNS_OF_SESSION = """
    SELECT turn.* FROM turn JOIN thread ON thread.no = turn.thread_no
    WHERE thread.session_id = ? ORDER BY turn.no
"""
EVENTS = """
    SELECT event.*, coalesce(given_id, 'e' || seq) AS id, thread.id AS thread_id, name AS collection
    FROM event JOIN thread ON thread.no = event.thread_no
    JOIN collection ON collection.id = event.collection_id
    ORDER BY seq
"""


class GatewayProcess:
    """`library-of-context serve` on a free port; settings go in as environment variables."""

    def __init__(
        self,
        *,
        db: Path,
        upstream: str,
        settings: Mapping[str, object] | None = None,
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.db = db
        self._environment = clean_environment(settings or {}) | dict(environment or {})
        arguments = ["serve", "--port", "0", "--upstream", upstream, "--db", str(db)]
        if config is not None:
            arguments += ["--config", str(config)]
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            cwd=db.parent,
            text=True,
        )
        self.stderr_lines: list[str] = []
        self.stdout_lines: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_stderr, daemon=True),
            threading.Thread(target=self._read_stdout, daemon=True),
        ]
        self._has_url = threading.Event()
        for reader in self._readers:
            reader.start()
        self._has_url.wait(START_TIMEOUT_S)
        if not self.stdout_lines:
            self.process.kill()
            self.wait()
            raise AssertionError(f"the gateway did not start: {self.stderr}")
        self.origin = self.stdout_lines[0].strip().removesuffix("/v1")
        self.url = f"{self.origin}/v1"

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.stdout_lines.append(line)
            self._has_url.set()
        self._has_url.set()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        self.stderr_lines.extend(self.process.stderr)

    @property
    def stderr(self) -> str:
        return "".join(self.stderr_lines)

    def wait(self) -> int:
        """Wait for the end of the process and of its output."""
        code = self.process.wait(STOP_TIMEOUT_S)
        for reader in self._readers:
            reader.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"SIGTERM was ignored: {self.stderr}") from None

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.wait()

    # -- asking --------------------------------------------------------------------------------
    def get(self, path: str, **options: Any) -> httpx.Response:
        # Nothing here is encrypted, and reading the machine's certificates takes 25 ms.
        return httpx.get(self.origin + path, timeout=10, verify=False, **options)

    def status(self) -> dict[str, Any]:
        body = self.get("/library/status").json()
        assert isinstance(body, dict)
        return body

    def wait_indexed(self) -> None:
        """Return once nothing is owed to the indexes, which take their time unless asked."""
        owner = json.loads(self.db.with_name(f"{self.db.name}.owner").read_text(encoding="utf-8"))
        as_owner = {"authorization": f"Bearer {owner['token']}"}
        retry = f"{self.origin}/library/outbox/retry"
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if self.rows("SELECT count(*) AS n FROM outbox WHERE NOT is_quarantined")[0]["n"] == 0:
                embedding = self.get("/library/status", headers=as_owner).json()["embedding"]
                is_done = embedding["owed_count"] == 0 and not embedding["is_loading"]
                if embedding["name"] == "none" or is_done:
                    return
            httpx.post(retry, headers=as_owner, timeout=10, verify=False)
            time.sleep(POLL_S)
        raise AssertionError(f"the outbox did not drain: {self.status()}")

    def report(self, turn_id: str, **options: Any) -> dict[str, Any]:
        """Return a turn's swap report once the turn has ended."""
        until = time.monotonic() + WAIT_S
        while True:
            answer = self.get(f"/library/turns/{turn_id}", **options)
            body = answer.json()
            if answer.status_code == 200 and body.get("state") not in {None, "prepared"}:
                assert isinstance(body, dict)
                return body
            if time.monotonic() > until:
                raise AssertionError(f"turn {turn_id}: {answer.status_code} {body}")
            time.sleep(POLL_S)

    def cli(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run another command on the same database."""
        return run_cli(*arguments, "--db", str(self.db), env=self._environment, check=check)

    # -- looking into the file -----------------------------------------------------------------
    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        return rows(self.db, sql, *parameters)

    def events(self) -> list[dict[str, Any]]:
        return events(self.db)

    def wait_logged(self, turn_id: str) -> None:
        """Return once the turn's line is in the log, which gathers lines for a moment."""
        until = time.monotonic() + WAIT_S
        while turn_id not in self.stderr:
            assert time.monotonic() < until, f"turn {turn_id} was not logged"
            time.sleep(POLL_S)

    def wait_turns(self, *, session: str, count: int) -> list[dict[str, Any]]:
        """Return the turns of a client-chosen session once `count` of them have ended."""
        until = time.monotonic() + WAIT_S
        while True:
            found = self.rows(TURNS_OF_SESSION, session)
            if len(found) == count and all(row["state"] != "prepared" for row in found):
                return found
            assert time.monotonic() < until, f"turns of {session}: {found}"
            time.sleep(POLL_S)

    def files_holding(self, needle: str) -> list[str]:
        return files_holding(self.db, needle)


def clean_environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Return this environment without keys and settings of the machine, plus `settings`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LIBRARY_OF_CONTEXT_", "OPENAI_", "ANTHROPIC_"))
        and not name.lower().endswith("_proxy")
    }
    settings = {"embedder": "hashing", **settings}  # Loading a model would take a second a start.
    named = {f"LIBRARY_OF_CONTEXT_{name.upper()}": str(value) for name, value in settings.items()}
    return kept | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "120"} | named


def run_cli(
    *arguments: str, env: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        env=dict(env or clean_environment({})),
        timeout=60,
        check=False,
    )
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Return once it is so.

    Raises:
        AssertionError: it is not so after `WAIT_S`.

    """
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until, f"still not: {what}"
        time.sleep(POLL_S)


def rows(db: Path, sql: str, *parameters: object) -> list[dict[str, Any]]:
    """Query the file beside the gateway, read-only, as a backup program would."""
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=10)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, parameters)]


def events(db: Path) -> list[dict[str, Any]]:
    """Return all stored messages in order; `body` parsed, `text` and `id` filled in."""
    found = rows(db, EVENTS)
    for row in found:
        row["body"] = json.loads(row["body"])
        if row["text"] is None:  # It is the content once more.
            body = row["body"]["items"][0] if "items" in row["body"] else row["body"]
            content = body.get("content", body.get("output"))
            row["text"] = content if isinstance(content, str) else content[0]["text"]
    return found


def files_of(db: Path) -> list[Path]:
    """Return every file that belongs to the database: WAL, indexes, whatever lies beside it."""
    return [path for path in db.parent.rglob("*") if path.is_file()]


def files_holding(db: Path, needle: str) -> list[str]:
    """Return the names of files with `needle` in them as bytes."""
    wanted = needle.encode()
    return [path.name for path in files_of(db) if wanted in path.read_bytes()]
