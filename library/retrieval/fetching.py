"""What a search fetches from the index and from the vectors: for worker threads, numbers only.

Each function does all that can be done in one go, because to change threads and back costs some
tenths of a millisecond. Which branches are live is not known here: who calls looks at that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from library.analysis import is_bigram
from library.lexical import Lexical, stems
from library.reading.spelling import weighed_terms
from library.records import Event, Passage, Where
from library.retrieval.ranking import Candidate, Weights
from library.retrieval.scope import branch_at
from library.retrieval.tail import WaitingPassage

if TYPE_CHECKING:
    from library.retrieval.candidates import Candidates
    from library.vectors.matrix import Ints, Matrix

NEIGHBOURS_OF = 24
"""The best of what is found whose neighbours in the conversation are fetched too. Each costs 4
look-ups in every segment; 48 found the same (recall at 1,024 and 2,048 tokens within .008)."""
NEIGHBOUR_REACH = 2
MOST_NEIGHBOURS = 256
FULL_QUESTION_WORDS = 8
"""Of a longer question the rarest words count as all of it: no passage holds a whole page. Of
bigrams half as many: the others lie across two words."""
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


@dataclass(frozen=True, slots=True)
class Look:
    """A question's row, and the rows it is compared with."""

    matrices: Sequence["Matrix"]
    """Of each collection within reach."""
    row: bytes

    def nearest(self, where: Where, *, limit: int) -> "Ints":
        """Return the keys of the passages in scope that are most like the question, best first."""
        # Here and not above: numpy costs 11 MB, and who has rows has loaded it.
        from library.vectors.matrices import nearest

        return nearest(self.matrices, self.row, where, limit=limit)

    def with_cosines(self, found: "Candidates") -> "Candidates":
        """Return passages with how like the question they are, where they have a vector."""
        # As above.
        from library.vectors.matrices import cosines

        return found.with_cosines(cosines(self.matrices, self.row, found.keys))


def fetch(
    lexical: Lexical, where: Where, words: Sequence[str], times: Sequence[str], limit: int
) -> tuple[Question, "Candidates", bool]:
    """Weigh the words and search, in one go on one thread."""
    weights, corrected = weighed_terms(words, lexical.known, stems)
    rarity = lexical.rarity([*weights], optional=times)
    question = weighed_question({term: weights.get(term, 1.0) * rarity[term] for term in rarity})
    weights = {term: weights.get(term, 1.0) for term in rarity}
    found = lexical.search(where, weights, full_score=question.mass, limit=limit)
    question = replace(question, past_count=lexical.count(where), corrected=corrected)
    return question, found, len(found) == limit


class Near(NamedTuple):
    """What was found by likeness."""

    fresh: "Candidates"
    """Those that the words did not find."""
    known: "Candidates"
    """Those that they did."""
    others: "Candidates"
    """What the words found and is less like the question."""
    has_more: bool

    @property
    def variety(self) -> int:
        return self.fresh.joined(self.known).variety()

    @property
    def together(self) -> "Candidates":
        """All that was found either way, each once."""
        return self.fresh.joined(self.known, self.others)


def look_near(look: Look, lexical: Lexical, where: Where, have: "Candidates", limit: int) -> Near:
    """Return the passages most like a question, and how like it they and those at hand are.

    Only what the words did not find is looked up: some 6 microseconds each.
    """
    keys = look.nearest(where, limit=limit)
    have = look.with_cosines(have)
    is_known = have.are_of(keys)
    known = have.take(is_known)
    missing = set(keys.tolist()).difference(known.keys.tolist())
    fresh = look.with_cosines(lexical.passages(sorted(missing)))
    return Near(fresh, known, have.take(~is_known), len(keys) == limit)


def look_further(
    look: Look,
    lexical: Lexical,
    where: Where,
    have: "Candidates",
    limit: int,
    *,
    enough_events: int,
    live: Callable[["Candidates"], "Candidates | None"],
    weights: Weights,
) -> tuple[Near, "Candidates | None"]:
    """Do `look_near`, and then `look_around` where it is known already what of it is `live` and
    that is enough.

    Returns what was found by likeness, and what stands around the best; the latter is None, and the
    former is unchecked, where somebody has to look up first which branches are live.
    """
    near = look_near(look, lexical, where, have, limit)
    alive = live(near.fresh)
    if alive is None:
        return near, None
    checked = near._replace(fresh=alive)
    if near.has_more and checked.variety < enough_events:
        return near, None
    return checked, look_around(look, lexical, where, checked.together, weights)


def look_around(
    look: Look | None,
    lexical: Lexical,
    where: Where,
    found: "Candidates",
    weights: Weights,
) -> "Candidates":
    """Return what stands beside the best and was not found, and how like the question it is."""
    if not weights.neighbours:
        return no_candidates()
    best = found.strongest(NEIGHBOURS_OF, by_words=weights.lexical, by_row=weights.dense)
    have = {*zip(found["branch_id"].tolist(), found["position"].tolist(), strict=True)}
    places = {
        (branch_at(where.ranges, one.branch_id, position), position)
        for one in best
        for position in range(one.position - NEIGHBOUR_REACH, one.position + NEIGHBOUR_REACH + 1)
    }
    wanted = sorted(place for place in places - have if place[1] >= 0)
    around = lexical.around(where, wanted, limit=MOST_NEIGHBOURS)
    return around if look is None else look.with_cosines(around)


def no_candidates() -> "Candidates":
    # Here and not above: numpy costs 11 MB, owed by the first search only.
    from library.retrieval.candidates import Candidates

    return Candidates.of([])


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
