"""Who asks through MCP, and the collection they are in.

The door has let the request in already (gateway/middleware.py): a key stands for one collection.
Only the owner of the database, through the bridge, may name another.
"""

from dataclasses import dataclass

from mcp.server.mcpserver import Context

from gateway.auth import Principal
from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import NAME_CHARS_MAX, team_ids
from gateway.routes.asked import unknown_collection
from gateway.routes.handed import MODEL
from governor.standing import Counting
from library.library import Library
from library.records import NOWHERE


@dataclass(frozen=True, slots=True)
class Asker:
    """One caller of a tool, with what the tool works on."""

    library: Library
    principal: Principal
    collection: str
    collection_id: int
    team_ids: frozenset[int]
    """Shelves of the teams that the caller's key is in."""

    @property
    def reach(self) -> frozenset[int]:
        """What the caller reads."""
        return self.team_ids | {self.collection_id}


class Access:
    """Finds out who asks, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def asker(
        self, context: Context, *, collection: str | None = None, makes: bool = False
    ) -> Asker:
        """Return who made the call that `context` belongs to; `collection` is one that the call
        itself names, and with `makes` it is made when it is new. In one that is not there nothing
        is found.

        Raises:
            NotReady: the library is not open.
            ScopeForbidden: a key that names another collection than its own.
            UnknownCollection: the call itself names one that is not there, to read from.

        """
        library, _, _ = self.gateway.opened()
        request = context.request_context.request
        assert request is not None, "only HTTP comes here"
        principal = visit_of(request.scope).principal
        name = collection or request.query_params.get("collection", principal.collection)
        if name != principal.collection and not principal.is_owner:
            raise ScopeForbidden(f"reach the collection {name!r}")
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise BadParameter("collection", f"1 to {NAME_CHARS_MAX} printable characters")
        store = library.store
        number = await (store.made_collection(name) if makes else store.collection_id(name))
        if number == NOWHERE and collection and name != principal.collection:
            raise await unknown_collection(library, name)
        return Asker(library, principal, name, number, await team_ids(library, principal))

    def count(self) -> Counting:
        """Return what counts tokens where no model is named."""
        return self.gateway.counters.counter_for(MODEL).count
