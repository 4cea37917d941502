"""One conversation with a real model, by the server's own timings: ours against a sliding window.

SmolLM2-135M under llama.cpp (scripts/install-models), which keeps what it read of the last prompt
and reads on from where the next one differs. A user says the same things twice: through the gateway
with its default policy, sending the whole transcript each time; and without it, as a client that
sends the newest messages that fit the same budget. The model's own replies are the transcript's.
Counted are turns whose transcript is above the budget; each way has a server of its own.

The figures are the server's: `timings.prompt_n`, the tokens of the prompt that it had to read, and
`prompt_ms`, to which the first token's own time is added. Figures of other machines are not
comparable; ratios within one run are.
"""

import argparse
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scripts.bench.conversations import text
from scripts.bench.servers import ROOT, all_stopped, start_gateway, wait_for
from tests.e2e.small_model import MODEL, REASON, is_installed, small_model

BUDGET_TOKENS = 500
TURNS = 10
"""Above the budget; those before are sent too, and not counted."""
USER_WORDS = 28
REPLY_TOKENS = 12
SLIDING_MESSAGES = 20
"""As many as chat front ends keep by default, or fewer where they do not fit."""
TEMPLATE_TOKENS = 8
"""What this model's chat template puts around a message, at most."""
ASKS_EVERY = 3
"""Every third message asks for something that was said long before."""
TIMEOUT_S = 600.0
SETTINGS = f"""
[models."{MODEL}"]
tokenizer = "upstream"
window_tokens = 2048
"""

OURS, THEIRS = "through us", "sliding window"

Message = dict[str, Any]
Sent = Callable[[list[Message], list[int]], list[Message]]
"""Returns what a client sends of its transcript, whose messages have so many tokens."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the server tells of one prompt."""

    prompt_tokens: int
    read_tokens: int
    """Of them, those that it did not have from the last prompt."""
    first_token_ms: float


def posted(url: str, body: Message) -> tuple[Message, dict[str, str]]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer), dict(answer.headers)


def asked(base_url: str, messages: Sequence[Message]) -> tuple[str, Turn]:
    """Return the reply and what the server told of it."""
    body = {"model": MODEL, "messages": messages, "max_tokens": REPLY_TOKENS, "temperature": 0}
    answer, _ = posted(f"{base_url}/chat/completions", body)
    told, usage = answer["timings"], answer["usage"]
    token_ms = told["predicted_ms"] / max(1, told["predicted_n"])
    turn = Turn(usage["prompt_tokens"], told["prompt_n"], told["prompt_ms"] + token_ms)
    return answer["choices"][0]["message"]["content"] or "...", turn


def said(turn: int) -> str:
    """Return what the user says in a turn."""
    if turn and turn % ASKS_EVERY == 0:
        return f"Message {turn}: what was in note {turn // ASKS_EVERY}, about {_topic(turn)}?"
    return f"Message {turn}. {text(turn, words=USER_WORDS)}"


def _topic(turn: int) -> str:
    return " ".join(text(turn // ASKS_EVERY, words=USER_WORDS).split()[4:10])


def tokens_of(origin: str, message: Message) -> int:
    answer, _ = posted(f"{origin}/tokenize", {"content": message["content"]})
    return len(answer["tokens"]) + TEMPLATE_TOKENS


def newest(messages: Sequence[Message], tokens: Sequence[int]) -> list[Message]:
    """Return the newest messages that fit, from one of the user's on."""
    left, start = BUDGET_TOKENS, len(messages)
    while start and left >= tokens[start - 1] and len(messages) - start < SLIDING_MESSAGES:
        start -= 1
        left -= tokens[start]
    while messages[start]["role"] != "user":
        start += 1
    return list(messages[start:])


class Talk:
    """One conversation on one server."""

    def __init__(self, origin: str, base_url: str, sent: Sent) -> None:
        """`origin` is the model's server, `base_url` where the client sends its requests."""
        self._origin = origin
        self._base_url = base_url
        self._sent = sent
        self._messages: list[Message] = []
        self._tokens: list[int] = []
        self.counted: list[Turn] = []

    def step(self, words: str) -> None:
        """Say it and be answered; count the turn if the transcript is above the budget."""
        self._add("user", words)
        is_counted = sum(self._tokens) > BUDGET_TOKENS
        reply, turn = asked(self._base_url, self._sent(self._messages, self._tokens))
        if is_counted:
            self.counted.append(turn)
        self._add("assistant", reply)

    def _add(self, role: str, words: str) -> None:
        self._messages.append({"role": role, "content": words})
        self._tokens.append(tokens_of(self._origin, self._messages[-1]))


def measured(folder: Path, turns: int) -> dict[str, list[Turn]]:
    """Return the turns of each way, taken by turns, so that what else the machine does falls on
    both alike."""
    config = folder / "library-of-context.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    with small_model() as ours, small_model() as theirs:
        gateway = start_gateway(
            int(ours.rpartition(":")[2]),
            folder / "library.db",
            budget_tokens=BUDGET_TOKENS,
            config=config,
        )
        wait_for(gateway, "/readyz")
        talks = {
            OURS: Talk(ours, f"http://127.0.0.1:{gateway.port}/v1", lambda messages, _: messages),
            THEIRS: Talk(theirs, f"{theirs}/v1", newest),
        }
        number = 0
        while any(len(talk.counted) < turns for talk in talks.values()):
            for talk in talks.values():
                talk.step(said(number))
            number += 1
        gateway.stop()
    return {name: talk.counted for name, talk in talks.items()}


def row(turns: Sequence[Turn]) -> dict[str, float]:
    """Return the means, and the median wait."""
    count = len(turns)
    return {
        "prompt_tokens": sum(one.prompt_tokens for one in turns) / count,
        "read_tokens": sum(one.read_tokens for one in turns) / count,
        "first_token_ms": sum(one.first_token_ms for one in turns) / count,
        "first_token_p50_ms": median(one.first_token_ms for one in turns),
    }


def shown(rows: dict[str, dict[str, float]]) -> str:
    lines = [f"  {'':18}{'prompt':>8}{'read':>8}{'first token ms, mean / p50':>30}"]
    for name, one in rows.items():
        wait = f"{one['first_token_ms']:.0f} / {one['first_token_p50_ms']:.0f}"
        lines.append(f"  {name:18}{one['prompt_tokens']:>8.0f}{one['read_tokens']:>8.0f}{wait:>30}")
    ours, theirs = rows[OURS], rows[THEIRS]
    lines.append(
        f"  read: 1/{theirs['read_tokens'] / ours['read_tokens']:.1f}; first token: "
        f"1/{theirs['first_token_ms'] / ours['first_token_ms']:.1f} at the mean, "
        f"1/{theirs['first_token_p50_ms'] / ours['first_token_p50_ms']:.1f} at the median"
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="scripts/bench/llama")
    parser.add_argument("--turns", type=int, default=TURNS, help="above the budget, each way")
    options = parser.parse_args()
    if not is_installed():
        sys.stderr.write(f"{REASON}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, all_stopped():
        rows = {name: row(found) for name, found in measured(Path(folder), options.turns).items()}
    sys.stdout.write(
        f"{MODEL}, budget {BUDGET_TOKENS}, {options.turns} turns above it each way, load "
        f"{os.getloadavg()[0]:.1f}\n{shown(rows)}\n"
    )
    return 0


if __name__ == "__main__":
    assert Path.cwd() == ROOT, "run scripts/bench/llama"
    sys.exit(main())
