"""A desk laid out afresh because somebody asks for it."""

from governor.state import refreshed
from library.library import Library


async def refresh_desk(library: Library, thread_id: str, *, collection_id: int | None) -> None:
    """Let the next prompt of a thread be laid out afresh, window and desk, whatever the policy
    says. A turn that is being answered now ends after this, and takes it back.

    Raises:
        UnknownRecord: no such thread there.
        StoreUnavailable: it could not be stored.

    """
    state = refreshed(await library.store.prompt_state(thread_id, collection_id=collection_id))
    if state is not None:
        await library.store.set_prompt_state(thread_id, state, collection_id=collection_id)
