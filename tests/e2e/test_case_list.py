"""Every case from the field that this product must show is some test's subject, or listed here.

A test names its case in its docstring (`CASES A1`); this module reads the sources of all tests.
"""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
COUNTS = {"A": 13, "B": 10, "C": 5, "D": 11, "E": 5, "F": 4, "G": 4, "H": 5, "I": 4, "J": 11}
"""The sections of issue 2, with their number of cases; J7, J8, J12 belong to later issues
(what of them can be shown today is)."""

LATER = {
    "J7": "the same sentence six times: near-duplicates are the retrieval issue's",
    "J8": "a replaced fact: links between records are the retrieval issue's",
}
CANNOT_APPLY: dict[str, str] = {}


def cases_of(source: str) -> set[str]:
    """Return the cases that the docstrings in a source name."""
    found: set[str] = set()
    for run in re.findall(r"CASES ((?:[A-J]\d{1,2}(?:-[A-J]\d{1,2})?(?:, | and )?)+)", source):
        for first, last in re.findall(r"([A-J]\d{1,2})(?:-([A-J]\d{1,2}))?", run):
            stop = int((last or first)[1:])
            found |= {f"{first[0]}{n}" for n in range(int(first[1:]), stop + 1)}
    return found


def test_ranges_and_lists_of_cases_are_read() -> None:
    source = "CASES " + "A1 (x#1), CASES " + "B2, B3 and CASES " + "C1-C3"
    assert cases_of(source) == {"A1", "B2", "B3", "C1", "C2", "C3"}


def test_every_case_has_a_test_or_a_reason() -> None:
    named: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            body = path.read_text(encoding="utf-8").partition('"""\n\n')[2]
            named |= cases_of(body)
    wanted = {f"{section}{n}" for section, count in COUNTS.items() for n in range(1, count + 1)}
    assert wanted - named - LATER.keys() - CANNOT_APPLY.keys() == set()
    assert named & CANNOT_APPLY.keys() == set()
