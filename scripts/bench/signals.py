"""Whether use and importance earn a place in the ranking: recall with each at several weights.

*Use.* The questions of a conversation are asked one after the other, as a user would: what fits a
desk of 1,024 tokens for one question counts as used for those that follow.

*Importance.* Each message is an insight. Labels of importance are not in any public set, so two are
drawn, and the truth lies between them: by chance (one in five is critical, whatever is asked), and
by somebody who knows what will be asked (half of what answers a question is critical, of the rest
one in ten). By words alone: a model takes minutes, and is in both rows alike.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from gateway.bench.conversations import Asked, Conversation, DataSet, read
from gateway.bench.replay import COLLECTION, copied, opened, question_messages, replayed
from library.asking import ANYWHERE
from library.kinds.filter import Filter
from library.library import Library
from library.records import Hit, SearchQuery
from library.retrieval.ranking import PRESETS, Weights

DESK_CHARS = 4_096
"""About 1,024 tokens."""
HITS = 60
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.4)
MEASURED = PRESETS["measured"]


def laid(hits: Sequence[Hit]) -> list[Hit]:
    """Return what fits a desk, best first; what does not fit is passed over."""
    found, left = [], DESK_CHARS
    for hit in hits:
        chars = hit.passage.stop - hit.passage.start + 20
        if chars <= left:
            found.append(hit)
            left -= chars
    return found


def recall(evidence: Collection[str], desk: Collection[str]) -> float:
    return sum(one in desk for one in evidence) / len(evidence)


def query(text: str, collection_id: int, talk: Conversation) -> SearchQuery:
    return SearchQuery(
        collection_id=collection_id,
        text=text,
        scope="project",
        thread_no=0,
        path=(),
        before_position=ANYWHERE,
        exclude_seqs=frozenset(),
        limit=HITS,
        asked_on=talk.messages[-1].at.date(),
    )


async def by_use(talk: Conversation, folder: Path, weights: Weights) -> list[float]:
    """Return the recall of each question."""
    told = await replayed(talk, folder / talk.id, None)
    ids = told.message_ids
    shares = []
    async with copied(folder / talk.id, told, embedder=None, weights=weights) as copy:
        library = copy.library
        own = await library.store.made_collection(COLLECTION)
        ending = {message.text for message in question_messages("?")}
        for question in talk.questions:
            result = await library.search(query(question.text, own, talk))
            desk = laid([hit for hit in result.hits if hit.event.text not in ending])
            shares.append(recall(question.evidence, {ids.get(hit.event.id, "") for hit in desk}))
            library.accesses.used({hit.event.seq for hit in desk})
            await library.accesses.flush()
    return shares


async def by_importance(
    talk: Conversation, place: Path, marked: Collection[str]
) -> Mapping[float, list[float]]:
    """Return the recall of each question by weight, with some messages called critical."""
    texts = {one.text.strip(): one.id for one in talk.messages if one.text.strip()}
    async with opened(place, embedder=None, weights=MEASURED) as library:
        own = await library.store.made_collection(COLLECTION)
        for text, name in texts.items():
            level = "critical" if name in marked else "medium"
            await library.insights.remember(
                text[:8_000], collection_id=own, importance=level, merges=False
            )
        await library.wait_caught_up(60)
    shares = {}
    for weight in WEIGHTS:
        weights = replace(MEASURED, importance=weight)
        async with opened(place, embedder=None, weights=weights) as library:
            shares[weight] = [
                await _asked(library, own, talk, question, texts) for question in talk.questions
            ]
    return shares


async def _asked(
    library: Library, own: int, talk: Conversation, question: Asked, texts: Mapping[str, str]
) -> float:
    wanted = replace(query(question.text, own, talk), filter=Filter(kinds=("insight",)))
    desk = laid((await library.search(wanted)).hits)
    return recall(question.evidence, {texts.get(hit.event.text, "") for hit in desk})


def drawn(talk: Conversation, chance: random.Random, *, knows: bool) -> set[str]:
    """Return what is called critical."""
    asked = {one for question in talk.questions for one in question.evidence}
    return {
        one.id
        for one in talk.messages
        if chance.random() < (0.2 if not knows else 0.5 if one.id in asked else 0.1)
    }


async def measured(data: DataSet, folder: Path, *, is_half: bool) -> None:
    talks = data.conversations[:: 2 if is_half else 1]
    for weight in WEIGHTS:
        weights = replace(MEASURED, access=weight)
        shares = [one for talk in talks for one in await by_use(talk, folder, weights)]
        told = f"{data.name} use {weight:<4} {fmean(shares):.4f} of {len(shares)} questions"
        sys.stdout.write(f"{told}\n")
    for knows in (False, True):
        chance = random.Random(7)
        rows: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
        for talk in talks:
            with TemporaryDirectory(dir=folder) as place:
                marked = drawn(talk, chance, knows=knows)
                for weight, found in (await by_importance(talk, Path(place), marked)).items():
                    rows[weight] += found
        how = "by who knows" if knows else "by chance"
        for weight, found in rows.items():
            sys.stdout.write(f"{data.name} importance {how} {weight:<4} {fmean(found):.4f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--half", action="store_true", help="every second conversation")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="library-of-context-bench-") as place:
        for file in given.files:
            asyncio.run(measured(read(file), Path(place), is_half=given.half))


if __name__ == "__main__":
    main()
