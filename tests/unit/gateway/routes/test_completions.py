"""Text completions: what is decoded to be counted is in memory, and counts there."""

import asyncio
import gzip
import json
import re
import threading
from pathlib import Path

from tests.e2e.answers import Answer, Gate
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.unit.gateway.serving import served

INFLIGHT = re.compile(r"^library_inflight_body_bytes (\S+)$", re.MULTILINE)


async def test_what_is_decoded_takes_its_room(server: StubUpstream, tmp_path: Path) -> None:
    """DESIGN 1.13: a few bytes that are millions when decoded."""
    server.reset()
    gate, arrived = Gate(), threading.Event()

    def answered(_: Seen) -> Answer:
        arrived.set()
        return Answer((b"{}",), before=(gate,))

    server.script(answered, path="/v1/completions")
    body = json.dumps(
        {"model": "gpt-4o", "prompt": "x", "suffix": "y", "user": " " * 900_000}
    ).encode()
    headers = {"content-encoding": "gzip"}
    async with served(tmp_path, upstream=server.url, max_body_bytes=1_000_000) as client:
        asking = asyncio.ensure_future(
            client.post("/v1/completions", data=gzip.compress(body), headers=headers)
        )
        assert await asyncio.to_thread(arrived.wait, 5.0)
        async with client.get("/metrics") as answer:
            found = INFLIGHT.search(await answer.text())
        gate.open()
        (await asking).close()
    assert found is not None
    assert float(found[1]) >= len(body)
