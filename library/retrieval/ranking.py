"""What a search finds, and what each of its signals counts for. Pure.

Every signal is absolute, not relative to the other candidates: a passage that holds a tenth of
the question's rare words scores a tenth however poor the rest is, so that a question about
something never said finds next to nothing and `minimum_relevance` means the same every time.
Min-max normalisation, as measured in DESIGN.md 6, gives the same order within one signal but makes
the best of a bad lot look perfect.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from library.embedding.names import HASHING

ROLES = ("user", "assistant", "tool", "other")
"""Numbered, as the index stores them."""
Preset = Literal["measured", "library-v1"]
DAY_S = 86_400


class Candidate(NamedTuple):
    """One passage that may be shown; see candidates.py for many."""

    seq: int
    ordinal: int
    part_count: int
    start: int
    stop: int
    thread_no: int
    branch_id: int
    position: int
    at_s: int
    """When it was said, in seconds since 1970."""
    role: int
    """Index in `ROLES`."""
    fingerprint: int
    """Equal for copies of one text."""
    speaker: int
    """Equal for all that one named person said (see reading/speakers.py)."""
    kind: int
    """Index in `kinds.filter.KINDS`."""
    lexical: float = 0.0
    """Share of the question's words that it holds, weighed by rarity: 1 is all, once; 0 for one
    that stands beside a candidate."""
    cosine: float = 0.0
    """How like the question its vector is; 0 where there is none."""


NUMBERS = Candidate._fields[:-2]
"""What is known of a candidate whatever is asked."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts for."""

    lexical: float = 0.0
    dense: float = 0.0
    dense_floor: float = 0.0
    """Likeness that any two texts may have: nothing."""
    reciprocal_rank: float = 0.0
    """Of 1 / (place in the order by `lexical`)."""
    recency: float = 0.0
    """Of 0.5 ** (age / half-life), the age counted from the newest candidate."""
    importance: float = 0.0
    """Of how important its record is called, counted from medium: a third less to two thirds
    more; see `_lifts`."""
    access: float = 0.0
    """Of how often it was wanted, from 0 (never) to 1 (always); see `_lifts`."""
    neighbours: tuple[float, ...] = ()
    """Share that an event gets of the score of those one, two, ... places before and after it."""
    speaker: float = 1.0
    """Factor for what the one person said whom the question names; others are divided by it."""
    day: float = 0.0
    """Share that an event gets of the best score of its thread's day."""
    long_reply: float = 1.0
    """Factor for what an assistant said at length: such answers hold many of a question's words
    by mere size, where the user's own sentence holds the fact. Short replies, as between two
    people, are taken like anybody's."""
    replaces: bool = False
    """What replaces a record that was found comes with it, before it: no replaced fact alone."""
    sure: float = 0.0
    """What the best record of a past of `USUAL_CHANCES` scores, by words alone, where one surely
    answers."""
    sure_with_rows: float = 0.0
    """The same by words and vectors."""
    length_power: float = 0.0
    """A passage of four times the usual length is divided by 4 ** this."""


LEAST_TOTAL = 1e-6
"""Less is nothing."""
MOST_PASSAGES = 2
"""Of one event: a third one says less than another event does."""
MOST_DAY_FACTOR = 2.0
"""A day lifts an event by at most so many times its own score: what has nothing stays near it."""
HALF_LIFE_S = 14 * DAY_S
USUAL_CHARS = 250
LONG_REPLY_CHARS = 600
USUAL_CHANCES = 7_100
"""Of 600 passages of 140 characters; see `chances`."""
FEWEST, MOST = 1_000, 30_000
"""Chances of the pasts for which `Weights.sure` was chosen."""
CHANCE_POWER = 2
SPEAKER_LENIENCY = 0.5
SLIPPED_BEYOND_DOUBT = 2 / 3
"""Share of a question's words: with so many misspelt, its score says nothing."""
DOUBTFUL_SHARE = 0.77
"""With so much of the score that makes sure, nothing is."""
LONG_REPLY_IN_ORDER = 0.3
"""`Weights.long_reply` for a question of order: what came when is told by who did it."""
PRESETS: Mapping[Preset, Weights] = {
    "measured": Weights(
        lexical=1.0,
        dense=1.35,
        dense_floor=0.1,
        neighbours=(0.25, 0.1),
        speaker=1.25,
        day=0.2,
        importance=0.1,
        long_reply=0.7,
        length_power=0.25,
        replaces=True,
        sure=0.46,
        sure_with_rows=0.72,
    ),
    "library-v1": Weights(
        dense=0.6, reciprocal_rank=0.25, importance=0.1, recency=0.05, replaces=True
    ),
}
"""`library-v1` is the seed's formula; but what bears on nothing is not lifted by importance.

Of what is known whatever is asked, importance has earned its place in `measured`, and use has not
(recall at about 1,024 tokens by words, of BFCL's, half of BEAM's and half of LoCoMo's questions;
scripts/bench/signals, 2026-11-30). Importance at .1: drawn by chance it costs nothing (+.000,
+.010, +.001), given by who knows what will be asked it finds more (+.000, +.051, +.003).
Use at .1, .2, .4: -.006, -.006, .000 of BFCL; +.006, -.006, -.006 of BEAM; +.001, +.004, +.005 of
LoCoMo."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of candidates whatever is asked; 0 where nothing is."""

    importances: Mapping[int, float] = field(default_factory=dict)
    """By thread number: from -1/3 (low) over 0 (medium, and what a chat says) to 2/3 (critical)."""
    accesses: Mapping[int, float] = field(default_factory=dict)
    """By seq: from 0 (never wanted) to 1."""


