"""The loop: every set, method, conversation, question and budget, one after the other.

Each question is asked at every budget. Which budget is first goes round, because what is first
asked is not known to any cache: only those times count as the time of a question.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from gateway.bench.asking import unrelated, with_typos
from gateway.bench.conversations import Asked, Conversation, DataSet
from gateway.bench.methods import (
    MODEL,
    Asker,
    Method,
    block_tokens,
    code_of,
    identity_of,
)
from gateway.bench.remembering import RememberingEmbedder, slug
from gateway.bench.replay import Replayed, question_messages, replayed
from gateway.bench.results import Finished, keep, kept, place, tidy
from gateway.bench.scoring import Answered, Laid, summary
from governor.counting import Counters
from governor.desk.rendering import parsed_block
from governor.turn import Counter

Half = Literal["all", "even", "odd"]
REPLAYS, RESULTS = "replays", "results"
"""Folders of the cache."""
BUDGETS = (512, 1_024, 2_048, 4_096, 8_192)
REPLAYING = ("library", "gateway/wire", "gateway/bench/conversations.py", "gateway/bench/replay.py")
"""The code that a replayed library depends on."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to ask, and where to keep it."""

    cache: Path
    budgets: tuple[int, ...] = BUDGETS
    half: Half = "all"
    """Of each set's conversations, counted from 0: to choose weights on one and report the
    other."""
    typos: float = 0.0
    """Share of the words of every question that get a slip."""
    is_unrelated: bool = False
    """Ask each conversation what was asked of another one."""
    is_fresh: bool = False
    """Ask again what is kept."""


class OverBudget(Exception):
    """A method laid out more than it was allowed to."""

    def __init__(self, *, method: str, question: str, tokens: int, budget_tokens: int) -> None:
        super().__init__(f"{method} laid {tokens} tokens for {question}, allowed {budget_tokens}")


class Steps:
    """Hears how far a run is; the default says nothing."""

    def begin(self, total: int) -> None:
        """So many questions will be asked."""

    def say(self, what: str) -> None:
        """This is being worked on."""

    def advance(self, count: int) -> None:
        """So many more questions are answered."""


def chosen(data: DataSet, half: Half) -> list[tuple[int, Conversation]]:
    """Return a set's conversations of that half with their places in the file."""
    places = enumerate(data.conversations)
    return [(at, one) for at, one in places if half == "all" or at % 2 == (half == "odd")]


def questions_of(
    sets: Sequence[DataSet], options: Options
) -> dict[tuple[str, str], tuple[Asked, ...]]:
    """Return what each chosen conversation is asked, by set and conversation.

    Raises:
        NothingUnrelated: unrelated questions are wanted of a single conversation.

    """
    talks = {data.name: [one for _, one in chosen(data, options.half)] for data in sets}
    if options.is_unrelated:
        questions = unrelated(talks)
    else:
        questions = {
            (name, talk.id): talk.questions for name, half in talks.items() for talk in half
        }
    return {
        key: tuple(with_typos(one, options.typos) for one in asked)
        for key, asked in questions.items()
    }


async def run(
    sets: Sequence[DataSet],
    methods: Sequence[Method],
    *,
    options: Options,
    embedder: RememberingEmbedder | None,
    counters: Counters,
    steps: Steps,
) -> dict[str, dict[str, list[Finished]]]:
    """Return what each method answered, by its name and the set's.

    Raises:
        ReplayFailed: a conversation could not be indexed.
        NothingUnrelated: see `questions_of`.
        OverBudget: a method is wrong.

    """
    for kind in (REPLAYS, RESULTS):
        await asyncio.to_thread(tidy, options.cache / kind, now=datetime.now(UTC))
    counters.counter_for(MODEL).count("The tokenizer is loaded before anything is timed.")
    questions = questions_of(sets, options)
    steps.begin(sum(map(len, questions.values())) * len(methods))
    found: dict[str, dict[str, list[Finished]]] = {method.name: {} for method in methods}
    for data in sets:
        for at, talk in chosen(data, options.half):
            asked = questions[data.name, talk.id]
            folder = replay_folder(data, at, options, embedder)
            for method in methods:
                where = _place(data, method, asked, options)
                finished = None if options.is_fresh else kept(where)
                if finished is None:
                    steps.say(f"{data.name}: {talk.id} is told")
                    told = await replayed(talk, folder, embedder)
                    steps.say(f"{data.name}: {talk.id}, {method.name}")
                    counter = counters.counter_for(MODEL)
                    async with method.opened(talk, told, folder) as asker:
                        session = _Session(asker, method.name, told, counter, options.budgets)
                        answers = await session.all_answered(asked, steps)
                    finished = Finished(talk.id, told.index_s, answers)
                    keep(where, finished)
                else:
                    steps.advance(len(asked))
                found[method.name].setdefault(data.name, []).append(finished)
    return found


