"""What a tool call takes through MCP over HTTP, on a store of any size, warm.

The gateway runs in a process of its own, on a copy of the database; the caller is the official
client. Times are the caller's: the client's own work is in them. Stores of 100,000 records are made
by `scripts/bench/growth` (collection `growth`).
"""

import argparse
import asyncio
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.auth import add_key
from scripts.bench.clients import percentile
from scripts.bench.servers import all_stopped, start_gateway, start_stub

WARM, COUNT = 10, 60
INSIGHTS = 100
"""Remembered before, for recall to find."""
INDEX_WAIT_S = 1_800.0
Call = tuple[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", type=Path, required=True, help="a database; it is copied")
    parser.add_argument("--collection", default="growth")
    parser.add_argument("--data", type=Path, required=True, help="conversations with questions")
    parser.add_argument("--embedder", default="onnx")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, all_stopped():
        db = Path(folder) / "library.db"
        shutil.copy(given.db, db)
        keys = Path(folder) / "keys.json"
        _, key = add_key(keys, key_id="bench", collection=given.collection)
        gateway = start_gateway(
            start_stub().port, db, keys_file=keys, embedder=given.embedder, log_level="warning"
        )
        asyncio.run(measure(f"http://127.0.0.1:{gateway.port}", key, given.data, gateway.cpu_s))


async def measure(origin: str, key: str, data: Path, cpu_s: Callable[[], float]) -> None:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(f"{origin}/mcp", http_client=http)) as client,
    ):
        status = await until_ready(client)
        say(f"{status['index']['passages']:,} passages, {status['recorded_seq']:,} records")
        for number in range(INSIGHTS):
            text = f"Insight {number}: the {number * 37 % 1000}th rule of house {number % 7}."
            await client.call_tool("remember", {"text": text, "project": f"p{number % 5}"})
        for name, calls in made_calls(data).items():
            for call in itertools.islice(calls, WARM):
                await client.call_tool(*call)
            took, cpu = [], cpu_s()
            found = 0
            for tool, arguments in itertools.islice(calls, COUNT):
                started = time.perf_counter()
                result = await client.call_tool(tool, arguments)
                took.append((time.perf_counter() - started) * 1e3)
                assert not result.is_error, result
                assert result.structured_content is not None
                found += result.structured_content.get("shown", 0)
            p50, p95 = percentile(took, 0.5), percentile(took, 0.95)
            cpu_ms = (cpu_s() - cpu) * 1e3 / COUNT
            say(
                f"{name:30} p50 {p50:6.1f} ms, p95 {p95:6.1f} ms, "
                f"gateway {cpu_ms:6.1f} ms CPU a call, {found / COUNT:.1f} shown"
            )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def until_ready(client: Client) -> dict[str, Any]:
    """Wait until all is indexed and the vectors are in memory; return the library's status."""
    until = time.monotonic() + INDEX_WAIT_S
    while time.monotonic() < until:
        status: dict[str, Any] = (await client.call_tool("status", {})).structured_content[
            "library"
        ]
        found = await client.call_tool("consult", {"subject": "Where is the boathouse?"})
        is_whole = status["index"]["is_whole"] and not status["pending_count"]
        if is_whole and not found.structured_content["degraded"]:
            return status
        await asyncio.sleep(0.5)
    raise TimeoutError("the index was not built in time")


def made_calls(data: Path) -> dict[str, Iterator[Call]]:
    """Return endless calls by name; no two of one kind are equal."""
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    questions = [one["question"] for row in rows for one in row["questions"]]
    chance = random.Random(1)
    chance.shuffle(questions)
    words = [
        word
        for row in rows
        for message in row["messages"]
        for word in message["content"].split()
        if word.isalpha() and len(word) > 5
    ]
    chance.shuffle(words)
    ask, word = itertools.cycle(questions), itertools.cycle(words)
    number = itertools.count()

    def calls(make: Callable[[], Call]) -> Iterator[Call]:
        while True:
            yield make()

    def wrong(text: str) -> str:
        return text[:2] + text[3:]

    return {
        "consult (search)": calls(lambda: ("consult", {"subject": f"{next(ask)} {next(number)}"})),
        "recall": calls(
            lambda: (
                "recall",
                {"subject": f"the {next(number)}th rule of house {next(number) % 7}"},
            )
        ),
        "grep, one word": calls(lambda: ("grep", {"pattern": next(word)})),
        "grep, expression": calls(
            lambda: ("grep", {"pattern": rf"\b{next(word)}\s+(\w+)\b", "limit": 20})
        ),
        "grep, a word that is not there": calls(
            lambda: ("grep", {"pattern": f"{next(word)}zq{next(number)}"})
        ),
        "grep, nearly a word": calls(
            lambda: ("grep", {"pattern": wrong(next(word)), "fuzzy": True})
        ),
        "open": calls(lambda: ("open", {"record": f"e{1 + next(number) % 1000}"})),
    }


if __name__ == "__main__":
    main()
