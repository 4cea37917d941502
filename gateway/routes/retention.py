"""The routes under /library/retention: what would be done, what is archived, and doing it."""

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core import Gateway
from gateway.refusals import BadParameter
from gateway.retention.policy import LIMITS, own_rule, policy_of
from gateway.retention.settings import DAYS_MAX
from gateway.retention.telling import holding_fields, plan_fields
from gateway.routes.answers import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    body_fields,
    collection_of,
    json_response,
    number,
    principal_of,
    route,
    text,
)
from gateway.routes.asked import VALUES_MAX, Fields, named_collection
from library.library import Library
from library.retention.policy import Policy

WHOLE = ("most_bytes", "most_records")
WHOLE_MAX = 2**53


class RetentionRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        rule = f"kind project {' '.join(LIMITS)}"
        return [
            route("/retention/preview", self.preview, takes=f"collection limit {rule}"),
            route("/retention/run", self.run, "POST"),
            route("/retention/archived", self.archived, takes="collection limit after"),
            route("/retention/archive", self.archive, "POST"),
            route("/retention/restore", self.restore, "POST"),
            route("/retention/purge", self.purge, "POST"),
        ]

    async def _asked(self, request: Request, name: str | None) -> tuple[Library, int | None]:
        """Return the collection that is meant; None: all, which only the owner may mean."""
        library, _, _ = self._gateway.opened()
        return library, await named_collection(library, principal_of(request), name)

    async def preview(self, request: Request) -> Response:
        library, collection_id = await self._asked(request, text(request, "collection"))
        limit = number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX)
        given = request.query_params
        policy = self._policy(
            kinds=given.getlist("kind"),
            projects=given.getlist("project"),
            **{name: _amount(given.get(name), name) for name in LIMITS},
        )
        plan = await library.retention.preview(policy, collection_id=collection_id)
        return json_response(await plan_fields(library, plan, limit=limit))

    async def run(self, request: Request) -> Response:
        fields = Fields(await body_fields(request))
        library, collection_id = await self._asked(request, fields.text("collection"))
        policy = self._policy(
            kinds=fields.texts("kind") or (),
            projects=fields.texts("project") or (),
            **{name: fields.amount(name) for name in LIMITS},
        )
        is_dry = fields.flag("dry_run")
        fields.done()
        if is_dry:
            plan = await library.retention.preview(policy, collection_id=collection_id)
            return json_response(await plan_fields(library, plan, limit=LIMIT_MAX))
        done = await library.retention.run(policy, collection_id=collection_id)
        if done.purged:
            self._gateway.forget_seen()
        return json_response(asdict(done))

    def _policy(self, **rule: Any) -> Policy:
        for name in LIMITS:
            is_whole, most = name in WHOLE, WHOLE_MAX if name in WHOLE else DAYS_MAX
            value = rule[name]
            if value is None:
                continue
            if not 0 <= value <= most or (is_whole and value != int(value)):
                raise BadParameter(name, f"a{' whole' * is_whole} number from 0 to {most}")
            rule[name] = int(value) if is_whole else value
        return policy_of(self._gateway.settings, own=own_rule(**rule))

    async def archived(self, request: Request) -> Response:
        library, collection_id = await self._asked(request, text(request, "collection"))
        found = await library.retention.archived(
            collection_id=collection_id,
            after=number(request, "after", default=0),
            limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
        )
        next_after = found[-1].no if found else None
        return json_response(
            {"archived": await holding_fields(library, found), "next_after": next_after}
        )

    async def archive(self, request: Request) -> Response:
        library, collection_id, names = await self._named(
            request, Fields(await body_fields(request))
        )
        count = await library.retention.archive(names, collection_id=collection_id)
        return json_response({"archived_count": count})

    async def restore(self, request: Request) -> Response:
        library, collection_id, names = await self._named(
            request, Fields(await body_fields(request))
        )
        count = await library.retention.restore(names, collection_id=collection_id)
        return json_response({"restored_count": count})

    async def purge(self, request: Request) -> Response:
        """Delete what is named for good, or with `dry_run` say what that is."""
        fields = Fields(await body_fields(request))
        is_dry = fields.flag("dry_run")
        library, collection_id, names = await self._named(request, fields)
        if is_dry:
            found = await library.retention.named(names, collection_id=collection_id)
            return json_response({"would_purge": await holding_fields(library, found)})
        count = await library.retention.purge(names, collection_id=collection_id)
        self._gateway.forget_seen()
        return json_response({"purged_count": count})

    async def _named(
        self, request: Request, fields: Fields
    ) -> tuple[Library, int | None, list[str]]:
        names = fields.texts("ids")
        fields.done()
        if not names or len(names) > VALUES_MAX:
            raise BadParameter("ids", f"a list of 1 to {VALUES_MAX} ids")
        library, _, _ = self._gateway.opened()
        return library, await collection_of(library, principal_of(request)), names


def _amount(value: str | None, name: str) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError as error:
        raise BadParameter(name, "a number") from error
