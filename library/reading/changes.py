"""Which sentences say that something is no longer as it was, and what they replace. Pure.

"We moved from Heroku to AWS", "the deadline is now 19 May", "it's 40, not 45", 不再用, "statt": a
sentence is a change when it has such a phrase and does not merely weigh it ("should we ...").
Whether an earlier text states what was before is then decided by evidence, strongest first:

1. the old value that the change names ("from X", "instead of X", "no longer X") stands in an
   earlier statement, together with a word of the change's subject, or as what is in use ("on X");
2. the subject is the same by most of its weight, and both have a value of one kind, another one:
   an amount of the same thing, a date, a time of day, open and closed;
3. a change that names nothing but the new value ("we moved to AWS") replaces what the same people
   said of where they are, or what they use ("we deploy on Heroku"), by the kind of verb.

Precision comes first: a record that is wrongly called outdated misleads, a missed one stands on the
desk with its date all the same. So are neither end of a link: advice (the caller leaves out what an
assistant says at length), questions, negations, and what says the same as the change.

Measured 2026-11-30 with the search of `library.links.replacements`: BEAM 100K dev 24 links of 19
events in 2,432, read one by one: 16 right, 5 arguable, 3 wrong, and 5 of its 20 updated facts
linked; LoCoMo 0 links in 5,882 events, BFCL 0 in 323. 0.03-0.15 ms an event.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from library.analysis import STOP_WORDS, letter_runs, words
from library.reading.change_phrases import BARE, CUES, HYPOTHETICAL, NOT_SUBJECT
from library.reading.values import STATES, UNITLESS, figures_of, values_of

READ_CHARS = 3_000
"""Of a longer text the head is read, code left out."""
LONGEST_SENTENCE_CHARS = 600
MOST_CHANGES = 4
"""Of one text."""
NEAREST_WORDS, ENOUGH_WORDS = 5, 3
"""A change is about the so many words of content in front of its phrase and those inside it; where
these are not enough, about what follows, too. Sentences of chats run on."""
VALUE_CHARS = 40
"""How far behind a phrase its new value may go on."""
MOST_OLD_WORDS = 5
SUBJECT_SHARE = 0.5
"""Of the weight of a change's subject, what an earlier sentence must have."""
OLD_SHARE = 0.2
"""The same where it has the old value, too."""
ONE_WORD_SHARE = 0.8
"""The same where that is a single word."""
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n。！？]+(?:[.](?=\w)[^.!?\n。！？]*)*[.!?。！？]*")  # noqa: RUF001
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ied",
    "ed",
    "es",
    "s",
    "e",
    "y",
)
_STATE = re.compile(
    r"(?:\b(?:on|with|in|at|to|using|uses?|via|is|are|am|be|called|named|prefers?|has|have|runs?|"
    r"drives?|owns?|chose|chosen|picked|nutz\w*|auf|mit|bei|chez|avec|utilis\w*|usa\w*|con|en)"
    r"(?: (?:the|a|an|my|our|its|la|le|el|der|die|das|einen?)){0,1} ?|[在用是叫住选選]|[:=] ?)$"
)
_NAMED = r"(?: (?!to\b)[\w'-]+){0,3}? %s(?:the )?(?!\w+day\b)(?:[A-Z]\w+|`[^`\n]+`)"
_AT_NAMED = _NAMED % r"(?:on|with|in|at|from|using|via) "
_ANY_NAMED = _NAMED % r"(?:(?:on|with|in|using) )?"
_PLACE_VERBS = "deploy run host store keep live work meet sit stay"
_TOOL_VERBS = "use write work code build drive prefer run deploy"
_BARE_VERBS = {
    "moved": _PLACE_VERBS,
    "migrated": _PLACE_VERBS,
    "switched": _TOOL_VERBS,
    "changed": _TOOL_VERBS,
}
_BARE_STATES = {
    verb: re.compile(
        rf"\b(?:{'|'.join(verbs.split())})\w{{0,3}}"
        + (_AT_NAMED if verbs == _PLACE_VERBS else _ANY_NAMED)
    )
    for verb, verbs in _BARE_VERBS.items()
}
_NEGATED = re.compile(
    r"n't\b|\b(?:not|never|no longer|without|nicht|kein\w*|pas|nunca)\b|不|没|沒|ない|ません"
)
_QUESTION = re.compile(
    r"\W*(?:what|how|when|where|who|why|which|do|does|did|is|are|was|were|can|could|should|would|will|"
    r"have you|has|shall|may|am i)\b[^.!\n]{0,200}[?\uff1f]|\W*[^\s,]{1,30}[吗か嗎까][?\uff1f。]?$",
    re.IGNORECASE,
)
"""Many a statement runs on into a question; what begins as one states nothing."""
_PERSON = re.compile(r"\b(we|i)\b", re.IGNORECASE)
_CUES_OF = {
    hint: [at for at, (needed, _) in enumerate(CUES) if hint in needed]
    for hint in frozenset().union(*(needed for needed, _ in CUES))
}
"""Which phrases, by number, a word or two may belong to; most belong to none."""
_HINTS_OF = {
    word: [hint for hint in _CUES_OF if hint.split()[0] == word]
    for word in {hint.split()[0] for hint in _CUES_OF}
}
"""What may stand there, by its first word."""
_HINT_WORDS = frozenset(_HINTS_OF)
_CACHED_WORDS = 4_096
"""As many as the words of English prose that are said often."""


