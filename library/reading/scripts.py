"""Which script a text is written in. Pure."""

READ_CHARS = 1_000
LATIN_BELOW = "\u0250"
"""Latin letters with all their accents lie below, and hardly any others."""


def is_latin(text: str) -> bool:
    """Tell whether at least half of the letters are Latin; a text without letters counts too."""
    if text.isascii():
        return True
    letters = [char for char in text[:READ_CHARS] if char.isalpha()]
    return 2 * sum(char < LATIN_BELOW for char in letters) >= len(letters)
