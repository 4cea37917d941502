"""Many agents at once: MCP clients over both transports, and chats through the proxy, one database.

Everybody writes and reads without a pause for some time. It fails on any error, and when anything
that was acknowledged is not in the database at the end. How much it was is told beside it.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import aiohttp
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from scripts.bench.servers import ROOT, all_stopped, start_gateway, start_stub

CLIENTS, STDIO_CLIENTS, CHATS = 20, 4, 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder, all_stopped():
        db = Path(folder) / "library.db"
        gateway = start_gateway(start_stub().port, db, embedder="none", log_level="warning")
        told = asyncio.run(work(f"http://127.0.0.1:{gateway.port}", db, seconds))
        return verdict(db, told, seconds)


async def work(origin: str, db: Path, seconds: float) -> list[str]:
    """Let everybody work; return what was acknowledged, each text once."""
    until = time.monotonic() + seconds
    told: list[str] = []
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(agent(number, origin, db, until, told))
        for number in range(CHATS):
            group.create_task(chat(number, origin, until, told))
    return told


async def agent(number: int, origin: str, db: Path, until: float, told: list[str]) -> None:
    async with AsyncExitStack() as stack:
        if number < STDIO_CLIENTS:
            command = StdioServerParameters(
                command=sys.executable,
                args=["-m", "gateway.cli.main", "mcp", "--db", str(db)],
                env=dict(os.environ),
                cwd=ROOT,
            )
            log = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: ASYNC230, SIM115
            server: Any = stdio_client(command, errlog=log)
        else:
            server = streamable_http_client(f"{origin}/mcp")
        client = await stack.enter_async_context(Client(server, mode="legacy"))
        turn = 0
        while time.monotonic() < until:
            turn += 1
            text = f"agent{number}x{turn}x"
            prepared = await call(client, "prepare", session=f"agent-{number}", message=f"{text}q")
            await call(client, "commit", turn_id=prepared["turn_id"], content=f"{text}a")
            told += [f"{text}q", f"{text}a"]
            if turn % 5 == 0:
                await call(client, "remember", text=f"{text}i number {turn} of agent {number}")
                told.append(f"{text}i")
            await call(client, "consult", subject=f"agent{number} {turn}")


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(f"{tool}: {result.content}")
    return result.structured_content


async def chat(number: int, origin: str, until: float, told: list[str]) -> None:
    headers = {"x-library-session": f"chat-{number}"}
    async with aiohttp.ClientSession(origin, headers=headers) as http:
        turn = 0
        while time.monotonic() < until:
            turn += 1
            text = f"chat{number}x{turn}xq"
            body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}
            async with http.post("/v1/chat/completions", json=body) as answer:
                if answer.status != 200:
                    raise RuntimeError(f"chat: {answer.status} {await answer.text()}")
                await answer.read()
            told.append(text)


def verdict(db: Path, told: list[str], seconds: float) -> int:
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=10)) as connection:
        bodies = " ".join(row[0] for row in connection.execute("SELECT body FROM event"))
    lost = [text for text in told if text not in bodies]
    kinds = Counter(text[-1] for text in told)
    sys.stdout.write(
        f"{CLIENTS} MCP clients ({STDIO_CLIENTS} over standard input) and {CHATS} chats "
        f"for {seconds:g} s: "
        f"{kinds['q']} turns, {kinds['a']} replies and {kinds['i']} insights acknowledged, "
        f"{len(lost)} lost, no error\n"
    )
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