@dataclass(frozen=True, slots=True)
class Change:
    """One statement that something has changed."""

    sentence: str
    subject: frozenset[str]
    """Stems of what it is about, without the values."""
    old: frozenset[str]
    """Stems of the value that it says is gone; empty: it names none."""
    new: frozenset[str]
    """Stems of the new value, as far as it is named as such."""
    old_phrase: str
    """That value in its words."""
    old_values: Mapping[str, frozenset[str]]
    """The same where it is an amount, a date, a time."""
    is_done: bool
    """It is something that was done ("live in Leeds"), not a name or an amount."""
    is_name: bool
    """It is written like a name."""
    values: Mapping[str, frozenset[str]]
    """The new values by kind."""
    words: tuple[str, ...]
    """What to look for in the index: words of the subject and of the old value."""
    bare_verb: str
    """How it changed, where nothing but the new value is said; else ""."""
    person: str


def changes(text: str) -> tuple[Change, ...]:
    """Return at most `MOST_CHANGES` changes that a text states, in order."""
    found: list[Change] = []
    read = _read(text)
    hints = [hint for word in _HINT_WORDS & _hints(read.lower()) for hint in _HINTS_OF[word]]
    for sentence in _sentences(read) if hints else ():
        lowered = sentence.lower()
        for at in sorted({at for hint in hints if hint in lowered for at in _CUES_OF[hint]}):
            match = CUES[at][1].search(lowered)
            if match is None or HYPOTHETICAL.search(lowered[: match.start()][-60:]):
                continue
            change = _change(sentence, match)
            if change is not None:
                found.append(change)
                break
        if len(found) == MOST_CHANGES:
            break
    return tuple(found)


def is_replaced(earlier: str, change: Change, *, rarity: Mapping[str, float]) -> bool:
    """Tell whether an earlier text states what a change says is gone.

    `rarity` has a weight for each of `change.words`.
    """
    weights = {_stem(word): max(rarity.get(word, 0.0), 1e-6) for word in change.words}
    return any(
        _is_old_state(sentence, change, weights) and not _says_so_too(sentence, change)
        for sentence in _sentences(_read(earlier))
        if not _QUESTION.match(sentence)
    )


def _says_so_too(sentence: str, change: Change) -> bool:
    """Tell whether an earlier sentence already says what a change says."""
    if change.new and change.new <= {_stem(word) for word in words(sentence)}:
        return True
    return any(change.old and other.old == change.old for other in changes(sentence))


def _hints(lowered: str) -> set[str]:
    """Return the words of a text, and its characters where some scripts may have no spaces."""
    found = {*letter_runs(lowered)}
    if not lowered.isascii():
        found.update(lowered)
    return found


def _is_old_state(sentence: str, change: Change, weights: Mapping[str, float]) -> bool:
    if change.bare_verb:
        is_same = _person(sentence) == change.person and not _NEGATED.search(sentence.lower())
        return is_same and bool(_BARE_STATES[change.bare_verb].search(sentence))
    if not _may_be_old_state(sentence, change):
        return False
    stems = {_stem(word) for word in words(sentence)}
    shared = change.subject & stems
    weight = sum(weights.get(stem, 0.0) for stem in shared)
    share = weight / max(sum(weights.get(stem, 0.0) for stem in change.subject), 1e-9)
    if change.old_values:
        return (
            bool(shared) and share >= OLD_SHARE and _has_any(values_of(sentence), change.old_values)
        )
    if change.old:
        if not change.old <= stems or _NEGATED.search(sentence.lower()):
            return False
        if shared:
            return change.is_name or share >= OLD_SHARE
        if change.is_done:
            return len(change.old) > 1 and _person(sentence) == change.person != ""
        return change.is_name and _is_in_use(sentence.lower(), change.old_phrase)
    enough = SUBJECT_SHARE if len(shared) > 1 else ONE_WORD_SHARE
    return bool(shared) and share >= enough and _has_another(values_of(sentence), change)


