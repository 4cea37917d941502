"""The OpenCode CLI, `opencode run`: chat completions by a provider of its configuration; responses
and messages by its own providers, told of the gateway as `run` tells them."""

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
    MODEL,
    QUESTION,
    WEATHER,
    filler,
    leave,
    say,
    started,
)

from gateway.cli.running.programs import OPENCODE_CONFIG, bases, launch

MODELS = {
    "chat": f"library/{MODEL}",
    "responses": f"openai/{MODEL}",
    "messages": "anthropic/claude-sonnet-4-5",
}
TURNS = 5
WORDS = {"chat": 9_000, "responses": 9_000, "messages": 4_000}
"""Its instructions and tools alone take some thousand tokens; those of a Claude model are bounded
from above, and no message may be over the budget."""


def main(protocol: str, base_url: str) -> None:
    origin = base_url.removesuffix("/v1")
    config = {
        "model": MODELS[protocol],
        "small_model": MODELS[protocol],
        "permission": "allow",
        "autoupdate": False,
        "share": "disabled",
        "provider": {
            "library": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{origin}/v1", "apiKey": KEY},
                "models": {MODEL: {"limit": {"context": 400_000, "output": 8_000}}},
            },
            "openai": {"options": {"apiKey": KEY}},
            "anthropic": {"options": {"apiKey": KEY}},
        },
    }
    environment = os.environ | {
        OPENCODE_CONFIG: json.dumps(config),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = ("opencode", "run", "--format", "json", *arguments)
        made = launch(command, bases(origin, to=None), environment)
        return started(made.command, made.environment)

    def opencode(*arguments: str) -> str:
        """Return what the agent said, and what went wrong."""
        out, err = run(*arguments).communicate(timeout=240)
        said = []
        for line in out.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("type") == "text":
                said.append(row["part"]["text"])
            if row.get("type") == "error":
                said.append(json.dumps(row))
        return "\n".join(said) or err[-500:]

    said = opencode(FACT)
    for turn in range(TURNS):
        said = opencode("--continue", filler(turn, words=WORDS[protocol]))
    say("chat", said)
    say("recall", opencode("--continue", QUESTION))
    say("stream", opencode(COUNT))
    say("tools", opencode(WEATHER))
    say("error", opencode(FAIL))
    leave(run(HANG), origin)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
