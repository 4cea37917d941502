import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.grep.fuzzy import Likeness, similarity, words_of


def like(wanted: str, line: str) -> float:
    found = [*Likeness(wanted.split(), at_least=0.75).lines(f"first\n{line}")]
    assert all((number, text) == (2, line) for number, text, _ in found)
    return found[0][2] if found else 0.0


def test_a_word_is_like_itself_and_like_its_slips() -> None:
    assert like("validation", "The validation failed.") == 1
    assert like("validation", "The validaton failed.") == pytest.approx(0.9)
    assert like("validation", "The vaildation failed.") == pytest.approx(0.9)


def test_a_part_of_a_word_is_not_that_word() -> None:
    assert like("art", "We start at nine.") == 0
    assert like("art", "Modern art.") == 1


def test_every_word_must_be_there() -> None:
    assert like("blue key", "the blue kee") == 0
    assert like("blue keys", "the blue keyz") == pytest.approx(0.875)


def test_accents_and_case_are_letters_like_others() -> None:
    assert like("école", "L'ÉCOLE est fermée") == 1
    assert like("ecole", "L'ÉCOLE est fermée") == pytest.approx(0.8)


def test_so_many_slips_and_no_more() -> None:
    assert similarity("constantinople", "constantinapel", 0.75) == pytest.approx(1 - 2 / 14)
    assert similarity("constantinople", "konstantinapel", 0.75) == 0


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab \nİiéÉ\u0307", max_size=30), max_size=6))
def test_what_was_compared_before_changes_nothing(texts: list[str]) -> None:
    like = Likeness(["abba"], at_least=0.75)
    for text in [*texts, *texts, *map(str.swapcase, texts)]:
        alone = [*Likeness(["abba"], at_least=0.75).lines(text)]
        assert [*like.lines(text)] == alone
        assert bool(alone) == any(similarity("abba", word, 0.75) for word in words_of(text))
