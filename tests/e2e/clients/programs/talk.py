"""What every program says, so that all clients are asked the same. Standard library only.

A program is called `program PROTOCOL BASE_URL` - the base URL as its client wants it - and prints a
line of JSON for each step. `scripts/clients NAME` runs one against a gateway of its own.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MODEL = "gpt-4o-mini"
KEY = "sk-nobody"
FACT_NUMBER = "5582"
FACT = f"My locker has the number {FACT_NUMBER}. Remember it."
QUESTION = "What number has my locker?"
COUNT = "Count to five, please."
WEATHER = "What is the weather in Oslo? Use the tool."
WEATHER_RESULT = "rain and 7 degrees"
FAIL = "Please fail now."
HANG = "Please hang in the middle."
TURNS = 10
WORDS = [
    "orbit",
    "maple",
    "cinder",
    "harbour",
    "velvet",
    "lantern",
    "quarry",
    "meadow",
    "copper",
    "thistle",
]
WAIT_S = 30.0


def filler(turn: int, *, words: int = 200) -> str:
    """Return words that no question asks for; the same for a turn every time."""
    chosen = random.Random(turn)
    return f"Note {turn}: " + " ".join(chosen.choice(WORDS) for _ in range(words))


def say(step: str, text: Any, **more: Any) -> None:
    sys.stdout.write(json.dumps({"step": step, "text": str(text), **more}) + "\n")
    sys.stdout.flush()


def weather(city: str) -> str:
    """Return the weather of a city."""
    return WEATHER_RESULT if city == "Oslo" else "unknown"


def failed(step: Callable[[], Any]) -> str:
    """Return the error that a step ends with, in words."""
    try:
        return f"no error, but {step()}"
    except Exception as error:  # noqa: BLE001 - whatever the client makes of it is the answer
        return f"{type(error).__name__}: {error} {getattr(error, 'status_code', '')}"


def wait_until_asked(origin: str) -> None:
    """Return once a request beside this question has been under way for half a second."""
    until, seen_count = time.monotonic() + WAIT_S, 0
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{origin}/metrics", timeout=5) as reply:
            found = re.search(rb"^library_inflight_requests (.*)$", reply.read(), re.MULTILINE)
        seen_count = seen_count + 1 if found and float(found[1]) > 1 else 0
        if seen_count == 10:
            return
        time.sleep(0.05)
    raise TimeoutError("the gateway was not asked")


def started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Return an agent that runs without a terminal, with the programs that it starts in a group."""
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def leave(hung: subprocess.Popen[str], origin: str) -> None:
    """End an agent, and what it started, while the gateway answers it."""
    wait_until_asked(origin)
    os.killpg(hung.pid, signal.SIGKILL)
    hung.communicate()
    say("disconnect", "left")
