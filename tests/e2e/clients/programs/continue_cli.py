"""The Continue CLI, `cn -p` and `cn -p --resume`, with a configuration file of its own."""

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
    MODEL,
    QUESTION,
    WEATHER,
    filler,
    leave,
    say,
    started,
)

TURNS = 5
WORDS = {"chat": 9_000, "responses": 9_000, "messages": 4_000}
"""Its instructions and tools alone take some thousand tokens; those of a Claude model are bounded
from above, and no message may be over the budget."""
NO_TELEMETRY = {"CONTINUE_TELEMETRY_ENABLED": "0", "DO_NOT_TRACK": "1"}


def config(protocol: str, base_url: str) -> str:
    """Return a configuration; JSON is YAML, too."""
    origin = base_url.removesuffix("/v1")
    model = {
        "name": "library",
        "provider": "anthropic" if protocol == "messages" else "openai",
        "model": "claude-sonnet-4-5" if protocol == "messages" else MODEL,
        "apiBase": f"{origin}/v1/" if protocol == "messages" else f"{origin}/v1",
        "apiKey": KEY,
        "useResponsesApi": False,
        "roles": ["chat"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": 400_000, "maxTokens": 4_000},
    }
    return json.dumps({"name": "ours", "version": "1.0.0", "schema": "v1", "models": [model]})


def main(protocol: str, base_url: str) -> None:
    origin = base_url.removesuffix("/v1")
    file = Path.cwd() / "config.yaml"
    file.write_text(config(protocol, base_url), encoding="utf-8")

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = ("cn", "-p", "--config", str(file), "--auto", *arguments)
        return started(command, os.environ | NO_TELEMETRY)

    def cn(*arguments: str) -> str:
        """Return what the agent said, or what went wrong."""
        out, err = run(*arguments).communicate(timeout=240)
        return out.strip() or err[-500:]

    said = cn(FACT)
    for turn in range(TURNS):
        said = cn("--resume", filler(turn, words=WORDS[protocol]))
    say("chat", said)
    say("recall", cn("--resume", QUESTION))
    say("stream", cn(COUNT))
    say("tools", cn(WEATHER))
    say("error", cn(FAIL))
    leave(run(HANG), origin)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
