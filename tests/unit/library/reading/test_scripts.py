import pytest

from library.reading.scripts import is_latin


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the key?", True),
        ("Où est la clé, Zoë?", True),
        ("12.5 %", True),
        ("", True),
        ("备用钥匙在哪里?", False),
        ("鍵はどこですか", False),
        ("열쇠는 어디에 있어요", False),
        ("Где ключ?", False),
        ("The project 苍鹭 ships in June", True),
        ("项目苍鹭用的是 AWS 吗", False),
    ],
)
def test_a_text_is_latin_when_half_of_its_letters_are(text: str, expected: bool) -> None:
    assert is_latin(text) is expected
