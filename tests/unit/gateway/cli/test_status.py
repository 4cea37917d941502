"""gateway/cli/status.py: a status is told in words, whatever it lacks."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli.main import cli
from gateway.cli.status import rows

FOUND: dict[str, Any] = {
    "write_problem": None,
    "recorded_seq": 1_204,
    "indexed_seq": 1_200,
    "pending_count": 4,
    "oldest_pending_at": "2026-01-05T09:00:00.123Z",
    "quarantined": [],
    "index": {"is_whole": True, "passages": 2_400, "size_bytes": 1_250_000},
    "embedding": {
        "name": "hashing",
        "identity": "hashing-256-v2/1",
        "embedded_seq": 1_190,
        "owed_count": 10,
        "failed_count": 0,
        "serving": "hashing-256-v2/1",
        "replaces": None,
        "problem": "",
        "vectors_bytes": 0,
    },
    "retention": {
        "archived_threads": 3,
        "plain_bytes": 4_000_000,
        "stored_bytes": 1_000_000,
        "last_run": {"at": "2026-01-04T03:00:00+00:00"},
    },
    "disk": {"free_bytes": 90_000_000, "is_low": True},
    "path_cache": {"hits": 1, "misses": 2},
    "caches": {
        "question": {"hits": 3, "misses": 1},
        "ranking": {"hits": 0, "misses": 4},
        "near": {"bytes": 1_500_000, "entries": 5, "evicted": 0},
        "record": {"hits": 1_200, "misses": 300, "bytes": 500_000, "entries": 300, "evicted": 0},
        "token_counts": {"hits": 9, "misses": 1, "bytes": 1_000_000},
    },
    "cache_problem": "",
}


def test_a_status_is_told_in_words() -> None:
    assert rows(FOUND) == [
        ("recorded", "up to number 1,204"),
        ("indexed", "up to number 1,200"),
        ("to be indexed", "4 messages, the oldest since 2026-01-05 09:00:00"),
        ("set aside", "0 messages that failed repeatedly"),
        ("index", "2,400 passages, 1.2 MB"),
        ("embedder", "hashing-256-v2/1"),
        ("embedded", "up to number 1,190, 10 messages to go"),
        ("vectors", "none in memory"),
        (
            "remembered",
            "question vectors 3 of 4, rankings 0 of 4, records 1,200 of 1,500, "
            "token counts 9 of 10; 3.0 MB in memory",
        ),
        ("archived", "3 threads and records, 1.0 MB of 4.0 MB; last run 2026-01-04 03:00"),
        ("disk", "nearly full: 90.0 MB free"),
        ("writing", "in order"),
    ]


def test_what_is_not_in_order_is_told() -> None:
    broken = FOUND | {
        "write_problem": "the disk is full",
        "index": {"is_whole": False, "error": "not open"},
        "embedding": FOUND["embedding"] | {"problem": "gone", "serving": None},
    }
    told = dict(rows(broken))
    assert told["writing"] == "the disk is full"
    assert told["index"] == "not open"
    assert told["embedder"] == "recall is by words: gone"
    assert dict(rows(FOUND | {"index": {"is_whole": False}}))["index"].startswith("being built")
    assert len(rows({})) == len(told)


def test_one_message_is_not_messages() -> None:
    embedding = FOUND["embedding"] | {"owed_count": 1}
    told = dict(rows(FOUND | {"pending_count": 1, "embedding": embedding, "quarantined": [{}]}))
    assert told["to be indexed"].startswith("1 message, ")
    assert told["set aside"] == "1 message that failed repeatedly"
    assert told["embedded"].endswith(" 1 message to go")


def test_an_embedder_that_is_being_loaded_is_told_with_what_it_made_before() -> None:
    """Without a gateway it was `embedded nothing`, and `recall is by words`."""
    loading = {"is_loading": True, "serving": None, "problem": "the embedder is being loaded"}
    found = FOUND | {"embedding": FOUND["embedding"] | loading | {"owed_count": 0}}
    told = dict(rows(found, is_served=False))
    assert told["embedder"] == "hashing-256-v2/1: loaded when it is needed"
    assert told["embedded"] == "up to number 1,190"
    assert told["vectors"] == "no gateway runs, which would hold them in memory"
    assert dict(rows(found))["embedder"].endswith(": recall is by words until it is loaded")


def test_a_shared_cache_is_told_with_what_keeps_it_from_answering() -> None:
    caches = FOUND["caches"] | {"redis": {"hits": 2, "misses": 3}}
    shared = FOUND | {"caches": caches}
    assert dict(rows(shared))["redis"] == "2 of 5 of what is not in memory"
    told = dict(rows(shared | {"cache_problem": "invalid password"}))
    assert told["redis"] == "left alone: invalid password"


def test_it_is_told_which_embedder_takes_over_from_which() -> None:
    embedding = FOUND["embedding"] | {
        "identity": "onnx:m:1/1",
        "replaces": "hashing-256-v2/1",
        "failed_count": 2,
        "problem": "slow",
    }
    told = dict(rows(FOUND | {"embedding": embedding}))
    assert told["embedder"] == "hashing-256-v2/1; held up: slow"
    assert told["embedded"] == (
        "up to number 1,190, 10 messages to go; onnx:m:1/1 takes over from hashing-256-v2/1 then; "
        "2 that cannot be embedded"
    )
    waiting = embedding | {"problem": "", "serving": None}
    assert "until all is embedded" in dict(rows(FOUND | {"embedding": waiting}))["embedder"]
    assert dict(rows(FOUND | {"embedding": {"name": "none"}}))["embedder"].startswith("none")


def test_what_was_set_aside_is_told_and_tried_again_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6, a known fault: a quarantined event can be tried again over every interface."""
    monkeypatch.setenv("LIBRARY_OF_CONTEXT_EMBEDDER", "none")
    db = tmp_path / "a.db"

    def told(*arguments: str) -> Any:
        done = CliRunner().invoke(cli, [*arguments, "--db", str(db), "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    told("remember", "the heron nests in the reeds")
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(
            "INSERT OR REPLACE INTO outbox (seq, thread_no, is_quarantined, error) "
            "SELECT seq, thread_no, 1, 'boom' FROM event"
        )
    [stuck] = told("status")["quarantined"]
    assert (stuck["seq"], stuck["error"]) == (1, "boom")
    assert told("status", "--retry")["quarantined"] == []
