"""Drives one client against a real gateway and says of each step what came of it.

The client is a program of its own (programs/), in its own environment, with an empty home. It tells
what it saw; the scripted model is asked what it was sent, and the gateway what it recorded.
"""

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.clients.environments import Client, command_of, search_path
from tests.e2e.clients.model import (
    PIECES_MIN,
    PROTOCOLS,
    REFUSAL,
    REFUSAL_STATUS,
    ScriptedModel,
    read,
)
from tests.e2e.clients.programs.talk import COUNT, FACT_NUMBER, KEY, WEATHER_RESULT
from tests.e2e.gateway_process import COMMAND, GatewayProcess

STEPS = ("chat", "recall", "stream", "tools", "error", "disconnect")
RUN = "run"
"""A step of its own: the program as a user starts it, behind `library-of-context run --`."""
PROGRAM_TIMEOUT_S = 900
CLOSED_WITHIN_S = 5.0
"""Of the client's going; the machine may be busy. CASES D6 has its own test, within a second."""
BUDGET_TOKENS = 1_500
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}
"""Keeps programs from asking their makers for news."""
SAVED = "tokens came, "
"""In the line that `run` ends with, where requests came through the gateway."""
SETTINGS = {"upstream_retries": 0, "strict_freshness": True}


@dataclass(slots=True)
class Told:
    """What a program said, and how it ended."""

    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: str = ""


def conform(client: Client, protocol: str, model: ScriptedModel) -> dict[str, str]:
    """Return of each step that the client has "" where it passed, else what was wrong."""
    model.reset()
    budget = client.budget_tokens or BUDGET_TOKENS
    # A killed agent's helpers may still write when their home goes.
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        home.mkdir()
        gateway = GatewayProcess(
            db=Path(folder) / "library.db",
            upstream=model.url,
            settings=SETTINGS | {"budget_tokens": budget},
        )
        try:
            told = _run(client, protocol, gateway, home)
            return {
                step: _problem(step, told, model, gateway, budget) for step in client.steps(STEPS)
            }
        finally:
            gateway.stop()


def started_by_run(client: Client, protocol: str, model: ScriptedModel) -> str:
    """Return what is wrong when `run` starts the client's own command with an empty home and no
    address set; "" when nothing is."""
    model.reset()
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as folder:
        home, db = Path(folder) / "home", Path(folder) / "library.db"
        home.mkdir()
        try:
            done = run_started(client, protocol, COUNT, upstream=model.url, home=home, db=db)
        except subprocess.TimeoutExpired:
            return f"it did not end within {PROGRAM_TIMEOUT_S} s"
    asked = {PROTOCOLS[seen.path] for seen in model.requests if seen.path in PROTOCOLS}
    if done.returncode or "five" not in done.stdout or asked != {protocol}:
        said = (done.stdout + done.stderr)[-500:]
        return f"code {done.returncode}, asked in {sorted(asked)}: {said}"
    return "" if SAVED in done.stderr else f"nothing of what was saved: {done.stderr[-300:]}"


def run_started(
    client: Client, protocol: str, prompt: str, *, upstream: str, home: Path, db: Path
) -> subprocess.CompletedProcess[str]:
    """Let `run` start the client's own command; raises subprocess.TimeoutExpired."""
    options = ("--upstream", upstream, "--db", str(db), "--budget-tokens", "100000")
    return subprocess.run(
        [*COMMAND, "run", *options, "--", *client.run[protocol], prompt],
        env=_environment(client, home) | QUIET | dict.fromkeys(KEYS, KEY),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        check=False,
    )


def _environment(client: Client, home: Path) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([*client.search_path, search_path()]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }


def _run(client: Client, protocol: str, gateway: GatewayProcess, home: Path) -> Told:
    """Run the program to its end; nothing of this machine's settings reaches it."""
    base_url = gateway.origin if protocol == "messages" else gateway.url
    environment = _environment(client, home)
    try:
        done = subprocess.run(
            [*command_of(client), protocol, base_url],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROGRAM_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        return Told(_lines(said), f"it did not end within {PROGRAM_TIMEOUT_S} s")
    return Told(_lines(done.stdout), done.stderr.strip()[-300:] if done.returncode else "")


def _lines(said: str) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in said.splitlines() if line.startswith('{"step"')]
    return {row["step"]: row for row in rows}


def _problem(
    step: str, told: Told, model: ScriptedModel, gateway: GatewayProcess, budget: int
) -> str:
    """Return what is wrong with a step; "" when nothing is."""
    row = told.lines.get(step)
    if row is None:
        return f"it did not come so far: {told.errors}"
    text = str(row["text"])
    reports = gateway.get("/library/turns?newest=1000").json()["turns"]
    match step:
        case "chat":
            paged = [one for one in reports if one["is_paged"]]
            is_held = all(one["prompt_tokens"] <= budget for one in reports)
            return "" if text and paged and is_held else f"not past the budget: {text!r}"
        case "recall":
            is_recalled = any(one["swapped_in"] for one in reports)
            return "" if FACT_NUMBER in text and is_recalled else f"not recalled: {text!r}"
        case "stream":
            is_streamed = row.get("pieces", PIECES_MIN) >= PIECES_MIN and "five" in text
            return "" if is_streamed else f"not streamed: {row}"
        case "tools":
            return "" if WEATHER_RESULT in text else f"no tool's result: {text!r}"
        case "error":
            is_said = REFUSAL in text or str(REFUSAL_STATUS) in text
            return "" if is_said else f"not the upstream's error: {text!r}"
        case _:
            return _disconnected(model, gateway)


def _disconnected(model: ScriptedModel, gateway: GatewayProcess) -> str:
    """Return what is wrong with how the model was told that its client had gone."""
    asked = [seen for seen in model.requests if seen.path in PROTOCOLS]
    hung = [seen for seen in asked if "please hang" in read(seen).question.lower()]
    if not hung:
        return "the model was not asked"
    if not all(seen.closed.wait(CLOSED_WITHIN_S) for seen in hung):
        return "the upstream's stream was not closed"
    until = time.monotonic() + CLOSED_WITHIN_S
    while time.monotonic() < until:
        turns = gateway.get("/library/turns?newest=1000").json()["turns"]
        if any(one["state"] == "abandoned" for one in turns):
            return ""
        time.sleep(0.02)
    return "no turn is recorded as abandoned"
