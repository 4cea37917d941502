"""A memory for programs, with and without an event loop."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from governor import BudgetTooSmall, MalformedTranscript, SyncMemory, open_memory
from governor.memory.agent import Prompt
from governor.turn import Policy
from library import open_library
from library.embedding.hashing import HashingEmbedder
from library.embedding.opening import EmbedderOptions
from library.embedding.protocol import EmbedderUnavailable
from library.errors import StoreOwned, Unacceptable, UnknownRecord
from library.runtime.opened import LOADING_S

LONG_AGO = datetime(2019, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[SyncMemory]:
    with open_memory(path) as opened:
        yield opened


def test_what_was_added_is_retrieved_within_a_budget_with_the_reason(memory: SyncMemory) -> None:
    blue = memory.add("user", "The blue key opens the boathouse.", at=LONG_AGO, name="Ada")
    memory.add("assistant", "Noted.")
    memory.add("user", "My sister is called Ingrid.", session="family")
    found = memory.retrieve("What opens the boathouse?", budget_tokens=200)
    assert found.records[0].id == blue
    assert found.records[0].at == LONG_AGO
    assert found.records[0].reasons["lexical"] > 0
    assert found.records[0].score == pytest.approx(sum(found.records[0].reasons.values()))
    assert "The blue key opens the boathouse." in found.text
    assert 0 < found.tokens <= 200
    assert "Ingrid" not in memory.retrieve("Ingrid", session="main").text
    assert "Ingrid" in memory.retrieve("Ingrid").text


@pytest.fixture
def slow_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that takes a moment to be loaded, as all of this machine's do."""

    async def opened(*_: object) -> HashingEmbedder:
        await asyncio.sleep(0.3)
        return HashingEmbedder()

    monkeypatch.setattr(EmbedderOptions, "open", opened)


@pytest.mark.usefixtures("slow_model")
def test_the_first_question_of_a_program_waits_for_the_model_that_is_being_loaded(
    path: Path,
) -> None:
    """A short script asks once: it was always answered by words alone."""
    with open_memory(path, embedder="hashing") as memory:
        memory.add("user", "The blue key opens the boathouse.")
        found = memory.retrieve("Which kies open boathauses?")
    assert found.degraded == ()
    assert found.records[0].reasons["dense"] > 0
    with open_library(path, embedder="hashing") as library:
        assert "dense" in library.search("boathauses").hits[0].signals


@pytest.mark.usefixtures("slow_model")
def test_an_agent_waits_for_the_model_too(path: Path) -> None:
    policy = Policy(budget_tokens=600, desk_tokens=300)
    with open_memory(path, policy=policy, embedder="hashing") as memory:
        for number in range(12):
            memory.add("user", f"Note {number}: " + "glaciers move slowly down the valley. " * 8)
            memory.add("assistant", "Noted.")
    with open_memory(path, policy=policy, embedder="hashing") as memory:
        agent = memory.agent(lambda _: "Slowly.")
        agent.say("How do glaciers move?")
        assert agent.report is not None and "embedder" not in agent.report.degraded


def test_a_program_whose_model_cannot_be_had_does_not_wait_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(*_: object) -> HashingEmbedder:
        raise EmbedderUnavailable("there is none")

    monkeypatch.setattr(EmbedderOptions, "open", opened)
    with open_memory(path, embedder="hashing") as memory:
        memory.add("user", "The blue key opens the boathouse.")
        started_s = time.monotonic()
        found = memory.retrieve("boathouse")
        assert time.monotonic() - started_s < LOADING_S / 2
    assert found.degraded == ("embedder",) and found.records


async def test_what_is_laid_out_for_a_program_counts_as_used(path: Path) -> None:
    """Else retention archives what a program needs every day."""
    async with open_memory(path) as memory:
        await memory.add("user", "The blue key opens the boathouse.")
        assert (await memory.retrieve("What opens the boathouse?")).records
        await memory.library.accesses.flush()
        noted = await memory.library.store.archive.accesses([1])
    assert noted[1].used == 1


@pytest.mark.parametrize("budget_tokens", [1, 60, 100, 300])
def test_a_retrieval_never_counts_more_than_its_budget(
    memory: SyncMemory, budget_tokens: int
) -> None:
    for number in range(30):
        memory.add("user", f"The key number {number} opens the boathouse at the lake. " * 2)
    found = memory.retrieve("Which key opens the boathouse?", budget_tokens=budget_tokens)
    assert found.tokens <= budget_tokens
    assert bool(found.text) == bool(found.records)
    assert found.left_out
    assert not set(found.left_out) & {one.id for one in found.records}


def test_a_question_that_nothing_bears_on_gets_nothing(memory: SyncMemory) -> None:
    assert memory.retrieve("anything?").records == ()
    with pytest.raises(UnknownRecord):
        memory.retrieve("anything?", session="none")


def test_the_same_words_again_directly_are_a_retry_and_later_are_not(memory: SyncMemory) -> None:
    first = memory.add("user", "go on")
    assert memory.add("user", "go on") == first
    memory.add("assistant", "Done.")
    assert memory.add("user", "go on") != first


