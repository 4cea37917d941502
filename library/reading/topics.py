"""What a question about the whole is about: its words without those of asking. Pure.

"Can you list the order in which I brought up different aspects of my budget tracker throughout our
conversations?" is about a budget tracker. The other words are of every such question, and of no
record that answers one: they find what lists, orders and brings up, and they make a question about
something never said look half answered.

Words are kept as they are spelled, so that names, versions and paths stay whole. English only: of
another language nothing is known, which is said and not guessed.

A slip of the finger in a word of asking would hide that a question is broad, and what it is about.
So they are known with one slip in them, if they begin and end as they should: what else is one slip
away from them is hardly a word, and the few that are were gathered from 50,000 words of
conversations and code.
"""

import re
from functools import lru_cache

from library.analysis import STOP_WORDS

_ASKING = """
    account accounts across again all approach arrange aspect aspects bring bringing brought
    catch chat chats chronological chronologically chronology clear collect compile complete
    comprehensive conversation conversations cover covered day days describe detailed developed
    different discuss discussed discussing discussion discussions earliest eight entire
    enumerate event events ever every everything evolve evolved exact explain far few first five
    four full gather give happened history including item items key last latest let's like list
    main make many mention mentioned mentioning message messages month months name need nine now
    one only order ordered organize outline overall overview past please progressed provide put
    question questions raised recap recapitulate recount remember remind request requests
    rundown said say sequence session sessions seven show six sort summaries summarise
    summarised summarize summarized summary talked ten thing things three throughout till time
    timeline today together topic topics trace two various walk want way ways week weeks whole
    would write year years
"""
_ASKING_WORDS = frozenset(_ASKING.split())
_OTHERS = """
    being bought bridging charts chars compete covar gain mouth older rained refcount remap rewind
    seen tasked there thinks throughput trade tree tying very while white whose world wrote
"""
_OTHER_WORDS = frozenset(_OTHERS.split())
"""Words of their own, one slip away from a word of asking."""
LEAST_LETTERS = 5
"""Of a word of asking with any slip in it; in a shorter one letters are swapped or doubled, which
makes no other word."""
SHORTEST_LETTERS = 4
_SLIPPED = tuple(sorted({"which"} | {one for one in _ASKING_WORDS if len(one) >= SHORTEST_LETTERS}))
_WITH_INITIAL = {
    initial: [one for one in _SLIPPED if one[0] == initial]
    for initial in {one[0] for one in _SLIPPED}
}
_LONGEST = max(map(len, _SLIPPED)) + 1
_LETTERS = re.compile(r"[a-z]{4,}")
_JOINING_WORDS = _ASKING_WORDS | STOP_WORDS
_MARKS = " \t\n.,;:?!()[]\"'\u2018\u2019\u201c\u201d"
"""At the ends of a word they are none of it."""


def topic(text: str) -> str | None:
    """Return a broad question without its words of asking and those that only join; "" when there
    is nothing else, so that it asks for everything. None: it has no word of asking that is known.
    """
    found = [word.strip(_MARKS) for word in text.split()]
    spelled = [_meant(word.lower().replace("\u2019", "'")) for word in found]
    if _ASKING_WORDS.isdisjoint(spelled):
        return None
    return " ".join(
        word
        for word, plain in zip(found, spelled, strict=True)
        if plain and _JOINING_WORDS.isdisjoint((plain, plain.partition("'")[0]))
    )


def as_meant(text: str) -> str:
    """Return a text in lower case with its words of asking as they were meant."""
    return _LETTERS.sub(lambda match: _meant(match[0]), text)


@lru_cache(maxsize=4_096)
def _meant(word: str) -> str:
    """Return the word of asking that is one slip away, or the word itself."""
    if len(word) > _LONGEST or word in _JOINING_WORDS or word in _OTHER_WORDS:
        return word
    # A word begins as it was meant to, or with its first two letters swapped.
    likely = (one for initial in sorted({*word[:2]}) for one in _WITH_INITIAL.get(initial, ()))
    return next((one for one in likely if _is_slip(word, one)), word)


def _is_slip(word: str, meant: str) -> bool:
    """Tell whether a word is another with one letter too many, too few or wrong, or two in the
    wrong order, and no other letter at either end."""
    if not (word[:1] == meant[0] or word[:2] == meant[1::-1]):
        return False
    if not (word[-1:] == meant[-1] or word[-2:] == meant[:-3:-1]):
        return False
    if abs(len(word) - len(meant)) > 1:
        return False
    at = next((at for at, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), None)
    if at is None:
        return len(word) != len(meant)
    left, right = word[at:], meant[at:]
    if left[1::-1] == right[:2] and left[2:] == right[2:]:
        return True
    if len(meant) < LEAST_LETTERS:
        return left[0] == word[at - 1] and left[1:] == right
    return left[1:] == right[1:] or left[1:] == right or left == right[1:]
