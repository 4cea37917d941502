"""Why what answers a question is not on the desk: its rank, and what it scored by which signal.

The library is asked once more for far more passages than a desk holds. A labelled message that is
not among them was no candidate at all.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from gateway.bench.conversations import Asked, Conversation, DataSet
from gateway.bench.methods import LibraryAsker, TheLibrary
from gateway.bench.remembering import RememberingEmbedder
from gateway.bench.replay import Replayed, replayed
from gateway.bench.run import Options, chosen, questions_of, replay_folder
from library.records import Hit

RANKED = 2_000
BEST_SHOWN = 20
TEXT_CHARS = 300


async def explanations(
    sets: Sequence[DataSet],
    method: TheLibrary,
    wanted: Mapping[str, Mapping[int, Sequence[str]]],
    *,
    options: Options,
    embedder: RememberingEmbedder | None,
) -> AsyncIterator[dict[str, Any]]:
    """Yield, for each wanted question, where its labelled messages stand, and what stands first.

    `wanted` has, by question, the labelled messages that are missing at each budget.
    """
    questions = questions_of(sets, options)
    for data in sets:
        for at, talk in chosen(data, options.half):
            asked = [one for one in questions[data.name, talk.id] if one.id in wanted]
            if not asked:
                continue
            folder = replay_folder(data, at, options, embedder)
            told = await replayed(talk, folder, embedder)
            async with method.opened(talk, told, folder) as asker:
                assert isinstance(asker, LibraryAsker)
                for question in asked:
                    hits = await asker.ranked(question.text, RANKED)
                    yield _explained(talk, told, question, hits) | {
                        "missing": {str(budget): ids for budget, ids in wanted[question.id].items()}
                    }


def _explained(
    talk: Conversation, told: Replayed, question: Asked, hits: Sequence[Hit]
) -> dict[str, Any]:
    ranked = [_ranked(told, rank, hit) for rank, hit in enumerate(hits, 1)]
    texts = {said.id: said.text for said in talk.messages}
    first = {one["id"]: one for one in reversed(ranked)}
    absent: dict[str, Any] = {"rank": None, "score": 0.0, "signals": {}}
    return {
        "question": question.id,
        "category": question.category,
        "text": question.text,
        "evidence": [
            {"id": one, **absent, **first.get(one, {}), "text": texts[one][:TEXT_CHARS]}
            for one in question.evidence
        ],
        "best": ranked[:BEST_SHOWN],
    }


def _ranked(told: Replayed, rank: int, hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    return {
        "id": told.message_ids.get(hit.event.id, hit.event.id),
        "rank": rank,
        "score": round(hit.score, 4),
        "signals": {name: round(value, 4) for name, value in hit.signals.items()},
        "text": hit.event.text[passage.start : passage.stop][:TEXT_CHARS],
    }


def lines(explained: Mapping[str, Any]) -> list[str]:
    """Return an explanation for people: what is labelled, and what stands first; `*` marks what
    is both."""
    labelled = {one["id"] for one in explained["evidence"]}
    out = [f"{explained['question']} ({explained['category']}): {explained['text']}"]
    for budget, ids in explained["missing"].items():
        out.append(f"missing at {int(budget):,}: {', '.join(ids) or 'nothing'}")
    out.append("labelled:")
    out += [_line(one, labelled) for one in explained["evidence"]]
    out.append("first:")
    out += [_line(one, labelled) for one in explained["best"]]
    return out


def _line(one: Mapping[str, Any], labelled: set[str]) -> str:
    mark = "*" if one["id"] in labelled else " "
    rank = "-" if one["rank"] is None else one["rank"]
    signals = " ".join(f"{name} {value:.3f}" for name, value in one["signals"].items())
    text = " ".join(one["text"].split())[:80]
    return f"{mark}{rank:>5}  {one['score']:.3f}  {one['id']}  [{signals}]  {text}"