NOTHING_KNOWN = Standing()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place."""

    candidate: Candidate
    score: float
    """In (0, 1)."""
    signals: Mapping[str, float]
    """Contributions; they add up to `score`."""


HASHED_DENSE, HASHED_SURE = 0.85, 0.65
"""The most that `dense` and `sure_with_rows` are beside rows of hashed words. These are the words
again: with the weight of a model's rows, whatever is said around a question outweighs it."""


def beside(weights: Weights, embedder: str) -> Weights:
    """Return what signals count for beside the rows of an embedder, given by name or identity."""
    if not embedder.startswith(HASHING):
        return weights
    return replace(
        weights,
        dense=min(weights.dense, HASHED_DENSE),
        sure_with_rows=min(weights.sure_with_rows, HASHED_SURE),
    )


def chances(count: int, *, mean_chars: float) -> float:
    """Return how many chances `count` passages give to a question that nothing answers: a longer
    passage has more of any question's words, by the root of its length."""
    return count * math.sqrt(mean_chars)


def certainty(
    best: Ranked | None,
    weights: Weights,
    *,
    chances: float,
    has_rows: bool,
    leniency: float = 0.0,
) -> float:
    """Return in [0, 1] how sure it is that what was found bears on the question.

    Told by the score of the best record alone, against what the best of so many `chances` scores
    where nothing answers: that grows with their logarithm, and is most where messages are long.
    Score alone tells questions that a conversation answers from those of another one of its set
    with an area under the curve of .98 (LoCoMo), .94 (BEAM) and .96 (BFCL). What no record has of
    the question's words, what of them the best ones have together or by words and likeness both,
    how like it the best vectors are, or how much more than usual ones, told at most .01 more, of
    one set or another (2026-12-01).

    `leniency` in [0, 1] is how much of the doubt is not counted; see `leniency_of`.
    """
    sure = weights.sure_with_rows if has_rows else weights.sure
    if not sure:
        return 1.0
    chance = math.log(min(max(chances, FEWEST), MOST)) / math.log(USUAL_CHANCES)
    score = 0.0 if best is None else best.score / chance**CHANCE_POWER
    doubtful = DOUBTFUL_SHARE * sure
    found = min(1.0, max(0.0, (score - doubtful) / (sure - doubtful)))
    return found + (1.0 - found) * leniency


def leniency_of(*, names_speaker: bool, slipped: float) -> float:
    """Return how much of the doubt about a question is not to count.

    Half, where it names one who spoke: it is about this past, though what it asks for need not be
    said in its words ("Would Ann enjoy ...?"). Of LoCoMo's questions 91 in a hundred name one, of
    those of another of its conversations 5. And the more, the greater the share of its words that
    are `slipped`: what is misspelt looks like what was never said (2026-11-30). Names are no slips
    (see `reading.spelling.slipped_share`): in LoCoMo half of what was corrected in the questions of
    another conversation were the names of its people, .12 of this for nothing (2026-12-01).
    """
    return max(SPEAKER_LENIENCY * names_speaker, min(1.0, slipped / SLIPPED_BEYOND_DOUBT))