def test_only_users_and_assistants_are_remembered(memory: SyncMemory) -> None:
    for role in ("system", "tool", "wizard"):
        with pytest.raises(MalformedTranscript):
            memory.add(role, "x")


@pytest.mark.parametrize("at", ["2019-05-04", date(2019, 5, 4), datetime(2019, 5, 4), 1556938921.0])  # noqa: DTZ001
def test_when_something_was_said_is_a_moment_and_what_is_none_is_refused_by_name(
    memory: SyncMemory, at: Any
) -> None:
    with pytest.raises(Unacceptable, match="'at' must be a datetime that knows its zone, not"):
        memory.add("user", "x", at=at)
    assert memory.add("user", "x", at=LONG_AGO) == "e1"


def test_a_budget_below_zero_is_refused(memory: SyncMemory) -> None:
    memory.add("user", "The blue key opens the boathouse.")
    with pytest.raises(Unacceptable, match="'budget_tokens' must be zero or more, not -1"):
        memory.retrieve("boathouse", budget_tokens=-1)
    assert memory.retrieve("boathouse", budget_tokens=0).text == ""


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_model_that_returns_no_text_is_named_as_the_cause(
    memory: SyncMemory, is_awaited: bool
) -> None:
    async def later(_: Prompt) -> Any:
        return None

    def call_model(prompt: Prompt) -> Any:
        return later(prompt) if is_awaited else None

    agent = memory.agent(call_model)
    with pytest.raises(TypeError, match="call_model must return the answer's text, not None"):
        agent.say("hello")
    assert memory.reports()[-1]["state"] == "failed"


def test_an_agent_sends_what_fits_and_remembers_the_rest(path: Path) -> None:
    prompts: list[Prompt] = []

    def call_model(prompt: Prompt) -> str:
        prompts.append(prompt)
        return f"answer {len(prompts)}"

    with open_memory(path, policy=Policy(budget_tokens=600, desk_tokens=300)) as memory:
        agent = memory.agent(call_model, system="You are brief.")
        assert agent.say("The blue key opens the boathouse.") == "answer 1"
        for number in range(12):
            agent.say(f"Note {number}: " + "glaciers move slowly down the valley. " * 8)
        agent.say("What opens the boathouse?")
        assert agent.report is not None
        assert agent.report.prompt_tokens <= 600
        assert memory.reports()[-1]["turn_id"] == agent.report.turn_id
    assert prompts[1][0] == {"role": "system", "content": "You are brief."}
    assert [one["role"] for one in prompts[1]] == ["system", "user", "assistant", "user"]
    last = prompts[-1]
    assert len(last) < 26
    assert last[-1]["content"].endswith("What opens the boathouse?")
    assert "The blue key opens the boathouse." in last[-1]["content"]


def test_an_agent_goes_on_after_a_restart(path: Path) -> None:
    prompts: list[Prompt] = []

    def call_model(prompt: Prompt) -> str:
        prompts.append(prompt)
        return "yes"

    for words in ("first", "second"):
        with open_memory(path) as memory:
            memory.agent(call_model).say(words)
    assert [one["content"] for one in prompts[1]] == ["first", "yes", "second"]


def test_a_model_that_fails_leaves_a_turn_that_says_so(memory: SyncMemory) -> None:
    def call_model(prompt: Prompt) -> str:
        raise RuntimeError("no model")

    agent = memory.agent(call_model)
    with pytest.raises(RuntimeError, match="no model"):
        agent.say("hello")
    assert agent.report is not None
    assert agent.report.state == "failed"
    assert memory.reports()[-1]["state"] == "failed"


def test_a_prompt_that_cannot_fit_is_refused(path: Path) -> None:
    with open_memory(path, policy=Policy(budget_tokens=20)) as memory:
        agent = memory.agent(lambda prompt: "never")
        with pytest.raises(BudgetTooSmall):
            agent.say("word " * 200)


async def test_all_of_it_can_be_awaited(path: Path) -> None:
    async def call_model(prompt: Prompt) -> str:
        await asyncio.sleep(0)
        return "awaited"

    async with open_memory(path) as memory:
        await memory.add("user", "The blue key opens the boathouse.")
        found = await memory.retrieve("boathouse")
        assert len(found.records) == 1
        assert await memory.agent(call_model).say("hello") == "awaited"
        assert len(await memory.reports()) == 1


def test_two_programs_do_not_share_a_library(path: Path, memory: SyncMemory) -> None:
    with pytest.raises(StoreOwned), open_library(path):
        pass


def test_a_library_is_looked_into_without_an_event_loop(path: Path) -> None:
    with open_memory(path) as memory:
        memory.add("user", "The blue key opens the boathouse.")
        memory.add("assistant", "Noted.")
    with open_library(path) as library:
        [thread] = library.threads()
        assert [one.text for one in library.events("main")][1] == "Noted."
        assert "blue key" in library.search("boathouse").hits[0].event.text
        assert library.status()["recorded_seq"] == 2
        assert library.forget(thread["id"]) == 2
        assert library.threads() == []


async def test_a_library_is_looked_into_with_one(path: Path) -> None:
    async with open_library(path) as library:
        assert await library.store.threads(collection_id=None, limit=1) == []
