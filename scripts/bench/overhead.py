"""What the gateway adds to a request: CPU, time and memory, against others in the same run.

Compared are the stub itself, a bare relay (relay.py), the gateway, and LiteLLM proxy, which is
installed into an environment of its own under the user's cache folder (`--without-litellm` leaves
it out and says so). Every request is recorded for real: see conversations.py for what is sent.
Figures of other machines are not comparable; ratios within one run are.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.bench import servers
from scripts.bench.clients import Answered, http_request, percentile, run
from scripts.bench.conversations import (
    BODY_MESSAGES,
    Conversations,
    Message,
    body,
    text,
    transcript,
)
from scripts.bench.identify import identify_ms
from scripts.bench.measuring import (
    PATHS,
    Measured,
    count_rows,
    drain,
    measure,
    requests_for,
    send,
    summed_up,
)
from scripts.bench.servers import ROOT, Server
from scripts.bench.stub import REPLY

CONCURRENCIES = (1, 10, 32)
STREAM_CHUNKS = (50, 500)
STREAM_CONCURRENCY = 10
REST_S = 2.0
"""After this a start has loaded all that it loads ahead."""
STORED_EVENTS = 10_000
PAGED_WARM = 20
EMBEDDING_TIMEOUT_S = 120.0
TURNS = 9
"""Each conversation is asked so often, with a message more each time and so with `BODY_MESSAGES` in
the mean: what it sent before is in the gateway's memory, as it is in a chat's."""
KNOWN_COUNTS = (100, 500, 2_000)
KNOWN_CHARS = 2_000
"""2,000 known messages of this size are the 4 MB of the issue."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How often each thing is done."""

    requests: int
    litellm_requests: int
    streams: dict[int, int]
    paged: int
    resent: int
    soak_warm: int
    """Until the caches are full, each of which has its limit."""
    soak: int
    starts: int


FULL = Sizes(1_000, 200, {50: 200, 500: 40}, 200, 20, 4_000, 10_000, 5)
QUICK = Sizes(200, 40, {50: 40, 500: 10}, 40, 6, 400, 1_000, 2)


