"""The command `aider` with `--message`, a process for each question."""

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
    filler,
    say,
    wait_until_asked,
)

TURNS = 5
WORDS = 2_000
OPTIONS = (
    *("--model", f"openai/{MODEL}", "--no-git", "--yes-always", "--no-check-update"),
    *("--no-show-model-warnings", "--no-analytics", "--no-pretty", "--edit-format", "ask"),
    *("--restore-chat-history", "--max-chat-history-tokens", "1000000", "--map-tokens", "0"),
)


def main(base_url: str) -> None:
    environment = os.environ | {
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }

    def started(text: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["aider", *OPTIONS, "--message", text],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def aider(text: str) -> str:
        return started(text).communicate(timeout=240)[0]

    said = aider(FACT)
    for turn in range(TURNS):
        said = aider(filler(turn, words=WORDS))
    say("chat", said[-500:])
    say("recall", aider(QUESTION)[-500:])
    say("stream", aider(COUNT)[-500:])
    say("error", aider(FAIL)[-1_000:])
    hung = started(HANG)
    wait_until_asked(base_url.removesuffix("/v1"))
    hung.kill()
    hung.communicate()
    say("disconnect", "left")


if __name__ == "__main__":
    main(sys.argv[2])
