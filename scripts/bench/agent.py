"""`scripts/bench/agent`: the share of needed earlier facts that a step's prompt holds.

Each step of a session is one request with the whole transcript, as agents send it; the governor
records, pages and answers for it in this process, with words alone (no embedder: 300 steps of tool
output would take a model minutes). At a step that needs an earlier fact it is looked up whether the
fact stands in the prompt, word for word. Beside it the same prompts are made by what agents do
without a memory: the newest messages that fit (a sliding window behind the task), and clearing the
oldest tool results until the rest fits.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from governor.counting import Counters
from governor.governor import Clock, Governor
from governor.message import Message
from governor.turn import Counter, Outcome, Policy, TurnRequest
from library.library import Library
from library.records import TurnState
from library.runtime.options import LibraryOptions
from scripts.bench.agent_sessions import Json, Need, Session, joined, synthetic

MODEL = "gpt-4o"
BUDGETS = (8_000, 32_000)
CLEARED = "[Old tool result content cleared]"
METHODS = ("library", "window", "clear")


@dataclass(slots=True)
class Found:
    """What a session came to at one budget."""

    hits: dict[str, dict[str, list[bool]]]
    """Method -> kind -> whether each fact was there."""
    shares: list[float]
    """Of each prompt of the library, what it has in common with the one before."""


async def measured(session: Session, budget_tokens: int) -> Found:
    """Return what was found at every need of a session."""
    counters = Counters()
    counter = counters.counter_for(MODEL)
    messages = tuple(map(message_of, session.messages))
    found = Found({method: defaultdict(list) for method in METHODS}, [])
    needs = _by_place(session.needs)
    with tempfile.TemporaryDirectory(prefix="agent-bench-") as folder:
        options = LibraryOptions(db=Path(folder) / "library.db", embedder="none")
        library = await Library.open(options)
        clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
        governor = Governor(library, clock, counters)
        try:
            for at, message in enumerate(session.messages):
                if message["role"] != "assistant":
                    continue
                prompt, share = await _prompt(governor, messages[:at], counter, budget_tokens)
                if share is not None:
                    found.shares.append(share)
                for need in needs.get(at, ()):
                    found.hits["library"][need.kind].append(need.fact in prompt)
                    for method, kept in (("window", window), ("clear", clear)):
                        words = kept(messages[:at], counter, budget_tokens)
                        found.hits[method][need.kind].append(need.fact in words)
        finally:
            await library.close()
    return found


async def _prompt(
    governor: Governor,
    messages: tuple[Message, ...],
    counter: Counter,
    budget_tokens: int,
) -> tuple[str, float | None]:
    """Return all words of the prompt that the governor makes of a transcript, and the share of it
    that extends the last one's prefix."""
    request = TurnRequest(
        turn_id=f"turn-{len(messages)}",
        collection="bench",
        session_id="agent",
        identified_by="bench",
        model=MODEL,
        upstream="bench",
        messages=messages,
        schemas=(),
        reply_tokens=None,
        policy=Policy(
            budget_tokens=budget_tokens,
            protected_tokens=budget_tokens // 8,
            desk_tokens=budget_tokens // 4,
            is_strict_freshness=True,
        ),
        counter=counter,
        dialect=chat_dialect,
    )
    turn = await governor.prepare(request)
    await governor.commit(turn, Outcome(TurnState.DONE))
    if turn.plan is None:
        return "\n".join(_words(messages)), turn.report.prefix_share
    sent = [chat_dialect.written(planned) for planned in turn.plan]
    return "\n".join(_words(sent)), turn.report.prefix_share


def _words(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield from message.counted


def _by_place(needs: Sequence[Need]) -> dict[int, list[Need]]:
    placed: dict[int, list[Need]] = defaultdict(list)
    for need in needs:
        placed[need.at].append(need)
    return placed


# -- without a memory ------------------------------------------------------------------------------
def window(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> str:
    """Return the words of system text, task and the newest messages that fit."""
    kept, left = _task(messages, counter, budget_tokens)
    words = []
    for message in reversed(messages):
        left -= counter.message(message)
        if left < 0:
            break
        words.append("\n".join(message.counted))
    return "\n".join((*kept, *reversed(words)))


def clear(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> str:
    """Return the words with the oldest tool results cleared until they fit; then the oldest
    messages go."""
    shown = list(messages)
    total = sum(map(counter.message, shown))
    gone = message_of({"role": "tool", "tool_call_id": "x", "content": CLEARED})
    for at, message in enumerate(shown):
        if total <= budget_tokens:
            break
        if message.role == "tool":
            total += counter.message(gone) - counter.message(message)
            shown[at] = gone
    return window(shown, counter, budget_tokens)


def _task(
    messages: Sequence[Message], counter: Counter, budget_tokens: int
) -> tuple[list[str], int]:
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    kept = [*(one for one in messages[:1] if one.role == "system"), messages[last]]
    return list(_words(kept)), budget_tokens - sum(map(counter.message, kept))


# -- telling ---------------------------------------------------------------------------------------
def table(rows: Sequence[tuple[str, int, Found]]) -> str:
    """Return the shares as a table, a line for each session, budget and kind of need."""
    lines = [f"| session | budget | needs | {' | '.join(METHODS)} | prefix |"]
    lines.append("| --- | ---: | --- |" + " ---: |" * (len(METHODS) + 1))
    for name, budget, found in rows:
        kinds = [*found.hits[METHODS[0]]]
        for kind in [*kinds, "all"] if len(kinds) > 1 else kinds:
            wanted = kinds if kind == "all" else [kind]
            hits = {m: [hit for one in wanted for hit in found.hits[m][one]] for m in METHODS}
            shares = [f"{sum(hits[m]) / len(hits[m]):.2f}" for m in METHODS]
            shares.append(f"{sum(found.shares) / max(1, len(found.shares)):.2f}")
            cells = [name, f"{budget:,}", f"{len(hits[METHODS[0]])} x {kind}", *shares]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def transcripts(folder: Path) -> Iterator[Session]:
    """Yield a session of each file of transcripts."""
    for path in sorted((folder / "transcripts").glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            read: list[list[Json]] = [json.loads(line)["messages"] for line in lines]
        session = joined(path.stem, read, messages_max=600)
        if session.needs:
            yield session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with transcripts/*.jsonl")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--steps", type=int, default=300, help="of the synthetic session")
    given = parser.parse_args()
    sessions = [synthetic(steps=given.steps)]
    if given.data is not None:
        sessions += transcripts(given.data)
    rows = [
        (session.name, budget, asyncio.run(measured(session, budget)))
        for session in sessions
        for budget in map(int, given.budgets.split(","))
    ]
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
