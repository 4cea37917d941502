"""Standard input and output of an MCP client, carried to `/mcp` of the database's gateway.

One line is one message, and goes out as one POST, so that this process needs neither the SDK nor
the library: it is ready before either could be imported. It answers `initialize` itself, which
says nothing but what the server is; by the time a client uses it, the gateway has been found.
`server/discover`, with which newer clients begin, is refused as unknown, upon which they begin
with `initialize`.

Where no gateway runs, one is started inside this process (gateway/mcp/standing_in.py), and answers
to other bridges too. When the one it spoke to is gone, the next message looks for another.
"""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

import orjson

from gateway.mcp.compat.names import Compat
from gateway.mcp.greeting import greeting

LINE_BYTES_MAX = 16 * 2**20
"""As long as a request to `/mcp` may be."""
AT_ONCE_MAX = 32
"""Calls under way; a client that sends more waits, as its pipe then does."""
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INTERNAL_ERROR = -32700, -32600, -32601, -32603
ID_BYTES_MAX = 256
"""Of a line's end, to look for an id in."""
_ID = rb'"id"\s*:\s*("[^"\\]*"|-?\d+)\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2.0"\s*'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb",")
_ID_LAST = re.compile(rb",\s*" + _ID + rb"(?:," + rb"\s*" + _VERSION + rb")?\}\s*$")
"""Where the SDKs write it, outside of everything that is too deep to be read."""
_NO_ID = re.compile(rb'"id"\s*:\s*null')
Json = dict[str, Any]


class Unreachable(Exception):
    """No gateway can be asked now."""


class Carrier(Protocol):
    """Takes messages to a gateway."""

    async def post(self, body: bytes, *, protocol: str) -> bytes:
        """Return the answer to a request.

        Raises:
            Unreachable: there is none.

        """

    async def close(self) -> None:
        """Let go of the gateway."""


class Bridge:
    """One client's conversation."""

    def __init__(
        self,
        carrier: "asyncio.Task[Carrier]",
        write: Callable[[bytes], Awaitable[None]],
        *,
        compat: Compat | None = None,
    ) -> None:
        """`carrier` may still be on its way: only calls wait for it. `compat` names the system
        whose tools are offered."""
        self._compat = compat
        self._carrier = carrier
        self._write = write
        self._protocol = ""
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._running: dict[object, asyncio.Task[None]] = {}

    async def run(self, lines: "asyncio.Queue[bytes | None]") -> None:
        """Answer lines until None comes, then what is under way."""
        async with asyncio.TaskGroup() as group:
            while (line := await lines.get()) is not None:
                if not line.strip():
                    continue
                message = await self._parsed(line)
                if message is not None:
                    await self._take(message, line, group)

    async def _parsed(self, line: bytes) -> Json | None:
        """Return the message in a line; None: there is none, and the client was told.

        Source: MCP, "Base protocol": an id is a string or an integer, and never null.
        """
        if len(line) > LINE_BYTES_MAX:
            await self._fail(None, INVALID_REQUEST, f"longer than {LINE_BYTES_MAX} bytes")
            return None
        try:
            message: Any = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            await self._fail(_id_in(line), PARSE_ERROR, f"not JSON: {error}")
            return None
        if _id_of(message, missing="") is None:
            await self._fail(None, INVALID_REQUEST, "not one request or notification")
            return None
        assert isinstance(message, dict)
        return message

    async def _take(self, message: Json, line: bytes, group: asyncio.TaskGroup) -> None:
        method, id_ = message.get("method"), message.get("id")
        parameters = message.get("params")
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(parameters, dict):
                named = parameters.get("requestId")
                task = self._running.get(named) if isinstance(named, str | int) else None
                if task is not None:
                    task.cancel()
        elif method == "initialize":
            asked = parameters.get("protocolVersion") if isinstance(parameters, dict) else None
            result = greeting(asked, self._compat)
            self._protocol = result["protocolVersion"]
            await self._write(orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result}))
        elif method == "ping":
            await self._write(orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": {}}))
        elif method == "server/discover":
            await self._fail(id_, UNKNOWN_METHOD, "begin with initialize")
        else:
            await self._places.acquire()
            task = group.create_task(self._ask(id_, line))
            self._running[id_] = task
            # Not at the end of the task: one that is cancelled before it began has none.
            task.add_done_callback(lambda _: self._leave(id_))

    async def _ask(self, id_: object, line: bytes) -> None:
        try:
            carrier = await asyncio.shield(self._carrier)
            answer = await carrier.post(line, protocol=self._protocol)
            # Pretty or not, an answer is one line.
            await self._write(_named(answer, id_).replace(b"\n", b" "))
        except Unreachable as error:
            await self._fail(id_, INTERNAL_ERROR, str(error))

    def _leave(self, id_: object) -> None:
        self._running.pop(id_, None)
        self._places.release()

    async def _fail(self, id_: object, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        await self._write(orjson.dumps({"jsonrpc": "2.0", "id": id_, "error": error}))


def _id_in(line: bytes) -> str | int | None:
    """Return the id of a line that is JSON but for NaN and infinities, which Python's own writer
    makes of such numbers, or but for its depth: its sender waits for an answer of that id.

    Of a line that is broken in another way nothing is known: the id is null, as JSON-RPC has it.
    """
    try:
        message: Any = json.loads(line)
    except RecursionError:
        found = _ID_FIRST.match(line) or _ID_LAST.search(line[-ID_BYTES_MAX:])
        return _id_in(b'{"id":' + found[1] + b"}") if found else None
    except ValueError:
        return None
    return _id_of(message, missing=None)


def _named(answer: bytes, id_: object) -> bytes:
    """Return an answer with the id that it is for: a gateway that could not read a message does not
    know it, and its sender waits for an answer of that id."""
    if not _NO_ID.search(answer):
        return answer
    said: Json = orjson.loads(answer)
    return answer if said.get("id") is not None else orjson.dumps({**said, "id": id_})


def _id_of(message: object, *, missing: str | None) -> str | int | None:
    """Return the id of a message, or what stands for one that is `missing`; None: it has another
    thing in its place, or is no message."""
    id_ = message.get("id", missing) if isinstance(message, dict) else None
    return id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None


def read_lines(stream: BinaryIO, lines: "asyncio.Queue[bytes | None]") -> None:
    """Feed lines of a stream to a queue, in a thread of its own: a pipe cannot be awaited on every
    system, and a thread that reads one cannot be stopped, so it is a daemon.

    A line that is too long is cut; its rest is passed over.
    """
    loop = asyncio.get_running_loop()

    def feed() -> None:
        with suppress(RuntimeError, OSError, ValueError):  # The loop, or the stream, is closed.
            while line := stream.readline(LINE_BYTES_MAX + 2):
                rest = line
                while not rest.endswith(b"\n") and len(rest) > LINE_BYTES_MAX:
                    rest = stream.readline(LINE_BYTES_MAX + 2)
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=feed, name="standard-input", daemon=True).start()
