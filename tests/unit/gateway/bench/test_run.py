"""Conversations made by hand through the real library and governor, with known answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.bench.baselines import baselines
from gateway.bench.conversations import Asked, Conversation, DataSet, Said
from gateway.bench.methods import Asker, Desk, Method, TheLibrary
from gateway.bench.missing import explanations, lines
from gateway.bench.remembering import RememberingEmbedder
from gateway.bench.replay import Replayed, copied, question_messages, replayed
from gateway.bench.results import Finished
from gateway.bench.run import Options, OverBudget, Steps, chosen, run
from gateway.bench.scoring import summary
from governor.counting import Counters
from governor.desk.rendering import DESK_TAG, Record, rendered_block
from library.embedding.hashing import HashingEmbedder
from library.retrieval.ranking import PRESETS

DAY = datetime(2025, 3, 1, 10, tzinfo=UTC)
CHATTER = (
    "The weather was mild and nothing happened, number {at}.",
    "I see, tell me more about number {at}.",
)
ESSAY = " ".join(f"Sentence {at} of the essay speaks of porcelain." for at in range(120))


def talk(name: str, facts: dict[int, str], questions: dict[str, tuple[str, ...]]) -> Conversation:
    """Return sixty messages of chatter in three sessions, some of them facts."""
    messages = tuple(
        Said(
            id=f"m{at}",
            session=str(at // 20),
            at=DAY + timedelta(days=at // 20, minutes=at),
            role=("user", "assistant")[at % 2],
            name=("Ingrid", "Otto")[at % 2],
            text=facts.get(at, CHATTER[at % 2].format(at=at)),
        )
        for at in range(60)
    )
    asked = tuple(
        Asked(f"{name}/{text}", "facts", text, labels) for text, labels in questions.items()
    )
    return Conversation(name, messages, asked)


FIRST = talk(
    "first",
    {
        7: "The boathouse key lies under the blue flowerpot.",
        30: ESSAY,
        59: "My walnut allergy was found in Lisbon.",
    },
    {
        "Where is the boathouse key?": ("m7",),
        "Where was the walnut allergy found?": ("m59",),
        "What speaks of porcelain in sentence 40?": ("m30",),
    },
)
SECOND = talk("second", {3: "Heron ships in May."}, {"When does Heron ship?": ("m3",)})
DATA = DataSet("hand", "0" * 64, (FIRST, SECOND), 0, 0)


COUNTERS = Counters()


def library() -> TheLibrary:
    weights = PRESETS["measured"]
    return TheLibrary("measured", weights=weights, embedder=None, counters=COUNTERS)


async def run_with(
    *methods: Method,
    options: Options,
    steps: Steps | None = None,
    embedder: RememberingEmbedder | None = None,
) -> dict[str, dict[str, list[Finished]]]:
    return await run(
        [DATA],
        methods,
        options=options,
        embedder=embedder,
        counters=COUNTERS,
        steps=steps or Steps(),
    )


async def answered(options: Options, steps: Steps | None = None) -> list[Finished]:
    found = await run_with(library(), options=options, steps=steps)
    return found["measured"]["hand"]


async def test_what_answers_a_question_is_found_and_counted(tmp_path: Path) -> None:
    finished = await answered(Options(cache=tmp_path, budgets=(60, 700)))
    first, second = finished
    key, allergy, essay = first.answers
    assert key.laid[700].whole == ("m7",)
    assert allergy.laid[700].whole == ("m59",), "the newest message of all is found too"
    assert (essay.laid[700].whole, essay.laid[700].parts) == ((), ("m30",))
    assert second.answers[0].laid[700].whole == ("m3",)
    assert all(one.laid[60].record_count == 0 for one in first.answers), "a frame alone fills it"
    figures = summary([*first.answers, *second.answers])["all"]["budgets"]["700"]
    assert (figures["recall_whole"], figures["recall_passage"]) == (0.75, 1.0)
    assert not any(laid.degraded for one in first.answers for laid in one.laid.values())


async def test_no_desk_takes_more_than_it_may_and_the_budget_is_used(tmp_path: Path) -> None:
    finished = await answered(Options(cache=tmp_path, budgets=(250, 500)))
    for one in finished[0].answers:
        for budget, laid in one.laid.items():
            assert laid.tokens <= budget
    assert max(one.laid[500].tokens for one in finished[0].answers) > 300


async def test_a_question_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "replay"
    told = await replayed(FIRST, folder, None)
    method = library()
    async with method.opened(FIRST, told, folder) as asker:
        before = await asker.lay("Where is the boathouse key?", 700)
        await asker.lay("boathouse key boathouse key", 700)
        after = await asker.lay("Where is the boathouse key?", 700)
    assert before.block == after.block
    assert "Where is the boathouse key?" not in before.block


async def test_messages_keep_names_times_and_order(tmp_path: Path) -> None:
    told = await replayed(FIRST, tmp_path / "replay", None)
    weights = PRESETS["measured"]
    async with copied(tmp_path / "replay", told, embedder=None, weights=weights) as copy:
        threads = await copy.library.store.threads(collection_id=None, limit=10)
        assert len(threads) == 1
        rows = await copy.library.store.thread_events(
            threads[0]["id"], collection_id=None, after=0, limit=1_000, live_only=True
        )
        events = list(rows)[: len(FIRST.messages)]
    assert [event.text for event in events] == [said.text for said in FIRST.messages]
    assert [event.name for event in events] == [said.name for said in FIRST.messages]
    assert [event.occurred_at for event in events] == [said.at for said in FIRST.messages]
    assert [told.message_ids[event.id] for event in events] == [m.id for m in FIRST.messages]


async def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    class Stopping(Steps):
        asked = 0

        def advance(self, count: int) -> None:
            self.asked += count
            if self.asked == 4:
                raise KeyboardInterrupt

    class Counting(Steps):
        said: list[str]

        def begin(self, total: int) -> None:
            self.said = []

        def say(self, what: str) -> None:
            self.said.append(what)

    options = Options(cache=tmp_path, budgets=(700,))
    with pytest.raises(KeyboardInterrupt):
        await answered(options, Stopping())
    counting = Counting()
    resumed = await answered(options, counting)
    assert [one.conversation for one in resumed] == ["first", "second"]
    assert not [what for what in counting.said if "first" in what], "asked again"
    again = await answered(options, counting)
    assert counting.said == []
    assert again == resumed


async def test_fresh_asks_again_and_keeps_what_it_finds(tmp_path: Path) -> None:
    options = Options(cache=tmp_path, budgets=(700,))
    before = await answered(options)
    after = await answered(Options(cache=tmp_path, budgets=(700,), is_fresh=True))
    assert [one.answers[0].laid[700].whole for one in after] == [("m7",), ("m3",)]
    assert after != before, "times differ"
    assert await answered(options) == after


async def test_a_method_that_takes_more_than_it_may_is_found_out(tmp_path: Path) -> None:
    record = Record("e1", DAY, "user", "this", "word " * 100)

    class Greedy:
        name = identity = "greedy"

        @asynccontextmanager
        async def opened(
            self, conversation: Conversation, replayed: Replayed, folder: Path
        ) -> AsyncIterator[Asker]:
            yield self

        async def lay(self, question: str, budget_tokens: int) -> Desk:
            return Desk(rendered_block(DESK_TAG, [record]), 1.0)

    options = Options(cache=tmp_path, budgets=(100,))
    with pytest.raises(OverBudget, match="greedy laid"):
        await run_with(Greedy(), options=options)


def test_halves_part_the_conversations() -> None:
    assert [one.id for _, one in chosen(DATA, "even")] == ["first"]
    assert [one.id for _, one in chosen(DATA, "odd")] == ["second"]
    assert len(chosen(DATA, "all")) == 2


def test_every_question_is_one_message_to_the_store() -> None:
    one, other = question_messages("Who?")[-1], question_messages("When?")[-1]
    assert one.digest == other.digest
    assert (one.text, other.text) == ("Who?", "When?")


async def test_every_baseline_answers_and_is_charged_alike(tmp_path: Path) -> None:
    embedder = RememberingEmbedder(HashingEmbedder(), tmp_path / "rows")
    methods = baselines(embedder, COUNTERS)
    assert [one.name for one in methods] == ["window", "fts5", "dense", "library-v1"]
    assert [one.name for one in baselines(None, COUNTERS)] == ["window", "fts5", "library-v1"]
    options = Options(cache=tmp_path, budgets=(60, 700))
    found = await run_with(*methods, options=options, embedder=embedder)
    for name in ("fts5", "dense", "library-v1"):
        key, allergy, essay = found[name]["hand"][0].answers
        assert key.laid[700].whole == ("m7",), name
        assert allergy.laid[700].whole == ("m59",), name
        assert essay.laid[700].parts == ("m30",), name
    key, allergy, essay = found["window"]["hand"][0].answers
    assert (key.laid[700].whole, allergy.laid[700].whole) == ((), ("m59",))
    for by_set in found.values():
        for answer in by_set["hand"][0].answers:
            assert answer.laid[60].record_count == 0
            assert 0 < answer.laid[700].tokens <= 700


async def test_what_is_missing_is_explained_with_rank_and_signals(tmp_path: Path) -> None:
    options = Options(cache=tmp_path, budgets=(700,))
    wanted: dict[str, dict[int, list[str]]] = {
        "first/Where is the boathouse key?": {700: ["m7"]},
        "first/What?": {700: []},
    }
    explained = [
        one async for one in explanations([DATA], library(), wanted, options=options, embedder=None)
    ]
    (one,) = explained
    (labelled,) = one["evidence"]
    assert (labelled["id"], labelled["rank"]) == ("m7", 1)
    assert labelled["signals"]["lexical"] > 0
    assert one["missing"] == {"700": ["m7"]}
    text = lines(one)
    assert text[0] == "first/Where is the boathouse key? (facts): Where is the boathouse key?"
    assert text[1] == "missing at 700: m7"
    assert text[3].startswith("*    1  ")


async def test_slips_and_unrelated_questions_are_kept_apart_from_others(tmp_path: Path) -> None:
    plain = await answered(Options(cache=tmp_path, budgets=(700,)))
    slips = await answered(Options(cache=tmp_path, budgets=(700,), typos=0.5))
    other = await answered(Options(cache=tmp_path, budgets=(700,), is_unrelated=True))
    assert slips != plain
    assert [len(one.answers) for one in other] == [1, 3]
    assert summary(other[0].answers)["all"]["budgets"]["700"].keys() == {
        "desk_tokens",
        "desk_share",
    }


async def test_any_role_any_script_and_empty_messages_can_be_asked_about(tmp_path: Path) -> None:
    said = (
        ("system", None, "The robot is called Karl."),
        ("user", None, "我们昨天决定把数据库迁移到新的服务器上。"),
        ("assistant", None, ""),
        ("tool", "grep", "src/main.py:12: def boathouse():"),
        ("user", None, "Bye."),
        ("assistant", None, "Bye."),
        ("user", None, "Bye."),
    )
    messages = tuple(
        Said(f"m{at}", "a", DAY, role, name, text) for at, (role, name, text) in enumerate(said)
    )
    questions = {
        "Which robot was called?": "m0",
        "数据库迁移到哪里?": "m1",
        "Where is boathouse defined?": "m3",
        "": "m0",
    }
    asked = tuple(Asked(text, "all", text, (label,)) for text, label in questions.items())
    data = DataSet("odd", "2" * 64, (Conversation("odd", messages, asked),), 0, 0)
    options = Options(cache=tmp_path, budgets=(400,))
    found = await run(
        [data], [library()], options=options, embedder=None, counters=COUNTERS, steps=Steps()
    )
    answers = found["measured"]["odd"][0].answers
    assert [one.laid[400].whole for one in answers] == [("m0",), ("m1",), ("m3",), ()]