def replay_folder(
    data: DataSet, at: int, options: Options, embedder: RememberingEmbedder | None
) -> Path:
    """Return where a set's conversation is told to a library, named after all it depends on."""
    library = f"{slug(identity_of(embedder))}-{code_of(*REPLAYING)}"
    return options.cache / REPLAYS / f"{data.sha256[:12]}-{library}" / str(at)


def _place(data: DataSet, method: Method, asked: Sequence[Asked], options: Options) -> Path:
    spelled = "\n".join(f"{one.id} {one.evidence} {one.text}" for one in asked)
    budgets = ",".join(map(str, options.budgets))
    return place(options.cache / RESULTS, (data.sha256, spelled, method.identity, budgets))


@dataclass(frozen=True, slots=True)
class _Session:
    """One conversation being asked."""

    asker: Asker
    method: str
    told: Replayed
    counter: Counter
    budgets: tuple[int, ...]

    async def all_answered(self, questions: Sequence[Asked], steps: Steps) -> tuple[Answered, ...]:
        answers = []
        for number, question in enumerate(questions):
            answers.append(await self._answered(number, question))
            steps.advance(1)
        return tuple(answers)

    async def _answered(self, number: int, question: Asked) -> Answered:
        """Ask one question at each budget."""
        turn = number % len(self.budgets)
        order = (*self.budgets[turn:], *self.budgets[:turn])
        laid = {
            budget: await self._laid(question, budget, is_first=budget == order[0])
            for budget in order
        }
        return Answered(
            question.id,
            question.category,
            question.evidence,
            {budget: laid[budget] for budget in self.budgets},
        )

    async def _laid(self, question: Asked, budget: int, *, is_first: bool) -> Laid:
        desk = await self.asker.lay(question.text, budget)
        asked = question_messages(question.text)[-1]
        tokens = block_tokens(self.counter, asked, desk.block)
        if tokens > budget:
            raise OverBudget(
                method=self.method, question=question.id, tokens=tokens, budget_tokens=budget
            )
        records = parsed_block(desk.block)
        ids = self.told.message_ids
        whole = {ids[one.id] for one in records if one.id in ids and not one.part}
        parts = {ids[one.id] for one in records if one.id in ids and one.part} - whole
        return Laid(
            tokens=tokens,
            record_count=len(records),
            whole=tuple(one for one in question.evidence if one in whole),
            parts=tuple(one for one in question.evidence if one in parts),
            ms=round(desk.ms, 3),
            is_first=is_first,
            degraded=desk.degraded,
        )


def report(
    sets: Sequence[DataSet],
    found: Mapping[str, Mapping[str, Sequence[Finished]]],
    *,
    command: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all figures of a run, to be written as JSON."""
    return {
        "command": command,
        "tokenizer": "o200k_base",
        "settings": dict(settings),
        "sets": [
            {
                "name": data.name,
                "sha256": data.sha256,
                "conversations": len(data.conversations),
                "messages": sum(len(one.messages) for one in data.conversations),
                "questions": sum(len(one.questions) for one in data.conversations),
                "labels_left_out": data.labels_left_out,
                "questions_left_out": data.questions_left_out,
            }
            for data in sets
        ],
        "methods": {
            name: {data: _summed_up(finished) for data, finished in by_set.items()}
            for name, by_set in found.items()
        },
    }


def _summed_up(finished: Sequence[Finished]) -> dict[str, Any]:
    answers = [answer for one in finished for answer in one.answers]
    lacks = {lack for one in answers for laid in one.laid.values() for lack in laid.degraded}
    return {
        "conversations": len(finished),
        "index_s": round(sum(one.index_s for one in finished), 1),
        "degraded": sorted(lacks),
        "categories": summary(answers),
    }
