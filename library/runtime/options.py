"""How to open a library."""

from dataclasses import dataclass, field
from pathlib import Path

from library.embedding.meaning import QUESTION_TIMEOUT_S
from library.embedding.names import NONE
from library.embedding.opening import EmbedderOptions
from library.retrieval.ranking import Preset


@dataclass(frozen=True, slots=True)
class LibraryOptions:
    """How to open a library."""

    db: Path
    """The index lies beside it in the folder `<db>.index`."""
    embedder: str = NONE
    """See `library.embedding.names`."""
    embedder_options: EmbedderOptions = field(default_factory=EmbedderOptions)
    question_timeout_s: float = QUESTION_TIMEOUT_S
    """How long a search waits for its question to be embedded; then it goes by words."""
    ranking: Preset = "measured"
    mask_secrets: bool = False
    """Replace what looks like a secret before it is stored."""
    allow_network_fs: bool = False
    """Open the database although it lies on a network file system."""
    redis_url: str = ""
    """A Redis to share what was worked out; empty: none."""
    redis_keyspace: str = ""
    """Those who name the same share it; empty: a random one that belongs to the database."""
