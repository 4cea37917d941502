"""Metrics that stay few."""

from datetime import UTC, datetime

from gateway.telemetry import Telemetry
from gateway.upstream.protocol import UpstreamFailed
from library.errors import StoreUnavailable
from tests.unit.gateway.peers import ended

STATUS = {
    "pending_count": 3,
    "quarantined": [],
    "oldest_pending_at": datetime(2026, 1, 1, tzinfo=UTC),
    "recorded_seq": 9,
    "indexed_seq": 6,
    "retention": {
        "archived_threads": 2,
        "plain_bytes": 900,
        "stored_bytes": 300,
        "last_run": {"archived": 2, "restored": 0, "purged": 1},
    },
    "disk": {"free_bytes": 5, "is_low": True},
    "embedding": {"embedded_seq": 4, "owed_count": 2, "problem": "gone"},
}


async def test_an_exchange_is_counted_by_part_step_and_lack() -> None:
    telemetry = Telemetry(logs_text=False)
    telemetry.ended(ended(error=UpstreamFailed("timeout", "x"), steps_ms={"first_byte": 200.0}))
    telemetry.ended(ended(store_error=StoreUnavailable("full")))
    text = telemetry.exposed(STATUS, {"token_counts": {"hits": 5}}, {"queued_writes": 2}).decode()
    for line in (
        'library_prompt_tokens_total{part="window"} 140.0',
        'library_degraded_total{part="embedder"} 2.0',
        'library_upstream_errors_total{kind="timeout"} 1.0',
        'library_store_errors_total{reason="full"} 1.0',
        'library_outbox_events{state="pending"} 3.0',
        'library_archive{what="stored_bytes"} 300.0',
        'library_retention_last_run{what="purged"} 1.0',
        "library_disk_free_bytes 5.0",
        "library_disk_is_low 1.0",
        'library_store{what="queued_writes"} 2.0',
        'library_cache{cache="token_counts",what="hits"} 5.0',
        'library_step_seconds_count{step="record"} 2.0',
        "library_upstream_first_byte_seconds_sum 0.2",
    ):
        assert line in text
    age = next(row for row in text.splitlines() if row.startswith("library_outbox_oldest_seconds"))
    assert float(age.split()[1]) > 3600


async def test_two_gateways_in_one_process_do_not_add_up() -> None:
    first, second = Telemetry(logs_text=False), Telemetry(logs_text=False)
    first.ended(ended())
    assert 'turns_total{state="done"}' not in second.exposed(STATUS, {}, {}).decode()


async def test_a_part_that_no_prompt_had_yet_is_told_with_nothing() -> None:
    """A series that comes and goes cannot be watched."""
    telemetry, one = Telemetry(logs_text=False), ended()
    assert one.report is not None
    one.report.parts = {"window": 70, "desk": 0}
    telemetry.ended(one)
    assert (
        'library_prompt_tokens_total{part="desk"} 0.0' in telemetry.exposed(STATUS, {}, {}).decode()
    )
