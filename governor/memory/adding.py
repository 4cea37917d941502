"""One message stored behind the last one of a session, with no prompt made for it."""

import secrets
from datetime import datetime

from governor.message import Message
from library.library import Library
from library.records import HEAD, Event, IncomingMessage, IncomingTurn, TurnState

TURN_ID_BYTES = 12


def new_turn_id() -> str:
    return secrets.token_hex(TURN_ID_BYTES)


async def add_message(
    library: Library,
    message: Message,
    *,
    collection: str,
    session: str,
    model: str,
    upstream: str,
    now: datetime,
    at: datetime | None = None,
) -> Event:
    """Store a message (not system text, which belongs to each prompt); it is on disk, and can be
    found, when this returns. `at` is when it was said (now).

    Raises:
        StoreUnavailable, StoreCorrupt: it is not stored.

    """
    assert message.digest, "system text is given with each prompt"
    turn_id = new_turn_id()
    recorded = await library.record_turn(
        IncomingTurn(
            turn_id=turn_id,
            collection=collection,
            session_id=session,
            messages=[
                IncomingMessage(
                    message.role, message.digest, message.raw, message.text, occurred_at=at
                )
            ],
            system_texts=(),
            model=model,
            upstream=upstream,
            received_at=now,
            follows=HEAD,
        )
    )
    await library.finish_turn(
        turn_id, state=TurnState.DONE, replies=(), report=b"{}", prompt_state=None, ended_at=now
    )
    [event] = await library.store.events(recorded.event_seqs, collection_id=recorded.collection_id)
    return event
