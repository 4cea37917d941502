"""MCP over standard input and output: beside a gateway, without one, and when one goes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from gateway.mcp.names import TOOLS
from library.lock import read_owner
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import COMMAND, ROOT, clean_environment

KEY = "The blue key opens the boathouse."
READY_CPU_S = 1.0
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


@asynccontextmanager
async def agent(db: Path, *arguments: str, errors: Path | None = None) -> AsyncIterator[Client]:
    """Start `library-of-context mcp` as an agent does, and connect."""
    server = StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND[1:], "mcp", "--db", str(db), *arguments],
        env=clean_environment({"embedder": "none"}),
        cwd=db.parent,
    )
    log = await asyncio.to_thread(open, errors or os.devnull, "w", encoding="utf-8")
    with log:
        async with Client(stdio_client(server, errlog=log), mode="legacy") as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, result
    return result.structured_content


async def said(client: Client, session: str, text: str) -> None:
    turn = await call(client, "prepare", session=session, message=text)
    await call(client, "commit", turn_id=turn["turn_id"], content="Noted.")


async def test_beside_a_gateway_it_speaks_for_that_gateway(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = start_gateway()
    errors = tmp_path / "errors"
    async with agent(gateway.db, errors=errors) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*TOOLS]
        await said(client, "notes", KEY)
    assert "attached to the gateway" in errors.read_text(encoding="utf-8")
    assert KEY in str(gateway.events()[0]["body"])
    assert gateway.process.poll() is None


async def test_without_a_gateway_it_opens_the_database_and_says_so(tmp_path: Path) -> None:
    db, errors = tmp_path / "library.db", tmp_path / "errors"
    async with agent(db, errors=errors) as client:
        await said(client, "notes", KEY)
        assert (await call(client, "flush", session="notes"))["is_indexed"]
        found = await call(client, "consult", subject="What opens the boathouse?")
        assert found["found"][0]["text"] == KEY
    assert "no gateway runs on" in errors.read_text(encoding="utf-8")
    assert read_owner(db) is None


async def test_two_without_a_gateway_share_one_database_and_outlive_each_other(
    tmp_path: Path,
) -> None:
    """A second process attaches to the first instead of fighting for the file; when the first
    ends, the second takes its place."""
    db = tmp_path / "library.db"
    async with agent(db) as second:
        async with agent(db) as first:
            # Whoever opened it, each sees what the other wrote.
            await said(first, "one", KEY)
            await said(second, "two", "The ferry leaves at nine.")
            assert (await call(first, "sessions"))["matched"] == 2
        assert (await call(second, "sessions"))["matched"] == 2


async def test_when_the_process_with_the_database_is_killed_another_takes_its_place(
    tmp_path: Path,
) -> None:
    db = tmp_path / "library.db"
    first = await asyncio.to_thread(started, db)
    try:
        await asyncio.to_thread(asked, first, "tools/list")
        async with agent(db) as second:
            await said(second, "notes", KEY)
            first.kill()
            await asyncio.to_thread(first.wait)
            assert (await call(second, "sessions"))["matched"] == 1
    finally:
        first.kill()
        first.communicate()


async def test_a_collection_of_its_own_can_be_named(tmp_path: Path) -> None:
    db = tmp_path / "library.db"
    async with agent(db, "--collection", "mine") as mine, agent(db) as other:
        await said(mine, "notes", KEY)
        assert (await call(mine, "sessions"))["matched"] == 1
        assert (await call(other, "sessions"))["matched"] == 0


async def test_fewer_tools_can_be_offered(tmp_path: Path) -> None:
    async with agent(tmp_path / "library.db", "--tools", "consult,open") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["consult", "open"]


def started(db: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "mcp", "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment({"embedder": "none"}),
        cwd=ROOT,
    )


def asked(process: subprocess.Popen[bytes], method: str, **parameters: Any) -> Any:
    assert process.stdin is not None and process.stdout is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    process.stdin.write(orjson.dumps(message) + b"\n")
    process.stdin.flush()
    return orjson.loads(process.stdout.readline())


def test_it_is_ready_within_a_second(tmp_path: Path) -> None:
    """Of processor time: what the machine does beside it is not its own."""
    process = started(tmp_path / "library.db")
    try:
        assert asked(process, "initialize", **HELLO)["result"]["serverInfo"]
        spent = psutil.Process(process.pid).cpu_times()
        assert spent.user + spent.system < READY_CPU_S
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_it_ends_cleanly_when_its_agent_does(tmp_path: Path, how: str) -> None:
    db = tmp_path / "library.db"
    process = started(db)
    assert asked(process, "tools/list")["result"]["tools"]
    if how == "SIGTERM":
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert read_owner(db) is None


def test_a_database_that_cannot_be_opened_is_told_to_the_agent(tmp_path: Path) -> None:
    db = tmp_path / "library.db"
    db.write_bytes(b"This is no database at all. " * 400)
    process = started(db)
    try:
        assert asked(process, "initialize", **HELLO)["result"]
        assert "damaged" in asked(process, "tools/list")["error"]["message"]
    finally:
        process.kill()
        process.communicate()


async def test_many_agents_and_the_proxy_lose_nothing_on_one_database(
    start_gateway: StartGateway,
) -> None:
    """The short form of scripts/bench/agents."""
    gateway = start_gateway(embedder="none")

    async def work(number: int) -> None:
        async with agent(gateway.db) as client:
            for turn in range(3):
                await said(client, f"agent-{number}", f"fact {number}.{turn}")
                await call(client, "consult", subject=f"fact {number}")

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(work(number))
    texts = {event["session_id"] for event in gateway.rows("SELECT session_id FROM thread")}
    assert {f"agent-{number}" for number in range(3)} <= texts
    assert len(gateway.events()) == 3 * 3 * 2


async def test_the_tools_of_another_system_are_offered_on_request(tmp_path: Path) -> None:
    """Issue 6: `mcp --compat rlm|library`, over standard input and output."""
    db = tmp_path / "library.db"
    async with agent(db, "--compat", "rlm") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert len(names) == 14
        result = await client.call_tool("rlm_remember", {"content": KEY, "category": "fact"})
        assert isinstance(result, CallToolResult)
        assert not result.is_error, result
    async with agent(db, "--compat", "library") as client:
        assert len((await client.list_tools()).tools) == 16
        found = await call(client, "library_consult", subject="What opens the boathouse?")
        assert found["hits"][0]["book"]["text"] == KEY
