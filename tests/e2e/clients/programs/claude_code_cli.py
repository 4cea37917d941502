"""Claude Code, `claude --print` and `--continue`, told of the gateway as `run` tells it."""

import json
import os
import subprocess
import sys

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

MODEL = "claude-sonnet-4-5"
TURNS = 5
WORDS = 5_000
"""Of a turn; five of them and its own instructions are over its budget (clients.toml)."""
OPTIONS = ("--model", MODEL, "--output-format", "json", "--allowed-tools", "Bash")


def main(base_url: str) -> None:
    environment = os.environ | {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_SMALL_FAST_MODEL": MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }

    def run(prompt: str, *arguments: str) -> subprocess.Popen[str]:
        command = ("claude", "--print", *OPTIONS, *arguments, "--", prompt)
        made = launch(command, bases(base_url, to=None), environment)
        return started(made.command, made.environment)

    def claude(prompt: str, *arguments: str) -> str:
        """Return what the agent said, and what went wrong."""
        out, err = run(prompt, *arguments).communicate(timeout=240)
        row = json.loads(out) if out.startswith("{") else {}
        return str(row.get("result") or f"{out}{err}"[-500:])

    said = claude(FACT)
    for turn in range(TURNS):
        said = claude(filler(turn, words=WORDS), "--continue")
    say("chat", said)
    say("recall", claude(QUESTION, "--continue"))
    say("stream", claude(COUNT))
    say("tools", claude(WEATHER))
    say("error", claude(FAIL))
    leave(run(HANG), base_url)


if __name__ == "__main__":
    main(sys.argv[2])
