"""What a search fetches from the index and from the vectors: for worker threads, numbers only.

Each function does all that can be done in one go, because to change threads and back costs some
tenths of a millisecond. Which branches are live is not known here: who calls looks at that.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import TYPE_CHECKING

from library.analysis import is_bigram
from library.lexical import Lexical, stems
from library.reading.spelling import weighed_terms
from library.records import Event, Passage, Where
from library.retrieval.ranking import Candidate, Weights
from library.retrieval.scope import branch_at
from library.retrieval.tail import WaitingPassage

if TYPE_CHECKING:
    from library.vectors.matrix import Matrix

NEIGHBOURS_OF = 24
"""The best of what is found whose neighbours in the conversation are fetched too. Each costs 4
look-ups in every segment; 48 found the same (recall at 1,024 and 2,048 tokens within .008)."""
NEIGHBOUR_REACH = 2
MOST_NEIGHBOURS = 256
FULL_QUESTION_WORDS = 8
"""Of a longer question the rarest words count as all of it: no passage holds a whole page. Of
bigrams half as many: the others lie across two words."""
Key = tuple[int, int]
"""(seq, ordinal) of a passage."""
_K1, _B = 1.2, 0.75
"""BM25 as tantivy computes it."""
_USUAL_WORDS = 60.0
"""Length of a passage in the formula for events that the index does not hold."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as terms of the index."""

    rarity: Mapping[str, float]
    """Of each term."""
    mass: float
    """What a passage of usual length scores that holds every word once."""
    past_count: int = 0
    """Passages that the index has of the scope."""
    corrected: Mapping[str, str] = field(default_factory=dict)
    """What its unknown words were most likely meant to be."""
    slipped: float = 0.0
    """Share of its words that were corrected."""


@dataclass(frozen=True, slots=True)
class Look:
    """A question's row, and the rows it is compared with."""

    matrices: Sequence["Matrix"]
    """Of each collection within reach."""
    row: bytes

    def nearest(self, where: Where, *, limit: int) -> dict[Key, float]:
        """Return the passages in scope that are most like the question, best first, by cosine."""
        found = [
            one for matrix in self.matrices for one in matrix.search(self.row, where, limit=limit)
        ]
        if len(self.matrices) > 1:
            found.sort(key=lambda one: (-one[1], *(-part for part in one[0])))
        return dict(found[:limit])

    def cosines(self, found: Iterable[Candidate]) -> dict[Key, float]:
        """Return how like the question passages are, for those that have a vector."""
        keys = [one[:2] for one in found]
        return {
            key: cosine
            for matrix in self.matrices
            for key, cosine in matrix.cosines(self.row, keys).items()
        }


def fetch(
    lexical: Lexical, where: Where, words: Sequence[str], times: Sequence[str], limit: int
) -> tuple[Question, list[Candidate], bool]:
    """Weigh the words and search, in one go on one thread."""
    weights, corrected = weighed_terms(words, lexical.known, stems)
    rarity = lexical.rarity([*weights], optional=times)
    question = weighed_question({term: weights.get(term, 1.0) * rarity[term] for term in rarity})
    weights = {term: weights.get(term, 1.0) for term in rarity}
    found = lexical.search(where, weights, full_score=question.mass, limit=limit)
    question = replace(
        question,
        past_count=lexical.count(where),
        corrected=corrected,
        slipped=len(corrected) / max(1, len(words)),
    )
    return question, found, len(found) == limit


def look_near(
    look: Look, lexical: Lexical, where: Where, have: Mapping[Key, Candidate], limit: int
) -> tuple[list[Candidate], dict[Key, float], bool]:
    """Return the passages most like a question, how like they and those at hand are, and whether
    there may be more.

    Only what the words did not find is looked up: some 6 microseconds each.
    """
    near = look.nearest(where, limit=limit)
    found = lexical.passages([key for key in near if key not in have])
    found += [have[key] for key in near if key in have]
    others = look.cosines(one for key, one in have.items() if key not in near)
    return found, near | others, len(near) == limit


