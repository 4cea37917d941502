"""The routes under /library/promotions: copy a record to where more askers find it, and take the
copy back."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.auth import Principal
from gateway.core import Gateway
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import body_fields, json_response, principal_of, route, text
from gateway.routes.asked import Fields, known, own_collection
from gateway.routes.insights import record_fields
from library.kinds.promoting import Promoted
from library.library import Library

TARGETS = ("team", "project")


class PromotionRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            route("/promotions", self.promote, "POST"),
            route("/promotions/{record}", self.undo, "DELETE", takes="team"),
        ]

    async def promote(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        fields = Fields(await body_fields(request))
        name, collection = fields.needed("record"), fields.text("collection")
        to, team = fields.text("to"), fields.text("team")
        fields.done()
        done = await promoted(
            library,
            principal_of(request),
            name,
            to=to,
            team=team,
            known_teams=await self._gateway.teams(),
            collection=collection,
        )
        status = HTTPStatus.CREATED if done.state == "new" else HTTPStatus.OK
        return json_response(record_fields(done.record) | {"state": done.state}, status)

    async def undo(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        count = await taken_back(
            library,
            principal_of(request),
            request.path_params["record"],
            team=text(request, "team"),
        )
        self._gateway.forget_seen()
        return json_response({"taken_back_count": count})


async def promoted(
    library: Library,
    principal: Principal,
    name: str,
    *,
    to: str | None,
    team: str | None,
    known_teams: frozenset[str] | None,
    collection: str | None = None,
) -> Promoted:
    """Copy a record of the caller's (the owner of the database may name another `collection`) to
    its project, or to a team of its key: with `to` None to that, where a team is named or known.

    `known_teams` are those that keys name; None: there are no keys.

    Raises:
        ScopeForbidden: the key is not in that team, or reaches no further than a thread, or it
            names another collection.
        UnknownCollection: the owner names one that is not there.
        BadParameter: it is not said to which of several teams, or there is none of that name.
        UnknownRecord: there is no such record.
        Unacceptable: the whole project finds it already.

    """
    own = collection or principal.collection
    await own_collection(library, principal, collection)
    target = known(to, TARGETS, name="to") if to is not None else "team"
    if target == "project" and team is not None:
        raise BadParameter("team", "left out: it goes to the project")
    if target == "project" and "project" not in principal.scopes:
        raise ScopeForbidden("promote to the project")
    return await library.promotions.promote(
        name,
        collection=own,
        team=None if target == "project" else _team(principal, team, known_teams),
        by=principal.name,
    )


def _team(principal: Principal, asked: str | None, known_teams: frozenset[str] | None) -> str:
    """Return the team that is meant: membership comes from the key, and from nothing else. A copy
    for a team that no key names would be found by nobody."""
    if known_teams is None:
        named = "" if asked is None else f", not {asked!r}"
        raise BadParameter(
            "team", f"one that a key names (`keys add --team`){named}; there are no keys here"
        )
    if asked is None:
        if len(principal.teams) == 1:
            return principal.teams[0]
        raise BadParameter("team", f"one of {', '.join(principal.teams) or 'those of your key'}")
    if asked not in principal.teams and not principal.is_owner:
        raise ScopeForbidden(f"reach the team {asked!r}")
    if asked not in known_teams:
        named = ", ".join(sorted(known_teams)) or "no key names one"
        raise BadParameter("team", f"one that a key names ({named}), not {asked!r}")
    return asked


async def taken_back(
    library: Library, principal: Principal, name: str, *, team: str | None = None
) -> int:
    """Delete the copies that the caller's collection gave of a record; return how many.

    Raises:
        UnknownRecord: it gave none.

    """
    collection = None if principal.is_owner else principal.collection
    return await library.promotions.undo(name, collection=collection, team=team)
