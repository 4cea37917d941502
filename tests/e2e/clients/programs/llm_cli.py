"""The command `llm`, a process for each question, as its user would run it."""

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
    say,
    wait_until_asked,
)

TURNS = 5
"""Each is a process; longer texts make up for it."""
WORDS = 400
TOOL = """def get_weather(city: str) -> str:
    "Return the weather of a city."
    return "rain and 7 degrees" if city == "Oslo" else "unknown"
"""


def main(base_url: str) -> None:
    environment = os.environ | {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": KEY}

    def llm(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["llm", "-m", MODEL, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = llm(FACT)
    for turn in range(TURNS):
        done = llm("-c", filler(turn, words=WORDS))
    say("chat", done.stdout, errors=done.stderr)
    say("recall", llm("-c", QUESTION).stdout)
    say("stream", llm(COUNT).stdout)
    say("tools", llm("--functions", TOOL, WEATHER).stdout)
    done = llm("--no-stream", FAIL)
    say("error", f"{done.returncode} {done.stdout}{done.stderr}")
    hung = subprocess.Popen(
        ["llm", "-m", MODEL, HANG],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until_asked(base_url.removesuffix("/v1"))
    hung.kill()
    hung.wait()
    say("disconnect", "left")


if __name__ == "__main__":
    main(sys.argv[2])