def look_further(
    look: Look,
    lexical: Lexical,
    where: Where,
    have: Mapping[Key, Candidate],
    limit: int,
    *,
    enough_events: int,
    live: Callable[[list[Candidate]], list[Candidate] | None],
    weights: Weights,
) -> tuple[list[Candidate], dict[Key, float], bool, list[Candidate] | None]:
    """Do `look_near`, and then `look_around` where it is known already what of it is `live` and
    that is enough.

    Returns (the passages most like the question, how like everything is, whether there may be more
    of the former, what stands around the best); the last is None, and the first is unchecked, where
    somebody has to look up first which branches are live.
    """
    near, cosines, has_more = look_near(look, lexical, where, have, limit)
    alive = live(near)
    if alive is None or (has_more and variety(alive) < enough_events):
        return near, cosines, has_more, None
    around, more = look_around(look, lexical, where, together(alive, have), cosines, weights)
    return alive, cosines | more, has_more, around


def variety(found: Collection[Candidate]) -> int:
    """Return how many events are there, where copies of a text count once: one huge event, or a
    question that was asked two hundred times, must not pass for enough."""
    return min(len({one.seq for one in found}), len({one.fingerprint for one in found}))


def together(near: Sequence[Candidate], have: Mapping[Key, Candidate]) -> list[Candidate]:
    """Return the passages that were found either way, each once."""
    return list({**{one[:2]: one for one in near}, **have}.values())


def look_around(
    look: Look | None,
    lexical: Lexical,
    where: Where,
    found: Sequence[Candidate],
    cosines: Mapping[Key, float],
    weights: Weights,
) -> tuple[list[Candidate], dict[Key, float]]:
    """Return what stands beside the best and was not found, and how like the question it is."""
    if not weights.neighbours:
        return [], {}
    by_words, by_row = weights.lexical, weights.dense
    best = nsmallest(
        NEIGHBOURS_OF,
        found,
        key=lambda one: (
            -by_words * one.lexical - by_row * cosines.get(one[:2], 0.0),
            one[:2],
        ),
    )
    have = {(one.branch_id, one.position) for one in found}
    places = {
        (branch_at(where.ranges, one.branch_id, position), position)
        for one in best
        for position in range(one.position - NEIGHBOUR_REACH, one.position + NEIGHBOUR_REACH + 1)
    }
    wanted = sorted(place for place in places - have if place[1] >= 0)
    around = lexical.around(where, wanted, limit=MOST_NEIGHBOURS)
    return around, {} if look is None else look.cosines(around)


def weighed_question(rarity: Mapping[str, float]) -> Question:
    is_unspaced = 2 * sum(map(is_bigram, rarity)) > len(rarity)
    count = FULL_QUESTION_WORDS // 2 if is_unspaced else FULL_QUESTION_WORDS
    rarest = sorted(rarity.values(), reverse=True)[:count]
    return Question(rarity, max(sum(rarest), 1e-9))


def scored(passage: WaitingPassage, question: Question) -> Candidate:
    """Return what the index would find, nearly, if it held this passage."""
    norm = _K1 * (1 - _B + _B * passage.length / _USUAL_WORDS)
    score = 0.0
    for term, rarity in question.rarity.items():
        if count := passage.counts.get(term):
            score += rarity * count * (_K1 + 1) / (count + norm)
    return passage.unscored._replace(lexical=score / question.mass)


def passage_of(one: Candidate) -> Passage:
    """Return where a candidate's text stands."""
    return Passage(one.seq, one.ordinal, one.part_count, one.start, one.stop)


def is_of(candidate: Candidate, event: Event) -> bool:
    """Tell whether the stored event is the one that was indexed."""
    return (
        event.thread_no == candidate.thread_no
        and event.position == candidate.position
        and candidate.stop <= len(event.text)
    )
