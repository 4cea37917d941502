"""Every case from the field that this product must show is some test's subject, or listed here.

A test names its case in its docstring (`CASES A1`); this module reads the sources of all tests.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
COUNTS = {"A": 13, "B": 10, "C": 5, "D": 11, "E": 5, "F": 4, "G": 4, "H": 5, "I": 4, "J": 12}
"""The sections with their number of cases."""

CANNOT_APPLY: dict[str, str] = {}
IN_EACH_PROTOCOL = "ABCDEFH"
"""Sections of which every case is shown for each protocol that clients speak (issue 5)."""
NOT_OF_EACH = {
    "B7": "chat completions has no endpoint that counts; the others' are in test_messages.py, "
    "test_anthropic_client.py and test_openai_responses.py",
    "D2": "`include_usage` is a wish that chat completions alone knows; the others' numbers are "
    "relayed with the rest (D3) and read (B6)",
    "E4": "every other path belongs to no protocol",
}


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
    assert wanted - named - CANNOT_APPLY.keys() == set()
    assert named & CANNOT_APPLY.keys() == set()


def in_each(path: Path) -> set[str]:
    """Return the cases of which a test in this file runs in each protocol, or goes through them."""
    source = path.read_text(encoding="utf-8")
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if re.search(r"in_each_protocol|'protocol'", decorators) or re.search(
                r"\bPROTOCOLS\b|\bLIMITS\b", ast.unparse(node)
            ):
                found |= cases_of(ast.get_docstring(node) or "")
    return found


def test_every_case_of_a_request_and_its_answer_is_shown_in_each_protocol() -> None:
    shown = {case for path in TESTS.glob("e2e/test_*.py") for case in in_each(path)}
    wanted = {f"{one}{n}" for one in IN_EACH_PROTOCOL for n in range(1, COUNTS[one] + 1)}
    assert wanted - shown == {*NOT_OF_EACH}
