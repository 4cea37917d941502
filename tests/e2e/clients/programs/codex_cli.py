"""The Codex CLI, `codex exec` and `codex exec resume`, told of the gateway as `run` tells it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from talk import (
    COUNT,
    FACT,
    FAIL,
    HANG,
    KEY,
    QUESTION,
    WEATHER,
    filler,
    leave,
    say,
    started,
)

from gateway.cli.running.programs import bases, launch

MODEL = "gpt-5"
TURNS = 5
WORDS = 9_000
"""Its instructions and tools alone take some thousand tokens."""
OPTIONS = ("--skip-git-repo-check", "--json", "-m", MODEL, "-s", "read-only")
CONFIG = ("-c", "model_providers.library.request_max_retries=0")
CONFIG += ("-c", "model_providers.library.stream_max_retries=0")


def main(base_url: str) -> None:
    origin = base_url.removesuffix("/v1")
    home = Path.cwd() / "codex"
    home.mkdir()
    environment = os.environ | {"OPENAI_API_KEY": KEY, "CODEX_HOME": str(home)}

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = ("codex", *CONFIG, "exec", *arguments)
        made = launch(command, bases(origin, to=None), environment)
        return started(made.command, made.environment)

    def codex(*arguments: str) -> str:
        """Return what the agent said, and what went wrong."""
        out, err = run(*arguments).communicate(timeout=240)
        said = []
        for line in out.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            item = row.get("item") or {}
            if item.get("type") == "agent_message":
                said.append(item["text"])
            if row.get("type") in ("error", "turn.failed"):
                said.append(json.dumps(row))
        return "\n".join(said) or err[-500:]

    def resume(prompt: str) -> str:
        return codex("resume", "--last", *OPTIONS[:4], prompt)

    said = codex(*OPTIONS, FACT)
    for turn in range(TURNS):
        said = resume(filler(turn, words=WORDS))
    say("chat", said)
    say("recall", resume(QUESTION))
    say("stream", codex(*OPTIONS, COUNT))
    say("tools", codex(*OPTIONS, WEATHER))
    say("error", codex(*OPTIONS, FAIL))
    leave(run(*OPTIONS, HANG), origin)


if __name__ == "__main__":
    main(sys.argv[2])
