"""What a request about records asks for: the fields of its body, its filter, its collection.

A field that would be passed over is refused, like a query parameter: whoever misspells `tags` must
not believe that their records have some.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from starlette.requests import Request

from gateway.auth import Principal
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import team_ids
from library.errors import UnknownCollection
from library.kinds.filter import IMPORTANCES, KINDS, Filter
from library.kinds.teams import is_shelf
from library.kinds.words import tag_of
from library.library import Library
from library.records import NOWHERE

FILTER_PARAMETERS = "kind type project tag source importance importance_most since until"
VALUES_MAX = 100
"""Of one part of a filter."""
NEAR_MAX = 3
"""Names of collections that are told where none is nearly so called."""

T = TypeVar("T", bound=str)


class Fields:
    """The JSON object of a body; each field is read once, and `done` refuses the rest."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = {name: value for name, value in given.items() if value is not None}

    def text(self, name: str) -> str | None:
        value: str | None = self._typed(name, str, "a text")
        return value

    def flag(self, name: str) -> bool | None:
        value: bool | None = self._typed(name, bool, "true or false")
        return value

    def number(self, name: str) -> int | None:
        value: int | None = self._typed(name, int, "a whole number")
        return value

    def texts(self, name: str) -> list[str] | None:
        value: list[str] | None = self._typed(name, list, "a list of texts")
        if value is not None and not all(isinstance(one, str) for one in value):
            raise BadParameter(name, "a list of texts")
        return value

    def moment(self, name: str) -> datetime | None:
        value = self.text(name)
        return None if value is None else moment_of(value, name)

    def amount(self, name: str) -> float | None:
        value: float | None = self._left.pop(name, None)
        if value is not None and type(value) not in {int, float}:
            raise BadParameter(name, "a number")
        return value

    def needed(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise BadParameter(name, "given")
        return value

    def done(self) -> None:
        """Refuse what was not read.

        Raises:
            BadParameter: there is something.

        """
        for name in self._left:
            raise BadParameter(name, "left out: this path does not take it")

    def _typed(self, name: str, kind: type, must: str) -> Any:
        value = self._left.pop(name, None)
        if value is not None and type(value) is not kind:
            raise BadParameter(name, must)
        return value


def moment_of(value: str, name: str) -> datetime:
    """Return an ISO 8601 date or time; without a zone it is UTC.

    Raises:
        BadParameter: it is none.

    """
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:  # In UTC it may lie beyond the calendar's end.
        raise BadParameter(name, "an ISO 8601 date or time") from error


def filter_of(request: Request) -> Filter:
    """Return the filter in a query's parameters; a part that is named twice may be either value,
    but of tags all must be there.

    Raises:
        BadParameter: a part is not what it must be.

    """
    values = request.query_params

    def several(name: str) -> tuple[str, ...]:
        found = tuple(values.getlist(name))
        if len(found) > VALUES_MAX:
            raise BadParameter(name, f"named at most {VALUES_MAX} times")
        return found

    def moment(name: str, *, ends_day: bool = False) -> datetime | None:
        value = values.get(name)
        if value is None:
            return None
        is_day = ends_day and len(value) == len("2026-01-01")
        return moment_of(f"{value}T23:59:59" if is_day else value, name)

    return Filter(
        kinds=tuple(known(one, KINDS, name="kind") for one in several("kind")),
        types=several("type"),
        projects=several("project"),
        tags=tuple(map(tag_of, several("tag"))),
        sources=several("source"),
        importance_least=optional(values.get("importance"), name="importance"),
        importance_most=optional(values.get("importance_most"), name="importance_most"),
        since=moment("since"),
        until=moment("until", ends_day=True),
    )


def optional(value: str | None, *, name: str) -> Any:
    return None if value is None else known(value, IMPORTANCES, name=name)


def known(value: str, values: Sequence[T], *, name: str) -> T:
    """Return a value that is one of those.

    Raises:
        BadParameter: it is none of them.

    """
    for one in values:
        if one == value:
            return one
    raise BadParameter(name, f"one of {', '.join(values)}")


async def own_reach(
    library: Library, principal: Principal, asked: str | None
) -> int | frozenset[int]:
    """Return the collections that are listed: the caller's own with the shelves of the teams; of
    the owner of the database the one that is named.

    Raises:
        ScopeForbidden: the caller may not.

    """
    own = await own_collection(library, principal, asked)
    return await team_ids(library, principal) | {own} if principal.teams else own


async def named_collection(library: Library, principal: Principal, asked: str | None) -> int | None:
    """Return the collection that is looked into: the caller's own; for the owner of the database
    the one that is named, or None: every one.

    Raises:
        ScopeForbidden: the caller may not.

    """
    if asked is None and principal.is_owner:
        return None
    return await own_collection(library, principal, asked)


async def own_collection(
    library: Library, principal: Principal, asked: str | None, *, makes: bool = False
) -> int:
    """Return the collection that is searched, or with `makes` written to: the caller's own; the
    owner of the database may name another. Reading makes none.

    Raises:
        ScopeForbidden: the caller may not.
        UnknownCollection: the owner names one that is not there, to read from.

    """
    name = asked or principal.collection
    if name != principal.collection and not principal.is_owner:
        raise ScopeForbidden("reach another collection")
    if makes:
        return await library.store.made_collection(name)
    found = await library.store.collection_id(name)
    if found == NOWHERE and name != principal.collection:
        raise await unknown_collection(library, name)
    return found


async def unknown_collection(library: Library, name: str) -> UnknownCollection:
    """Return the error for a collection that the owner of the database named: with those that are
    called nearly so, else the first that there are."""
    given = [one for one in await library.store.collection_names() if not is_shelf(one)]
    return UnknownCollection(name, get_close_matches(name, given) or given[:NEAR_MAX])
