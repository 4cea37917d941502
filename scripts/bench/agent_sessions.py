"""Agent sessions with what each step needs of its past: a synthetic one, and joined real ones.

A need is a fact of an earlier message that the step at hand cannot do without, together with the
words by which the step names it. In the synthetic session, 300 steps of debugging, the facts are
lines that are nowhere else: a constant in a file that was read long ago, the signature of a
function, the cause of an error, a decision of step 40 that took back an earlier one. In real
transcripts they are values that the next call passes on and that an earlier message brought.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
STEPS = 300
DECIDED_AT, REVERSED_AT, NEEDED_AT = 12, 40, 280
PLAN_EVERY = 10
NEED_EVERY = 5
FAR_STEPS = 15
"""So many steps back a fact is past any window of some thousand tokens."""
RESULT_BYTES = (2_000, 60_000)
TASK = (
    "Customers are charged twice when a payout is retried. Find out why, mend it, and keep every "
    "other test green. Report the cause at the end."
)
SYSTEM = "You are a coding agent. Work in small steps with the tools you have."
OLD_DECISION = "Decision: the ledger keeps its times in local time."
DECISION = "Decision, in place of the one before: the ledger keeps its times in UTC, code zq-4471."
_PARTS = [
    "payout",
    "ledger",
    "invoice",
    "refund",
    "cursor",
    "tenant",
    "batch",
    "quota",
    "webhook",
    "digest",
    "export",
    "vault",
]
_ACTS = [
    "settle",
    "renew",
    "collect",
    "merge",
    "rotate",
    "expire",
    "approve",
    "replay",
    "archive",
    "compare",
]
_WORDS = [
    "value",
    "result",
    "request",
    "order",
    "entry",
    "state",
    "index",
    "offset",
    "buffer",
    "client",
    "record",
    "session",
    "token",
    "handler",
    "context",
    "limit",
    "window",
    "signal",
    "branch",
    "report",
    "worker",
    "queue",
    "retry",
    "lock",
    "total",
    "amount",
]


@dataclass(frozen=True, slots=True)
class Need:
    """What a step needs."""

    at: int
    """The step's prompt is the transcript before this message."""
    fact: str
    """Stands in an earlier message, word for word."""
    kind: str


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    messages: list[Json]
    needs: list[Need]


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    constant: str
    signature: str
    symbol: str


def synthetic(*, steps: int = STEPS, seed: int = 7) -> Session:
    """Return a debugging session; equal arguments, equal session."""
    chosen = random.Random(seed)
    made = _Making(chosen)
    for step in range(1, steps + 1):
        made.step(step)
    return Session(f"synthetic, {steps} steps", made.messages, made.needs)