@dataclass
class Bench:
    """One run: the servers, and the figures as they come in."""

    sizes: Sizes
    folder: Path
    has_litellm: bool
    stub: Server
    conversations: Conversations = field(default_factory=Conversations)
    figures: dict[str, Any] = field(default_factory=dict)
    targets: list[tuple[str, float, float, bool]] = field(default_factory=list)

    # -- reporting -----------------------------------------------------------------------------
    def say(self, line: str = "") -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def table(self, title: str, rows: list[Measured]) -> None:
        self.say(f"\n{title}")
        self.say(
            f"  {'':10}{'conc.':>6}{'CPU ms':>9}{'+index':>9}{'p50 ms':>9}{'p99 ms':>9}"
            f"{'1st byte':>10}{'req/s':>8}{'reads':>7}"
        )
        for row in rows:
            self.say(
                f"  {row.server:10}{row.concurrency:>6}{row.cpu_ms:>9.2f}"
                f"{row.cpu_drained_ms:>9.2f}{row.p50_ms:>9.2f}{row.p99_ms:>9.2f}"
                f"{row.first_byte_p50_ms:>10.2f}{row.per_second:>8.0f}{row.reads:>7.1f}"
            )
        self.figures[title] = [row.plain() for row in rows]

    def must(self, name: str, value: float, limit: float, *, at_least: bool = False) -> None:
        is_met = value >= limit if at_least else value <= limit
        self.targets.append((name, value, limit, is_met))
        word = "at least" if at_least else "at most"
        verdict = "ok" if is_met else "MISSED"
        self.say(f"  {verdict:7} {name}: {value:.2f} ({word} {limit:g})")

    # -- parts ---------------------------------------------------------------------------------
    def start(self, name: str, **settings: object) -> Server:
        """Start a gateway that runs no model: what one costs hangs on the model."""
        db = self.folder / name / "library.db"
        db.parent.mkdir()
        return servers.start_gateway(self.stub.port, db, **{"embedder": "hashing"} | settings)

    def starting(self) -> None:
        """How soon /health answers; the memory at rest, and after a hundred requests of which the
        first made it load OpenAI's token tables."""
        seconds = []
        for number in range(self.sizes.starts):
            gateway = self.start(f"start{number}")
            seconds.append(servers.wait_for(gateway, "/health"))
            gateway.stop()
        gateway = self.start("memory")
        time.sleep(REST_S)
        at_rest = gateway.memory_mb()
        other = [body(talk) | {"model": "llama"} for talk in self.conversations.next(100)]
        send(gateway, [http_request(gateway.port, one) for one in other])
        without_tables = gateway.memory_mb()
        send(gateway, requests_for(gateway, self.conversations.next(100)))
        memory = gateway.memory_mb()
        gateway.stop()
        self.say("\nStart")
        self.must("/health after start, s, median", percentile(seconds, 0.5), 1.5)
        self.must("resident MB at rest after the start", at_rest, 120)
        self.must("resident MB after 100 requests to a local model", without_tables, 120)
        self.say(f"          after 100 more that need OpenAI's token tables: {memory:.0f}")
        self.figures["start"] = {
            "health_s": seconds,
            "at_rest_mb": round(at_rest, 1),
            "local_mb": round(without_tables, 1),
            "openai_mb": round(memory, 1),
        }

    def fitting(self, relay: Server, gateway: Server, litellm: Server | None) -> None:
        """Recorded requests that fit the budget, at each concurrency."""
        compared = [server for server in (self.stub, relay, gateway, litellm) if server]
        rows = [self._growing(server, c) for c in CONCURRENCIES for server in compared]
        self.table(f"Request that fits: {BODY_MESSAGES} messages, one new", rows)
        by = {(row.server, row.concurrency): row for row in rows}
        ours, least = by["gateway", 1], by["stub", 1]
        for concurrency in CONCURRENCIES:
            cpu = by["gateway", concurrency].cpu_ms
            self.must(f"gateway CPU ms a request at {concurrency}", cpu, 2.0)
        self.must("added p50 ms at 1", ours.p50_ms - least.p50_ms, 3.0)
        if litellm:
            for concurrency in CONCURRENCIES:
                ratio = by["litellm", concurrency].cpu_ms / by["gateway", concurrency].cpu_ms
                self.must(f"LiteLLM's CPU over ours at {concurrency}", ratio, 12.0, at_least=True)
        new = requests_for(gateway, self.conversations.next(self.sizes.requests))
        self.table(
            f"Request that fits, worst case: all {BODY_MESSAGES} messages new",
            [measure(gateway, new, concurrency=10)],
        )

    def protocols(self, gateway: Server) -> None:
        """The same requests in each protocol, relayed to an upstream that speaks it; compared by
        what arrived, since a busy machine joins more chunks of one stream than of another."""
        _, many = STREAM_CHUNKS
        kinds: dict[str, dict[str, Any]] = {
            "a request that fits": {},
            f"a stream of {many} chunks": {"stream": True, "max_tokens": many},
        }
        for kind, more in kinds.items():
            rows = {
                wire: self._growing(gateway, STREAM_CONCURRENCY, wire=wire, **more)
                for wire in PATHS
            }
            self.table(f"Protocols, {kind}: {', '.join(rows)}", list(rows.values()))
            chat = rows.pop("chat")
            for wire, row in rows.items():
                ratio = row.cpu_ms / row.reads / (chat.cpu_ms / chat.reads)
                self.must(f"CPU of {wire.title()} over chat completions, {kind}", ratio, 1.3)

    def _growing(self, server: Server, concurrency: int, **more: Any) -> Measured:
        """Measure requests of which all but the last message are known to the gateway."""
        is_litellm = server.name == "litellm"
        count = self.sizes.litellm_requests if is_litellm else self.sizes.requests
        chunks = more.get("max_tokens")
        if chunks:
            count = self.sizes.streams[chunks]
        # A streamed answer is another one than the transcripts go on with.
        turns = 1 if chunks else TURNS
        talks = self.conversations.next(count // turns, messages=BODY_MESSAGES - turns + 1)
        begun = list(talks)
        if server.db is not None:
            known = more.get("wire", "chat")
            send(server, requests_for(server, (talk[:-2] for talk in begun), wire=known))
        asked = [
            [*talk, *self._said_since(at, turn)]
            for turn in range(turns)
            for at, talk in enumerate(begun)
        ]
        return measure(server, requests_for(server, asked, **more), concurrency=concurrency)

    def _said_since(self, number: int, turn_count: int) -> list[Message]:
        """Return further turns of a conversation."""
        said: list[Message] = []
        for turn in range(turn_count):
            question = text(number * 101 + turn)
            said += [{"role": "assistant", "content": REPLY}, {"role": "user", "content": question}]
        return said

    def streaming(self, relay: Server, gateway: Server, litellm: Server | None) -> None:
        rows: dict[tuple[str, int], Measured] = {}
        for chunks in STREAM_CHUNKS:
            for server in filter(None, (self.stub, relay, gateway, litellm)):
                rows[server.name, chunks] = self._growing(
                    server, STREAM_CONCURRENCY, stream=True, max_tokens=chunks
                )
            part = [row for (_, size), row in rows.items() if size == chunks]
            self.table(f"Stream of {chunks} chunks, 2 ms apart", part)
        few, many = STREAM_CHUNKS

        def slope_us(name: str) -> float:
            return (rows[name, many].cpu_ms - rows[name, few].cpu_ms) * 1e3 / (many - few)

        above = slope_us("gateway") - slope_us("relay")
        self.must("CPU microseconds a chunk above the relay", above, 60.0)
        reads = rows["gateway", many].reads / many
        self.must("share of chunks that arrived by themselves", reads, 0.97, at_least=True)
        if litellm:
            ratio = rows["litellm", few].cpu_ms / rows["gateway", few].cpu_ms
            self.say(f"          LiteLLM's CPU over ours, {few} chunks: {ratio:.0f}x")

    def paging(self, relay: Server) -> None:
        """A thread of 10,000 stored events; the client sends its last 50 messages."""
        gateway = self.start("paged", budget_tokens=8_000)
        stored = STORED_EVENTS + 2 - STORED_EVENTS % 2
        talk = transcript(0, messages=stored, words=150)
        send(gateway, requests_for(gateway, [talk]))
        talk.append({"role": "assistant", "content": REPLY})
        wait_embedded(gateway)
        for server in (gateway, relay):  # The first search loads numpy, and reads the vectors.
            self._chat_on(server, talk, PAGED_WARM)
        ours = self._chat_on(gateway, talk, self.sizes.paged)
        theirs = self._chat_on(relay, talk, self.sizes.paged)
        self.table("Paged request: 10,000 events stored, the last 50 messages sent", [theirs, ours])
        self.must("added p50 ms, paged", ours.p50_ms - theirs.p50_ms, 12.0)
        self.must("added p99 ms, paged", ours.p99_ms - theirs.p50_ms, 40.0)
        drain(gateway)
        assert gateway.db is not None
        stored_count = count_rows(gateway.db, "SELECT count(*) FROM event")
        self.say(f"          in the store now: {stored_count} events")
        self.say(f"          steps, ms: {median_steps(gateway, self.sizes.paged)}")
        self.say(f"          resident MB: {gateway.memory_mb():.0f}")
        gateway.stop()

    def _chat_on(self, server: Server, talk: list[Message], count: int) -> Measured:
        """Ask so many questions one after the other, each time with the last 50 messages; `talk`
        goes on with them."""
        answers: list[Answered] = []
        cpu, started = server.cpu_s(), time.perf_counter()
        for number in range(len(talk), len(talk) + 2 * count, 2):
            question = f"{text(700_000 + number, words=20)} What was said about this before?"
            talk.append({"role": "user", "content": question})
            requests = requests_for(server, [[talk[0], *talk[-49:]]])
            answers += asyncio.run(run(server.port, requests, concurrency=1))
            talk.append({"role": "assistant", "content": REPLY})
        took_s, used = time.perf_counter() - started, server.cpu_s() - cpu
        return summed_up(server, answers, 1, used, used, took_s)

    def resending(self, relay: Server) -> None:
        """The reconciliation curve: known messages re-sent whole, with one new."""
        self.say("\nRe-sent transcript: known messages of 2 kB, one new")
        curve: dict[int, dict[str, Any]] = {}
        for known in KNOWN_COUNTS:
            gateway = self.start(f"resent{known}", budget_tokens=8_000)
            ours, steps = self._resend(gateway, known)
            theirs, _ = self._resend(relay, known)
            gateway.stop()
            identified = percentile(identify_ms(growing(known, self.sizes.resent)), 0.5)
            curve[known] = {
                "identify_cpu_ms": identified,
                "cpu_ms": ours,
                "relay_cpu_ms": theirs,
                "steps_ms": steps,
            }
            self.say(
                f"  {known:>6} known: CPU {identified:.1f} ms to identify; to serve it "
                f"{ours:.1f} ms, relay {theirs:.1f} ms; {steps}"
            )
        self.figures["resent"] = curve
        identified = curve[KNOWN_COUNTS[-1]]["identify_cpu_ms"]
        self.must("CPU ms to identify 2,000 re-sent messages", identified, 40.0)

    def _resend(self, server: Server, known: int) -> tuple[float, dict[str, float]]:
        """Return CPU milliseconds a request, and the reports' own steps (ours only)."""
        first, *rest = growing(known, self.sizes.resent)
        send(server, requests_for(server, [first]))
        batch = requests_for(server, rest)
        cpu = server.cpu_s()
        asyncio.run(run(server.port, batch, concurrency=1))
        used = server.cpu_s() - cpu
        drain(server)
        steps = median_steps(server, self.sizes.resent) if server.db else {}
        return used * 1e3 / len(batch), steps

    def soaking(self) -> None:
        """Ten thousand requests, streamed and not: memory and descriptors stay."""
        gateway = self.start("soak")
        self._soak(gateway, self.sizes.soak_warm)
        memory, files = gateway.memory_mb(), gateway.descriptor_count()
        self._soak(gateway, self.sizes.soak)
        growth = (gateway.memory_mb() / memory - 1) * 100
        self.say(f"\n{self.sizes.soak:,} requests after {self.sizes.soak_warm:,} to warm up")
        self.must("growth of resident memory, %", growth, 5.0)
        self.must("growth of open descriptors", gateway.descriptor_count() - files, 2)
        self.say(f"          resident MB {memory:.0f} -> {gateway.memory_mb():.0f}")
        self.figures["soak"] = {"before_mb": memory, "after_mb": gateway.memory_mb()}
        gateway.stop()

    def _soak(self, gateway: Server, count: int) -> None:
        for stream in (False, True):
            talks = self.conversations.next(count // 2, messages=4)
            more = {"stream": True, "max_tokens": 4} if stream else {}
            send(gateway, requests_for(gateway, talks, **more), concurrency=10)


def growing(known: int, count: int) -> list[list[Message]]:
    """Return a transcript of `known` messages, and what it becomes in `count` further turns."""
    talk = transcript(0, messages=known + 2 - known % 2, words=10)
    for at, message in enumerate(talk[1:]):
        filling = text(at, words=400)
        message["content"] = f"{at} {filling}"[:KNOWN_CHARS]
    talks = [talk]
    for number in range(count):
        question = {"role": "user", "content": f"Question {number}: {text(number, words=20)}"}
        talks.append([*talks[-1], {"role": "assistant", "content": REPLY}, question])
    return talks


def wait_embedded(server: Server) -> None:
    """Wait until what is stored has its vectors, too."""
    url = f"http://127.0.0.1:{server.port}/library/status"
    until = time.monotonic() + EMBEDDING_TIMEOUT_S
    while time.monotonic() < until:
        with urllib.request.urlopen(url, timeout=10) as answer:
            if json.load(answer)["embedding"]["owed_count"] == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("not all was embedded")


def median_steps(server: Server, count: int) -> dict[str, float]:
    """Return the median milliseconds of each step in the newest `count` reports."""
    url = f"http://127.0.0.1:{server.port}/library/turns?newest={count}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        reports = [turn["steps_ms"] for turn in json.load(answer)["turns"]]
    names = dict.fromkeys(name for steps in reports for name in steps)
    return {
        name: round(percentile([steps.get(name, 0.0) for steps in reports], 0.5), 2)
        for name in names
    }


def machine() -> dict[str, str]:
    """Return what the figures hang on."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cpu": f"{model}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }


PARTS = ("start", "fitting", "streaming", "protocols", "paging", "resending", "soak")


def run_all(bench: Bench, parts: Collection[str]) -> None:
    relay = servers.start_relay(bench.stub.port)
    if "start" in parts:
        bench.starting()
    if {"fitting", "streaming", "protocols"} & {*parts}:
        _run_beside_litellm(bench, relay, parts)
    if "paging" in parts:
        bench.paging(relay)
    if "resending" in parts:
        bench.resending(relay)
    if "soak" in parts:
        bench.soaking()


def _run_beside_litellm(bench: Bench, relay: Server, parts: Collection[str]) -> None:
    litellm = None
    if bench.has_litellm:
        litellm = servers.start_litellm(bench.stub.port, bench.folder)
    gateway = bench.start("main")
    for server in filter(None, (relay, gateway, litellm)):
        send(server, requests_for(server, bench.conversations.next(40)), concurrency=8)
    if "fitting" in parts:
        bench.fitting(relay, gateway, litellm)
    if "streaming" in parts:
        bench.streaming(relay, gateway, litellm)
    if "protocols" in parts:
        bench.protocols(gateway)
    gateway.stop()
    if litellm:
        litellm.stop()  # Its threads would take time from what follows.


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench/overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the requests")
    parser.add_argument(
        "--without-litellm", action="store_true", help="do not install or measure LiteLLM proxy"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="the parts to run; all by default"
    )
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "bench" / "overhead.json", metavar="FILE"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-overhead-") as folder, servers.all_stopped():
        stub = servers.start_stub()
        sizes = QUICK if options.quick else FULL
        bench = Bench(sizes, Path(folder), not options.without_litellm, stub)
        where = machine()
        bench.say("\n".join(f"{name}: {value}" for name, value in where.items()))
        if options.without_litellm:
            bench.say("LiteLLM proxy is left out (--without-litellm)")
        run_all(bench, options.only)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    targets = [
        {"name": name, "value": round(value, 3), "limit": limit, "met": met}
        for name, value, limit, met in bench.targets
    ]
    result = {"machine": where, "figures": bench.figures, "targets": targets}
    options.json.write_text(json.dumps(result, indent=2), encoding="utf-8")
    missed = sum(not met for *_, met in bench.targets)
    bench.say(f"\n{len(targets) - missed} of {len(targets)} targets met; figures in {options.json}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
