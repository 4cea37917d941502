"""What an operator counts: metrics for Prometheus. What each turn says is in log.py.

The only importer of prometheus_client. One registry a gateway, so that two in one process (tests,
the demo) do not add up. Label values come from sets we choose, never from a client: a model's name
is free text, and a metric with a thousand of them is a leak.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from gateway.log import WAIT, dropped_lines, log_turn
from gateway.turn import Ended
from gateway.upstream.protocol import UpstreamFailed
from governor.turn import SwapReport
from library.errors import LibraryError, StoreUnavailable

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_STEP_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
_WAIT_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class Telemetry:
    """The metrics of one gateway."""

    def __init__(self, *, logs_text: bool, masks_secrets: bool = False) -> None:
        self._logs_text = logs_text
        self._masks_secrets = masks_secrets
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"library_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"library_{name}", text, labels, registry=registry)

        # Looking a labelled child up costs as much as counting in it, ten times a turn.
        self._turns = cache(counter("turns_total", "Turns by how they ended", "state").labels)
        steps = Histogram(
            "library_step_seconds",
            "What the gateway itself adds to a request, by step",
            ["step"],
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self._steps = cache(steps.labels)
        self._first_byte = Histogram(
            "library_upstream_first_byte_seconds",
            "Wait for the head of the upstream's answer",
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self._prefix = Histogram(
            "library_prefix_share",
            "Share of a prompt that extends the last one's prefix",
            buckets=_SHARES,
            registry=registry,
        )
        tokens = counter("prompt_tokens_total", "Tokens sent upstream, by part", "part")
        self._tokens = cache(tokens.labels)
        self._client_tokens = counter(
            "client_tokens_total", "Tokens the clients' transcripts would have cost"
        )
        swaps = counter("records_swapped_total", "Records moved on or off desks", "way")
        self._swaps = cache(swaps.labels)
        self._degraded = counter("degraded_total", "Answers with something missing", "part")
        self._upstream_errors = counter(
            "upstream_errors_total", "Exchanges that the upstream failed", "kind"
        )
        self._store_errors = counter("store_errors_total", "Failed durable writes", "reason")
        self._refused = counter("requests_refused_total", "Requests refused at the door", "status")
        self.inflight = gauge("inflight_requests", "Requests under way")
        self.inflight_bytes = gauge("inflight_body_bytes", "Bytes of their bodies")
        self._outbox = gauge(
            "outbox_events", "Events not indexed yet, by whether they wait", "state"
        )
        self._outbox_age = gauge("outbox_oldest_seconds", "Age of the oldest event that waits")
        self._seqs = gauge("watermark_seq", "How far a stage has come", "stage")
        self._owed = gauge("unembedded_events", "Events that have no vectors yet")
        self._embedder_problem = gauge("embedder_problem", "1 while the embedder cannot be used")
        self._cache = gauge("cache", "Caches: hits, misses, bytes or entries", "cache", "what")
        self._room = _Room(gauge)
        self._dropped_lines = gauge("log_lines_dropped", "Lines nobody read, above the bound")
        self._store = gauge("store", "What the store did since its start, and what waits", "what")

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def ended(self, ended: Ended) -> None:
        """Count one exchange, and write its line."""
        if ended.store_error is not None:
            self._store_errors.labels(_reason(ended.store_error)).inc()
        if isinstance(ended.error, UpstreamFailed):
            self._upstream_errors.labels(ended.error.kind).inc()
        elif ended.report is not None and ended.report.state == "failed":
            self._upstream_errors.labels("answered").inc()
        report = ended.report
        if report is None:
            self._turns("refused").inc()
            return
        self._count(report)
        # What its client wants nowhere stored is not stored in the log either.
        has_text = self._logs_text and report.is_recorded
        log_turn(ended, report, has_text=has_text, is_masked=self._masks_secrets)

    def _count(self, report: SwapReport) -> None:
        self._turns(report.state).inc()
        for step, took_ms in report.steps_ms.items():
            # The wait for the upstream is no step of ours, and is of another size.
            waits = self._first_byte if step == WAIT else self._steps(step)
            waits.observe(took_ms / 1e3)
        for part, tokens in (report.parts or {"whole": report.prompt_tokens}).items():
            counted = self._tokens(part)  # There from its first report on, if with 0.
            if tokens:  # Of most prompts half of the parts are empty.
                counted.inc(tokens)
        self._client_tokens.inc(report.client_tokens)
        if report.prefix_share is not None:
            self._prefix.observe(report.prefix_share)
        for way, count in (
            ("in", len(report.swapped_in)),
            ("out", len(report.swapped_out)),
            ("retained", len(report.retained)),
        ):
            if count:
                self._swaps(way).inc(count)
        for part in report.degraded:
            self._degraded.labels(part).inc()

    def exposed(
        self,
        status: Mapping[str, Any],
        caches: Mapping[str, Mapping[str, int]],
        store: Mapping[str, int],
    ) -> bytes:
        """Return all metrics in Prometheus' text format; `status` is the library's."""
        self._outbox.labels("pending").set(status["pending_count"])
        self._outbox.labels("quarantined").set(len(status["quarantined"]))
        oldest = status["oldest_pending_at"]
        age_s = 0.0 if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
        self._outbox_age.set(max(age_s, 0.0))
        self._seqs.labels("recorded").set(status["recorded_seq"])
        self._seqs.labels("indexed").set(status["indexed_seq"])
        embedding = status["embedding"]
        self._seqs.labels("embedded").set(embedding["embedded_seq"])
        self._owed.set(embedding["owed_count"] or 0)
        self._embedder_problem.set(bool(embedding["problem"]))
        for name, sizes in caches.items():
            for what, value in sizes.items():
                self._cache.labels(name, what).set(value)
        self._room.take(status)
        self._dropped_lines.set(dropped_lines())
        for what, value in store.items():
            self._store.labels(what).set(value)
        return generate_latest(self._registry)


class _Room:
    """What the archive holds, and what room is left."""

    def __init__(self, gauge: Callable[..., Gauge]) -> None:
        self._archive = gauge("archive", "What is archived, and how large it is", "what")
        self._last_run = gauge("retention_last_run", "Threads that the last run dealt with", "what")
        self._free = gauge("disk_free_bytes", "Left on the database's disk")
        self._is_low = gauge("disk_is_low", "1 while that is less than low_disk_bytes")

    def take(self, status: Mapping[str, Any]) -> None:
        retention, disk = status["retention"], status["disk"]
        for what in ("archived_threads", "plain_bytes", "stored_bytes"):
            self._archive.labels(what).set(retention[what])
        for what in ("archived", "restored", "purged"):
            self._last_run.labels(what).set((retention["last_run"] or {}).get(what, 0))
        self._free.set(disk["free_bytes"])
        self._is_low.set(disk["is_low"])


def _reason(error: LibraryError) -> str:
    return error.reason if isinstance(error, StoreUnavailable) else type(error).__name__
