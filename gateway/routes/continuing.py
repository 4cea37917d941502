"""The past that a request names and does not bring, out of our own store.

So a client that sends only what is new works with an upstream that keeps nothing, and what the
model is sent is governed like any other transcript: the reply that it follows is a place in a
thread (`TurnRequest.follows`), and the governor reads the messages before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gateway.refusals import UnknownItem, UnknownReply
from gateway.wire.protocol import ClientRequest, Wire
from library.errors import UnknownRecord
from library.library import Library
from library.records import HEAD, Event, Follows, NamedReply

BY_REPLY = "previous_response_id"


@dataclass(frozen=True, slots=True)
class Continued:
    """A request with what it only named."""

    request: ClientRequest
    follows: Follows | None
    reply: NamedReply | None
    """What it goes on from; None: it names none."""


async def continued(
    request: ClientRequest, wire: Wire, library: Library, collection: str
) -> Continued:
    """Return a request with the items that it referred to, and what it goes on from.

    Raises:
        UnknownReply, UnknownItem: the caller's collection has none of that id.

    """
    past = request.past
    if past is None or wire.with_past is None:
        return Continued(request, None, None)
    collection_id = await library.store.collection_id(collection)
    reply: NamedReply | None = None
    if past.reply is not None:
        try:
            reply = await library.store.names.reply(past.reply, collection_id=collection_id)
        except UnknownRecord as error:
            raise UnknownReply(past.reply) from error
    items = await _items(library, past.items, collection_id) if past.items else {}
    texts = reply.system_texts if reply is not None else ()
    follows: Follows | None = HEAD if past.is_session else None
    return Continued(
        wire.with_past(request, items, texts), reply.seq if reply is not None else follows, reply
    )


async def _items(
    library: Library, names: Iterable[str], collection_id: int
) -> dict[str, dict[str, Any]]:
    wanted = list(dict.fromkeys(names))
    seqs = await library.store.names.seqs(wanted, collection_id=collection_id)
    replies = await library.store.events(sorted(set(seqs.values())), collection_id=collection_id)
    found = {item["id"]: item for reply in replies for item in _named_items(reply)}
    for name in wanted:
        if name not in found:
            raise UnknownItem(name)
    return found


def _named_items(reply: Event) -> list[dict[str, Any]]:
    items = reply.body.get("items")
    return [item for item in items if "id" in item] if isinstance(items, list) else []