def _may_be_old_state(sentence: str, change: Change) -> bool:
    """Tell whether the stems that are needed stand there at all: to cut most sentences into words
    only to find none of them takes five times as long."""
    folded = unicodedata.normalize("NFKC", sentence).lower()
    if change.old and not change.old_values:
        return all(stem in folded for stem in change.old)
    return any(stem in folded for stem in change.subject)


def _has_any(values: Mapping[str, frozenset[str]], wanted: Mapping[str, frozenset[str]]) -> bool:
    return any(values.get(kind, frozenset()) & some for kind, some in wanted.items())


def _has_another(values: Mapping[str, frozenset[str]], change: Change) -> bool:
    """Tell whether a sentence has a value of one kind with a change's, and not the same."""
    for kind, new in change.values.items():
        before = values.get(kind, frozenset())
        if kind == UNITLESS:
            units = (one for one in values if one.startswith(f"{UNITLESS} "))
            before = frozenset(
                value
                for unit in units
                if _stem(unit.removeprefix(f"{UNITLESS} ")) in change.subject
                for value in values[unit]
            )
        if before and not before & new:
            return True
    return False


def _is_in_use(lowered: str, phrase: str) -> bool:
    """Tell whether a sentence has a value behind "on", "is", "uses", ..."""
    at = lowered.find(phrase)
    return at > 0 and bool(_STATE.search(lowered[max(0, at - 24) : at]))


def _change(sentence: str, match: re.Match[str]) -> Change | None:
    parts, lowered = match.groupdict(), sentence.lower()
    is_done = bool(parts.get("done"))
    phrase = (parts.get("old") or parts.get("done") or "").strip()
    old_words = _content(phrase)[:MOST_OLD_WORDS]
    old = {_stem(word) for word in old_words}
    values = values_of(sentence[match.start() : match.end() + VALUE_CHARS])
    taken = old | {unit.removeprefix(f"{UNITLESS} ") for unit in values}
    before = _about(lowered[: match.start()], taken)[-NEAREST_WORDS:]
    inside = _about(match[0], taken | {_stem(word) for word in words(parts.get("new") or "")})
    around = before + inside
    if len(around) < ENOUGH_WORDS:
        around += _about(lowered[match.end() :], taken)[:NEAREST_WORDS]
    bare = None if old or around else BARE.search(sentence[match.start() :])
    person = _person(sentence)
    if not old and not around and (bare is None or not person):
        return None
    looked_for = (*old_words, *around) if bare is None else _BARE_VERBS[bare["verb"]].split()
    return Change(
        sentence=sentence.strip(),
        subject=frozenset(map(_stem, around)),
        old=frozenset(old),
        new=frozenset(_stem(word) for word in _content(parts.get("new") or "")),
        old_phrase=phrase,
        old_values=_old_values(phrase, values),
        is_done=is_done,
        is_name=_is_name(sentence, match, parts),
        values=values,
        words=tuple(dict.fromkeys(looked_for)),
        bare_verb=bare["verb"] if bare else "",
        person=person,
    )


def _about(text: str, taken: set[str]) -> list[str]:
    return [word for word in _content(text) if _stem(word) not in taken and not word[0].isdecimal()]


def _old_values(phrase: str, values: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """Return what an old phrase is as a value; a bare figure is of the new value's kinds."""
    old = values_of(phrase)
    figures = figures_of(old)
    if UNITLESS not in old or not figures:
        return {kind: some for kind, some in old.items() if kind not in STATES}
    return {kind: figures for kind in values if figures_of({kind: values[kind]})}


def _is_name(sentence: str, match: re.Match[str], parts: Mapping[str, str | None]) -> bool:
    """Tell whether the old value is written like a name, a quotation, or without spaces."""
    if not parts.get("old"):
        return False
    written = sentence[match.start("old") : match.end("old")]
    return any(char.isupper() or char in '`"\u201c/_' or char > "\u2fff" for char in written)


def _read(text: str) -> str:
    return _CODE.sub("\n", text)[:READ_CHARS].replace("\u2019", "'")


def _sentences(read: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(read):
        if not match[0].isspace():
            yield match[0][:LONGEST_SENTENCE_CHARS]


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS and word not in NOT_SUBJECT]


@lru_cache(maxsize=_CACHED_WORDS)
def _stem(word: str) -> str:
    """Return a word without its ending, the same for "deploy" and "deployment"."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _person(sentence: str) -> str:
    match = _PERSON.search(sentence)
    return "" if match is None else match[1].lower()
