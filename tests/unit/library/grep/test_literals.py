import regex
from hypothesis import given
from hypothesis import strategies as st

from library.grep.literals import required
from library.grep.runs import LITERAL_CHARS_MAX, PIECE_CHARS, fold, runs_of


def test_a_run_outside_of_groups_classes_and_repetitions_is_required() -> None:
    assert required("boathouse") == ("boathouse",)
    assert required(r"def (one|two)\b") == ("def",)
    assert required(r"\bpath\.join\(") == ("path",)
    assert required("[abc]defg") == ("defg",)
    assert required("colou?r") == ("colo",)
    assert required("needle|haystack") == ("needle", "haystack")
    assert required("ÉCOLE") == ("école",)


def test_where_it_is_not_sure_nothing_is_required() -> None:
    for pattern in ("(?i)boat", "(?x)bo at", r"\p{L}boat", r"a\Kboat", "(unclosed", "ab", "boat|a"):
        assert required(pattern) == (), pattern


PARTS = st.one_of(
    st.sampled_from(
        [
            "boat",
            "HOUSE",
            "a",
            "é",
            "\u017f",
            "İ",
            "x1_",
            " ",
            ".",
            r"\.",
            r"\d",
            r"\w+",
            "[a-z]",
            "[^]x]",
        ]
    ),
    st.sampled_from(
        ["(boat|house)", "(?:a(b)c)?", "(?=b)", "(?!zz)", "|", "*", "+?", "{2}", "{e<=1}"]
    ),
)


@given(
    st.lists(PARTS, max_size=6).map("".join),
    st.text("boathuseBOAHTé 1_.x\n\u017fİ\u0131K", max_size=60),
)
def test_every_match_holds_what_is_required(pattern: str, text: str) -> None:
    """Else a grep would pass over texts that match."""
    try:
        compiled = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
    except regex.error:
        return
    literals = required(pattern)
    if literals and compiled.search(text, timeout=1):
        pieces = runs_of(text, 0, len(text))
        assert any(one in piece for one in literals for piece in pieces)


@given(st.text("ab_é1 .", max_size=400), st.data())
def test_any_literal_of_a_passage_stands_in_one_of_its_pieces(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    pieces = runs_of(text, start, stop)
    assert all(len(piece) <= PIECE_CHARS for piece in pieces)
    for match in regex.finditer(r"\w+", text[start:stop]):
        at = data.draw(st.integers(0, len(match[0]) - 1))
        literal = fold(match[0][at : at + LITERAL_CHARS_MAX])
        assert any(literal in piece for piece in pieces)
