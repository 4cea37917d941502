"""How much of each prompt a provider's cache already holds, for our policies and peers' strategies.

Conversations are replayed turn by turn through the real governor on a real store, as a client
would that sends its whole transcript every time. At the end of a labelled one its questions are
asked, each as the next turn, and what of the evidence is in the prompt is counted, be it recent or
on the desk. Recall is by words alone: prefixes do not hang on vectors.

Pauses between messages are ignored: no cache goes cold on the way. Costs are in tokens at the plain
price: what a prompt shares with the last one costs a tenth, the rest a quarter more than plain
(what writing to a cache costs), as providers charge in 2025-26. Only turns count whose transcript
is above the budget.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from gateway.bench.conversations import Asked
from gateway.bench.replay import PLACEHOLDER, opened
from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from governor import Clock, Governor, Outcome, Policy, TurnRequest
from governor.counting import Counters
from governor.desk.rendering import parsed_block
from governor.message import Message
from governor.turn import Counter, PlannedMessage, PreparedTurn
from library.library import Library
from library.records import TurnState
from library.retrieval.ranking import PRESETS
from library.store.encoding import event_id
from scripts.bench.prefix_prompts import (
    PEERS,
    Peer,
    Prompt,
    desk_in_system,
    piece,
    shared_tokens,
    tokens_of,
)
from scripts.bench.prefix_sessions import Corpus, Session, corpora

MODEL = "gpt-4o"
NAME = "bench"
BUDGET_TOKENS, DESK_TOKENS = 8_000, 2_000
READ, WRITE = 0.1, 1.25
INDEX_TIMEOUT_S = 60.0
EVERY_TURN = "user, every-turn"
POLICIES: dict[str, Policy] = {
    EVERY_TURN: Policy(placement="user", replacement="every-turn", cache_idle_s=0),
    "user, focus": Policy(placement="user", replacement="focus", cache_idle_s=0),
    "system, focus": Policy(placement="system", replacement="focus", cache_idle_s=0),
    "attached, every-turn": Policy(placement="attached", replacement="every-turn", cache_idle_s=0),
    "attached, focus": Policy(placement="attached", replacement="focus", cache_idle_s=0),
}
IN_SYSTEM = "desk in system every turn"


@dataclass
class Tally:
    """What one strategy did to the prompts of one corpus."""

    prompt_tokens: int = 0
    """Of all prompts of transcripts above the budget: the others go out as they came."""
    shared_tokens: int = 0
    prompts: int = 0
    recalls: list[float] = field(default_factory=list)
    over_budget: int = 0
    before: Prompt = field(default_factory=list)

    def add(self, prompt: Prompt, counter: Counter, *, is_counted: bool) -> None:
        tokens = tokens_of(prompt) + counter.prompt_overhead_tokens
        self.over_budget += tokens > BUDGET_TOKENS
        if is_counted:
            self.prompts += 1
            self.prompt_tokens += tokens
            self.shared_tokens += shared_tokens(self.before, prompt, counter)
        self.before = prompt

    def row(self) -> dict[str, float | int | None]:
        rest = self.prompt_tokens - self.shared_tokens
        count = max(1, self.prompts)
        return {
            "shared_share": round(self.shared_tokens / max(1, self.prompt_tokens), 4),
            "mean_prompt_tokens": round(self.prompt_tokens / count),
            "mean_cost": round((READ * self.shared_tokens + WRITE * rest) / count),
            "recall": round(sum(self.recalls) / len(self.recalls), 4) if self.recalls else None,
            "questions": len(self.recalls),
            "over_budget": self.over_budget,
        }


@dataclass
class Talk:
    """One session going through one governor."""

    session: Session
    policy: Policy
    governor: Governor
    library: Library
    counter: Counter
    now: datetime

    async def prepare(self, messages: Sequence[Message]) -> PreparedTurn:
        return await self.governor.prepare(
            TurnRequest(
                turn_id=uuid4().hex,
                collection=NAME,
                session_id=self.session.name,
                identified_by=NAME,
                model=MODEL,
                upstream=NAME,
                messages=tuple(messages),
                schemas=(),
                reply_tokens=None,
                policy=self.policy,
                counter=self.counter,
                dialect=chat_dialect,
            )
        )

    async def answer(self, turn: PreparedTurn, reply: Message) -> None:
        await self.governor.commit(turn, Outcome(TurnState.DONE, replies=(reply,)))
        assert turn.recorded is not None
        if not await self.library.wait_indexed(turn.recorded.thread_no, INDEX_TIMEOUT_S):
            raise TimeoutError(f"{self.session.name} was not indexed")


@asynccontextmanager
async def talking(session: Session, policy: Policy, counters: Counters) -> AsyncIterator[Talk]:
    with TemporaryDirectory(prefix="library-of-context-bench-", ignore_cleanup_errors=True) as at:
        async with opened(Path(at), embedder=None, weights=PRESETS["measured"]) as library:
            clock = Clock(now=lambda: talk.now, monotonic_s=time.monotonic)
            governor = Governor(library, clock, counters)
            counter = counters.counter_for(MODEL)
            talk = Talk(session, policy, governor, library, counter, session.times[0])
            yield talk


def plan_of(turn: PreparedTurn, messages: Sequence[Message]) -> Sequence[PlannedMessage]:
    return turn.plan if turn.plan is not None else [PlannedMessage(one) for one in messages]


async def replay(talk: Talk, tallies: Sequence[Tally]) -> None:
    """Replay one session; the second tally, if any, is of the prompts with the desk moved into
    the system text."""
    session = talk.session
    for tally in tallies:
        tally.before = []
    for at in session.turns():
        talk.now = session.times[at - 1]
        sent = session.messages[:at]
        turn = await talk.prepare(sent)
        plan = plan_of(turn, sent)
        prompts = ([piece(talk.counter, one) for one in plan], desk_in_system(plan, talk.counter))
        for tally, prompt in zip(tallies, prompts, strict=False):
            is_counted = turn.report.client_tokens > BUDGET_TOKENS
            tally.add(prompt, talk.counter, is_counted=is_counted)
        await talk.answer(turn, session.messages[at])
    talk.now = session.times[-1] + timedelta(minutes=1)
    # The store keeps the words that it was told first: nobody's.
    await talk.prepare((*session.messages, message_of(PLACEHOLDER)))
    for question in session.questions:
        share = await recalled(talk, question)
        for tally in tallies:
            tally.recalls.append(share)


async def recalled(talk: Talk, question: Asked) -> float:
    """Return the share of a question's evidence that is in its prompt, some of it at least.

    To the store all questions are one message, and none of their turns is ended: so no question
    sees another.
    """
    sent = (*talk.session.messages, as_asked(question))
    turn = await talk.prepare(sent)
    assert turn.recorded is not None
    ids = dict(zip(spoken_ids(talk.session), turn.recorded.event_seqs, strict=False))
    plan = plan_of(turn, sent)
    there = {one.message.digest for one in plan if one.message.digest}
    laid = {record.id for one in plan for record in parsed_block(one.before)}
    digests = dict(zip(talk.session.ids, talk.session.messages, strict=True))
    return sum(
        digests[label].digest in there or event_id(ids[label], None) in laid
        for label in question.evidence
    ) / len(question.evidence)


def as_asked(question: Asked) -> Message:
    asked = message_of({"role": "user", "content": question.text})
    return replace(asked, digest=message_of(PLACEHOLDER).digest)


def spoken_ids(session: Session) -> list[str]:
    """Return the ids of the messages that are stored as events."""
    return [one for one, said in zip(session.ids, session.messages, strict=True) if said.digest]


def replay_peer(session: Session, peer: Peer, counter: Counter, tally: Tally) -> None:
    tally.before = []
    for at in session.turns():
        whole_tokens = sum(map(counter.message, session.messages[:at]))
        is_counted = whole_tokens + counter.prompt_overhead_tokens > BUDGET_TOKENS
        prompt = peer(session.messages[:at], counter, BUDGET_TOKENS)
        tally.add(prompt, counter, is_counted=is_counted)
    digests = dict(zip(session.ids, session.messages, strict=True))
    for question in session.questions:
        sent = (*session.messages, as_asked(question))
        there = {one.digest for one in peer(sent, counter, BUDGET_TOKENS)}
        found = [digests[label].digest in there for label in question.evidence]
        tally.recalls.append(sum(found) / len(found))


def measured(corpus: Corpus, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a row for each strategy."""
    counters = Counters()
    counter = counters.counter_for(MODEL)
    tallies: dict[str, Tally] = {}
    for name, peer in PEERS.items():
        tallies[name] = Tally()
        for session in corpus.sessions:
            replay_peer(session, peer, counter, tallies[name])

    async def run(policy: Policy, told: Sequence[Tally]) -> None:
        for session in corpus.sessions:
            async with talking(session, policy, counters) as talk:
                await replay(talk, told)

    for name in names:
        told = [tallies.setdefault(name, Tally())]
        if name == EVERY_TURN:
            told.append(tallies.setdefault(IN_SYSTEM, Tally()))
        asyncio.run(run(POLICIES[name], told))
    return {name: tally.row() for name, tally in tallies.items()}


