"""What every match of a pattern must contain. Pure.

Only enough of the syntax is read to be sure: a run of letters and digits that stands outside of
every group, class and repetition. Where anything else could change what it means, nothing is
required, and more texts are read; to require too much would miss matches.
"""

from collections.abc import Iterator

from library.grep.runs import folded

LITERAL_CHARS_MIN = 3
"""A shorter one is in nearly every text."""
_QUANTIFIERS = "?*+{"
_HARMLESS_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?P<", "?>")
_NO_LITERALS = frozenset("bBAZzdDsSwWntrfva")
"""Escapes that stand for no letter of a run, or for an unknown one."""


class _Unsure(Exception):
    """The pattern holds something that this does not read."""


def required(pattern: str) -> tuple[str, ...]:
    """Return literals of which every match has at least one; () if none is known.

    They are folded as the index holds them.
    """
    try:
        alternatives = [max(runs, key=len, default="") for runs in _alternatives(pattern)]
    except _Unsure:
        return ()
    if any(len(one) < LITERAL_CHARS_MIN for one in alternatives):
        return ()
    return tuple(dict.fromkeys(map(folded, alternatives)))


def _alternatives(pattern: str) -> Iterator[list[str]]:
    """Yield the runs that each alternative of the whole pattern requires."""
    runs, run, at = [""], "", 0

    def end() -> None:
        nonlocal run
        runs.append(run)
        run = ""

    while at < len(pattern):
        letter, at = pattern[at], at + 1
        if letter == "|":
            end()
            yield runs
            runs = [""]
        elif letter == "(":
            end()
            at = _after_group(pattern, at)
        elif letter == "[":
            end()
            at = _after_class(pattern, at)
        elif letter in _QUANTIFIERS:
            # What it repeats may be missing (`?`, `*`, `{0,}`), or stand there again (`+`).
            run = run[:-1]
            end()
            if letter == "{":
                at = _after(pattern, "}", at)
        elif letter == "\\":
            end()
            at = _after_escape(pattern, at)
        elif letter.isalnum() or letter == "_":
            run += letter
        else:
            end()
    end()
    yield runs


def _after_escape(pattern: str, at: int) -> int:
    escaped = pattern[at : at + 1]
    if not escaped or (escaped.isalnum() and escaped not in _NO_LITERALS):
        raise _Unsure
    return at + 1


def _after_class(pattern: str, at: int) -> int:
    if pattern[at : at + 1] == "^":
        at += 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "[":
            raise _Unsure  # A set within a set, or a POSIX class.
        at += 2 if pattern[at] == "\\" else 1
    return _after(pattern, "]", at)


def _after_group(pattern: str, at: int) -> int:
    """Return where the group that opened before `at` is over."""
    depth = 1
    while depth:
        is_opened = pattern[at - 1] == "("
        is_special = is_opened and pattern[at : at + 1] == "?"
        if is_special and not pattern.startswith(_HARMLESS_GROUPS, at):
            raise _Unsure  # Flags change what all letters mean.
        at = _next_bracket(pattern, at)
        depth += 1 if pattern[at] == "(" else -1
        at += 1
    return at


def _next_bracket(pattern: str, at: int) -> int:
    while at < len(pattern):
        if pattern[at] in "()":
            return at
        if pattern[at] == "[":
            at = _after_class(pattern, at + 1)
        else:
            at += 2 if pattern[at] == "\\" else 1
    raise _Unsure


def _after(pattern: str, end: str, at: int) -> int:
    found = pattern.find(end, at)
    if found < 0:
        raise _Unsure
    return found + len(end)
