"""gateway/cli/status.py: a status is told in words, whatever it lacks."""

from typing import Any

from gateway.cli.status import rows

FOUND: dict[str, Any] = {
    "write_problem": None,
    "recorded_seq": 1_204,
    "indexed_seq": 1_200,
    "pending_count": 4,
    "oldest_pending_at": "2026-01-05T09:00:00.123Z",
    "quarantined": [],
    "index": {"is_whole": True, "passages": 2_400, "size_bytes": 1_250_000},
    "vectors_bytes": 0,
    "is_embedder_down": False,
    "path_cache": {"hits": 1, "misses": 2},
}


def test_a_status_is_told_in_words() -> None:
    assert rows(FOUND) == [
        ("recorded", "up to number 1,204"),
        ("indexed", "up to number 1,200"),
        ("to be indexed", "4 messages, the oldest since 2026-01-05 09:00:00"),
        ("set aside", "0 messages that failed repeatedly"),
        ("index", "2,400 passages, 1.2 MB"),
        ("vectors", "none in memory"),
        ("embedder", "in order"),
        ("writing", "in order"),
    ]


def test_what_is_not_in_order_is_told() -> None:
    broken = FOUND | {
        "write_problem": "the disk is full",
        "index": {"is_whole": False, "error": "not open"},
        "is_embedder_down": True,
    }
    told = dict(rows(broken))
    assert told["writing"] == "the disk is full"
    assert told["index"] == "not open"
    assert told["embedder"] == "down: recall is by words"
    assert dict(rows(FOUND | {"index": {"is_whole": False}}))["index"].startswith("being built")
    assert len(rows({})) == len(told)