def shown(rows: dict[str, dict[str, Any]]) -> str:
    lines = [f"  {'':28}  shared  prompt    cost  recall"]
    for name, row in rows.items():
        recall = "     -" if row["recall"] is None else f"{row['recall']:6.4f}"
        over = f"  ({row['over_budget']} over budget)" if row["over_budget"] else ""
        lines.append(
            f"  {name:28}  {row['shared_share']:6.4f}  {row['mean_prompt_tokens']:6}  "
            f"{row['mean_cost']:6}  {recall}{over}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="scripts/bench/prefix")
    parser.add_argument("--data", type=Path, required=True, help="the folder of conversations")
    parser.add_argument("--quick", action="store_true", help="the first session, 40 questions")
    parser.add_argument(
        "--from", dest="first", type=int, default=0, help="the first session to replay, from 0"
    )
    parser.add_argument("--sessions", type=int, default=3, help="how many of each kind (3)")
    parser.add_argument("--only", default="", help="corpora whose names hold this")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="default: all")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    sessions, questions = (1, 40) if options.quick else (options.sessions, 100)
    upto = options.first + sessions
    found = corpora(options.data, sessions_max=upto, questions_max=questions)
    found = [replace(one, sessions=one.sessions[options.first :]) for one in found]
    results = {}
    for corpus in (one for one in found if options.only in one.name and one.sessions):
        turns = sum(1 for session in corpus.sessions for _ in session.turns())
        sys.stdout.write(f"{corpus.name}: {len(corpus.sessions)} sessions, {turns} turns\n")
        sys.stdout.flush()
        results[corpus.name] = measured(corpus, options.policy or list(POLICIES))
        sys.stdout.write(f"{shown(results[corpus.name])}\n")
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
