"""The files of an index, by what in them was deleted.

tantivy only marks what is deleted: its words stay in the file until that is merged with others, and
nobody can ask for a merge. A file of which nothing is left is gone with the commit, so whoever adds
what else lives in a file anew, and deletes it there, rewrites that file and no other.
"""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import tantivy

from library.lexical.scope import between

_SPAN_SEQS = 50_000
"""So many events are looked at together: a hit is an object, and an index may have millions."""


def marked(folder: Path) -> dict[int, int]:
    """Return how many living passages each file has that holds deleted ones too, by its place
    among the files.

    Source: tantivy `index/index_meta.rs`, `meta.json`: searchers number the files in this order.
    """
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    return {
        place: segment["max_doc"] - segment["deletes"]["num_deleted_docs"]
        for place, segment in enumerate(segments)
        if segment["deletes"] is not None and segment["deletes"]["num_deleted_docs"]
    }


def beside_deleted(
    searcher: tantivy.Searcher, schema: tantivy.Schema, folder: Path, *, highest_seq: int
) -> set[int] | None:
    """Return the events with passages in files that hold deleted ones too; None: no file does.

    Nothing may be written meanwhile, and no merge be under way.

    Raises:
        ValueError: the searcher sees other files than the folder has.

    """
    counts = marked(folder)
    if not counts:
        return None
    found: set[int] = set()
    seen: Counter[int] = Counter()
    for low in range(0, highest_seq + 1, _SPAN_SEQS):
        span = between(schema, "seq", low, low + _SPAN_SEQS - 1)
        hits = searcher.search(span, limit=max(1, searcher.num_docs), count=False).hits
        places = [place for _score, place in hits if place.segment_ord in counts]
        seen.update(place.segment_ord for place in places)
        seqs = searcher.fast_field_values("seq", places)
        found.update(seq for seq in seqs if isinstance(seq, int))
    if any(seen[place] != count for place, count in counts.items()):
        raise ValueError("the files of the index are others than its searcher sees")
    return found


def folder_bytes(folder: Path) -> int:
    """Return how large an index's files are, of those that are still there when they are looked
    at: a merge deletes some at any moment."""
    found = 0
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            found += file.stat().st_size
    return found
