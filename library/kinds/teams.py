"""The names of teams and of their shelves. Pure.

A team's shelf is a collection of its own, under a name that no key can have as its own.
"""

import re

from library.errors import Unacceptable

TEAM_PREFIX = "team:"
"""Of the collections that are the shelves of teams."""
_TEAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def shelf_of(team: str) -> str:
    """Return the name of the collection that holds what a team shares.

    Raises:
        Unacceptable: it is no name of a team.

    """
    if not _TEAM_NAME.fullmatch(team):
        raise Unacceptable("team", "1 to 64 letters, digits, dots, dashes and underscores")
    return TEAM_PREFIX + team


def is_shelf(collection: str) -> bool:
    """Tell whether a collection is a team's, and so nobody's own."""
    return collection.startswith(TEAM_PREFIX)
