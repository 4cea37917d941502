"""How far a library is, what is stuck, and how large things are."""

from typing import Any

from library.catalogue import Catalogue
from library.embedding.meaning import Meaning
from library.lexical import LexicalUnavailable
from library.retrieval.scope import LivePaths
from library.store.contract import Store


async def status_of(
    store: Store, catalogue: Catalogue, meaning: Meaning, paths: LivePaths
) -> dict[str, Any]:
    """Return it as plain data; the caller adds what it keeps in memory itself."""
    marks = await store.watermarks()
    index: dict[str, Any] = {
        "is_whole": catalogue.is_whole,
        "is_purged": not catalogue.must_purge,
    }
    try:
        index |= await catalogue.sizes()
    except LexicalUnavailable as error:
        index["error"] = str(error)
    return {
        "recorded_seq": marks.recorded,
        "indexed_seq": marks.indexed,
        "pending_count": marks.pending_count,
        "oldest_pending_at": marks.oldest_pending_at,
        "quarantined": [
            {"seq": one.seq, "event_id": one.event_id, "attempts": one.attempts, "error": one.error}
            for one in marks.quarantined
        ],
        "index": index,
        "embedding": await meaning.status(),
        "path_cache": {"hits": paths.hits, "misses": paths.misses},
    }
