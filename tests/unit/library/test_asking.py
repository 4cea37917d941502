"""Who searches by hand is answered as a request is, whatever the front end."""

from collections import Counter
from pathlib import Path

from library.asking import Question, ask
from tests.unit.library.teller import START, Teller, opened

STEPS = "\n\n".join(
    f"Step {at} of the pelican project: {'we measured the pelican and wrote it down. ' * 18}"
    for at in range(5)
)


async def test_a_question_for_the_whole_is_answered_by_one_passage_of_each_message(
    tmp_path: Path,
) -> None:
    """Issue 3, breadth: also where no transcript stands behind the question."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(STEPS, "The pelican project has a budget of 90 euros.")
        await teller.indexed()
        assert teller.recorded is not None
        collection_id = teller.recorded.collection_id

        async def passages_of(words: str) -> list[int]:
            question = Question(words, START.date(), collection_id, limit=20)
            found = await ask(library, question)
            return sorted(Counter(hit.event.seq for hit in found.hits).values())

        assert await passages_of("pelican step measured") == [1, 2]
        assert await passages_of("Summarise everything we discussed about the pelican") == [1, 1]
