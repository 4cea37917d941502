"""What a busy gateway does: many clients at once, new, paged and streamed requests mixed.

Each client has a conversation of its own, which it sends whole with every turn: a third are long
enough to be paged, a third ask for a stream. The same load goes to a gateway that commits each
request by itself: a launcher sets the writer's `GROUP_MAX` to one job; the product has no such
setting. Commits are counted by the writer itself, which syncs the file once for each
(`synchronous = FULL`), and written to standard error when the gateway ends.

Figures of other machines are not comparable; ratios within one run are.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.bench.clients import BadAnswer, Connection, http_request, percentile
from scripts.bench.conversations import body, text, transcript
from scripts.bench.servers import Server, all_stopped, start_counted_gateway, start_stub, wait_for
from scripts.bench.stub import REPLY

CLIENTS = 32
SECONDS = 60.0
PAGED_MESSAGES = 90
"""About 9,000 tokens: above the budget, so that every request of it is paged."""
NEW_MESSAGES = 6
STREAM_CHUNKS = 20
KINDS = ("new", "paged", "streamed")
TALK_TURNS = 6
"""Then a client begins another conversation: a talk that only grows would be paged in the end."""


@dataclass
class Tally:
    """What the clients of one gateway saw."""

    elapsed_s: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    failures: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.elapsed_s.values()))


async def _client(port: int, number: int, until: float, tally: Tally) -> None:
    kind = KINDS[number % len(KINDS)]
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
    for talk in itertools.count():
        messages = transcript(
            number * 1_009 + talk, messages=PAGED_MESSAGES if kind == "paged" else NEW_MESSAGES
        )
        for turn in range(TALK_TURNS):
            if time.monotonic() > until:
                connection.close()
                return
            more: dict[str, Any] = {}
            if kind == "streamed":
                more = {"stream": True, "max_tokens": STREAM_CHUNKS}
            try:
                answer = await connection.ask(http_request(port, body(messages, **more)))
                tally.elapsed_s[kind].append(answer.elapsed_s)
            except (BadAnswer, ConnectionError, TimeoutError) as error:
                tally.failures.append(f"{kind}: {error}")
                return
            asked = text(number * 10_007 + talk * 101 + turn)
            messages += [
                {"role": "assistant", "content": REPLY},
                {"role": "user", "content": f"Client {number}: {asked}"},
            ]


async def loaded(port: int, *, clients: int, seconds: float) -> Tally:
    """Return what so many clients saw in so many seconds."""
    tally = Tally()
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(_client(port, number, until, tally))
    return tally


def measured(name: str, *, group_max: int | None, clients: int, seconds: float) -> dict[str, Any]:
    """Return one gateway's figures under the load."""
    with tempfile.TemporaryDirectory(prefix="library-of-context-bench-") as folder:
        counts = Path(folder) / "counts.json"
        stub = start_stub()
        gateway = start_counted_gateway(
            stub.port, Path(folder) / "library.db", counts=counts, group_max=group_max
        )
        wait_for(gateway, "/health")
        before_s = gateway.cpu_s()
        tally = asyncio.run(loaded(gateway.port, clients=clients, seconds=seconds))
        cpu_s = gateway.cpu_s() - before_s
        _stop(gateway, stub)
        written = json.loads(counts.read_text(encoding="utf-8"))
    requests = max(1, tally.count)
    return {
        "name": name,
        "requests": tally.count,
        "failed": len(tally.failures),
        "failures": tally.failures[:3],
        "per_second": round(tally.count / seconds, 1),
        "cpu_ms": round(cpu_s / requests * 1e3, 2),
        "fsyncs": round(written["commits"] / requests, 3),
        "p50_ms": _percentiles(tally, 0.5),
        "p99_ms": _percentiles(tally, 0.99),
    }


def _percentiles(tally: Tally, share: float) -> dict[str, float]:
    return {
        kind: round(percentile(values, share) * 1e3, 1)
        for kind, values in tally.elapsed_s.items()
        if values
    }


def _stop(*servers: Server) -> None:
    for server in servers:
        server.stop()


def shown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"  {'':22}{'req/s':>8}{'CPU ms':>8}{'fsyncs':>8}{'failed':>8}  p50/p99 ms"]
    for row in rows:
        times = ", ".join(f"{k} {row['p50_ms'][k]}/{row['p99_ms'][k]}" for k in row["p50_ms"])
        lines.append(
            f"  {row['name']:22}{row['per_second']:>8}{row['cpu_ms']:>8}{row['fsyncs']:>8}"
            f"{row['failed']:>8}  {times}"
        )
    return "\n".join(lines)


def judged(grouped: dict[str, Any], alone: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return what must hold, and whether it does."""
    ratio = alone["fsyncs"] / max(grouped["fsyncs"], 1e-9)
    paged_ms = grouped["p50_ms"].get("paged", 0.0)
    slowest_ms = max(grouped["p99_ms"].values(), default=0.0)
    return [
        (f"fsyncs a request: {ratio:.1f}x fewer (must 2.5x)", ratio >= 2.5),
        (
            f"slowest p99 {slowest_ms / max(paged_ms, 1e-9):.1f}x the p50 of a paged one (must 3x)",
            slowest_ms <= 3 * paged_ms,
        ),
        (f"failed: {grouped['failed']}, {alone['failed']}", not grouped["failed"]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="scripts/bench/load")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    with all_stopped():
        rows = [
            measured(name, group_max=group_max, clients=options.clients, seconds=options.seconds)
            for name, group_max in (("grouped commits", None), ("one commit a request", 1))
        ]
    sys.stdout.write(f"{options.clients} clients, load {os.getloadavg()[0]:.1f}\n{shown(rows)}\n")
    for line, holds in judged(*rows):
        sys.stdout.write(f"  {'met' if holds else 'NOT MET'}: {line}\n")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