class _Making:
    """A session as it grows."""

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen
        self.messages: list[Json] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": TASK},
        ]
        self.needs: list[Need] = []
        self._read: list[tuple[int, _File]] = []
        """Files with the step they were read at."""
        self._errors: list[tuple[int, str, str]] = []
        """Step, error, and the line that explains it."""

    def step(self, step: int) -> None:
        if step in (DECIDED_AT, REVERSED_AT):
            self._decide(step)
        elif step == NEEDED_AT:
            self._call("edit_file", {"path": "src/ledger/clock.py"}, "ok: 1 line changed", step)
            self._say_need(
                "Which times does the ledger keep? I write its clock.", DECISION, "decision"
            )
        elif step % NEED_EVERY == 0 and self._old():
            self._need(step)
        elif self._chosen.random() < 0.25 and self._read:
            self._fail(step)
        else:
            self._read_file(step)

    # -- steps that bring something --------------------------------------------------------------
    def _read_file(self, step: int) -> None:
        again = self._read and self._chosen.random() < 0.3
        file = self._chosen.choice(self._read)[1] if again else self._new_file()
        self._call("read_file", {"path": file.path}, self._content(file), step)
        self._read.append((step, file))

    def _new_file(self) -> _File:
        number = self._chosen.randint(1_000, 9_999)
        part, act = self._chosen.choice(_PARTS), self._chosen.choice(_ACTS)
        symbol = f"{act}_{part}_{number}"
        return _File(
            path=f"src/{part}/{act}_{number}.py",
            constant=f"{symbol.upper()} = {self._chosen.randint(10**6, 10**7)}",
            signature=f"def {symbol}(order, *, grace_s={self._chosen.randint(100, 999)}.5):",
            symbol=symbol,
        )

    def _content(self, file: _File) -> str:
        lines = list(self._code(self._size()))
        lines[len(lines) // 3] = file.constant
        lines[2 * len(lines) // 3] = file.signature
        return "\n".join(lines)

    def _size(self) -> int:
        """Return a size in bytes: most results are small, a few are huge."""
        low, high = RESULT_BYTES
        return int(low * (high / low) ** (self._chosen.random() ** 3))

    def _code(self, size: int) -> Iterator[str]:
        while size > 0:
            name, one, two = (self._chosen.choice(_WORDS) for _ in range(3))
            line = f"    {name}_{one} = self.{two}({one}, {self._chosen.randint(0, 99)})"
            size -= len(line) + 1
            yield line

    def _fail(self, step: int) -> None:
        number = self._chosen.randint(1_000, 9_999)
        error = f"{self._chosen.choice(_PARTS).title()}Mismatch{number}"
        cause = f"{error} comes of a NULL currency in row {self._chosen.randint(10**5, 10**6)}"
        lines = list(self._code(self._size()))
        lines[len(lines) // 2] = f"# {cause}"
        self._call("run_tests", {"only": f"tests/test_{number}.py"}, "\n".join(lines), step)
        self._errors.append((step, error, cause))

    def _decide(self, step: int) -> None:
        text = OLD_DECISION if step == DECIDED_AT else DECISION
        self._call("grep", {"pattern": "tzinfo"}, "src/ledger/clock.py:7: tzinfo", step, text=text)

    # -- steps that need something -------------------------------------------------------------
    def _old(self) -> list[tuple[int, _File]]:
        return self._read[: max(0, len(self._read) - FAR_STEPS)]

    def _need(self, step: int) -> None:
        newest = {file.path for _, file in self._read[-FAR_STEPS:]}
        old = [file for _, file in self._old() if file.path not in newest]
        errors = [row for row in self._errors if row[0] < step - FAR_STEPS]
        kind = self._chosen.choice(("file", "symbol", "error"))
        if kind == "error" and errors:
            _, error, cause = self._chosen.choice(errors)
            self._call("run_tests", {"only": "tests"}, f"FAILED: {error}\n1 failed", step)
            self._say_need(f"{error} again; what did it come of?", cause, kind)
        elif old:
            file = self._chosen.choice(old)
            if kind == "file":
                name = file.constant.partition(" ")[0]
                self._call("edit_file", {"path": file.path}, f"no match for {name}", step)
                self._say_need(f"I need {name} of {file.path} as it stands.", file.constant, kind)
            else:
                result = f"tests/test_api.py:88: {file.symbol}(order)"
                self._call("grep", {"pattern": file.symbol}, result, step)
                self._say_need(f"How is {file.symbol} called?", file.signature, "symbol")
        else:
            self._read_file(step)

    def _say_need(self, text: str, fact: str, kind: str) -> None:
        """Let the newest step say what it is after, and note that it needs the fact."""
        self.messages[-2]["content"] = text
        self.needs.append(Need(len(self.messages), fact, kind))

    def _call(self, name: str, arguments: Json, result: str, step: int, *, text: str = "") -> None:
        if step % PLAN_EVERY == 1:
            text = f"Plan after step {step}: 1. read the retry path 2. compare batches 3. mend it."
        call_id = f"call_{step}"
        spelled = "{" + ", ".join(f'"{key}": "{value}"' for key, value in arguments.items()) + "}"
        function = {"name": name, "arguments": spelled}
        self.messages += [
            {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]


# -- real transcripts ----------------------------------------------------------------------------
_VALUE = re.compile(r'"[a-z_]+": ?"([^"]{5,80})"')
_TELLING = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])|/")
NEAR_MESSAGES = 8
"""What came so lately needs no memory."""


def joined(name: str, transcripts: Sequence[Sequence[Json]], *, messages_max: int) -> Session:
    """Return transcripts end to end as one session, with the values that calls pass on from
    messages further back than `NEAR_MESSAGES` as needs."""
    messages: list[Json] = []
    needs: list[Need] = []
    for transcript in transcripts:
        begin = len(messages)
        for message in transcript:
            if message["role"] == "system" and messages:
                continue
            if message["role"] == "assistant":
                near = len(messages) - NEAR_MESSAGES
                past = "\n".join(
                    str(one.get("content")) for one in messages[begin : max(near, begin)]
                )
                recent = "\n".join(str(one) for one in messages[max(near, begin) :])
                needs += [
                    Need(len(messages), value, "value")
                    for value in _passed_on(message)
                    if value in past and value not in recent
                ]
            messages.append(message)
        if len(messages) >= messages_max:
            break
    return Session(f"{name}, {len(messages):,} messages", messages, needs)


def _passed_on(message: Json) -> set[str]:
    """Return the telling values of a message's calls: ids and paths, no plain words."""
    spelled = (str(call["function"]["arguments"]) for call in message.get("tool_calls") or ())
    found = {value for text in spelled for value in _VALUE.findall(text)}
    return {value for value in found if _TELLING.match(value) and "\\" not in value}
