"""A scriptable upstream of several protocols that records and checks every request it gets.

Scripts and answers are chat completions' as a rule; a whole reply gets the shape of the protocol
that it is asked in (tests/e2e/protocols.py).

Raw asyncio in a thread of its own: a web framework would not let a test send a duplicate header,
cut a chunked body or see to the millisecond when the other side hung up. One server serves many
tests; `reset` between them.
"""

import asyncio
import itertools
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from tests.e2e.answers import (
    WAIT_S,
    Answer,
    Cut,
    Gate,
    Hang,
    Pause,
    Step,
    error,
    json_answer,
    said,
    streamed,
)
from tests.e2e.protocols import Protocol, protocol_at

PHRASES = {status.value: status.phrase for status in HTTPStatus}
ANY_CHAT = ""
"""Scripts for whichever protocol is spoken next."""
_HEAD_MAX_BYTES = 1 << 20


@dataclass(slots=True)
class Seen:
    """One request as the upstream got it."""

    number: int
    method: str
    target: str
    """Path with query string."""
    headers: list[tuple[str, str]]
    """Lower-case names, in order, duplicates kept."""
    body: bytes
    connection: int
    arrived_at: float
    """`time.monotonic()`."""
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when the peer closed the connection while this request was being answered."""
    closed_at: float = 0.0
    answered: threading.Event = field(default_factory=threading.Event)
    """Set when the last step of the answer was done."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def protocol(self) -> Protocol | None:
        return protocol_at(self.path)

    @property
    def chat(self) -> dict[str, Any]:
        """The request in chat completions' shape, whatever protocol it came in."""
        assert self.protocol is not None
        return self.protocol.read(self.json)

    @property
    def messages(self) -> list[dict[str, Any]]:
        found = self.chat["messages"]
        assert isinstance(found, list)
        return found


Responder = Callable[[Seen], Answer]


def echo(seen: Seen) -> Answer:
    """Answer with the end of the last user text: same question, same answer."""
    texts = [m["content"] for m in seen.messages if m["role"] == "user"]
    text = "reply to " + (str(texts[-1])[-60:] if texts else "nothing")
    text = text.encode("utf-8", "replace").decode()  # A question may hold half a surrogate pair.
    if seen.protocol is not None and seen.protocol.name != "chat" and seen.json.get("stream"):
        return seen.protocol.spoken(text)
    if seen.json.get("stream"):
        asked = (seen.json.get("stream_options") or {}).get("include_usage", False)
        return streamed(text, wants_usage=asked)
    return said(text)


def _in_protocol(seen: Seen, answer: Answer) -> Answer:
    """Return a whole chat completion as the protocol of the request has it."""
    if seen.protocol is None or seen.protocol.name == "chat" or len(answer.steps) != 1:
        return answer
    [step] = answer.steps
    if not isinstance(step, bytes) or b'"choices"' not in step or answer.framing != "length":
        return answer
    body = json.dumps(seen.protocol.reply(json.loads(step)), ensure_ascii=False).encode()
    return replace(answer, steps=(body,))


class StubUpstream:
    """Start with `start`, script with `script`, read `chats`, `requests` and `violations`."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="stub-upstream", daemon=True)
        self._numbers = itertools.count(1)
        self._connections = itertools.count(1)
        self._lock = threading.Lock()
        self.port = 0
        self.reset()

    # -- for tests -----------------------------------------------------------------------------
    def reset(self) -> None:
        """Forget what was recorded and scripted."""
        self.requests: list[Seen] = []
        self.violations: list[str] = []
        self.budget_tokens: int | None = None
        """Checked for every chat request; None: no budget, and the client's own transcript is
        passed on, whose order is the client's affair."""
        self.respond: Responder = echo
        """Answers chats when no script is left."""
        self.on_chat: Callable[[Seen], None] | None = None
        """Called on the server's thread before a chat is answered."""
        self._scripts: dict[str, deque[Answer | Responder]] = defaultdict(deque)
        self._arrivals = threading.Condition()

    def script(self, *answers: Answer | Responder, path: str = ANY_CHAT) -> None:
        """Give the next chats, or the next requests of `path`, these answers, one each."""
        self._scripts[path].extend(answers)

    def reset_scripts(self) -> None:
        """Drop answers that nobody asked for."""
        self._scripts.clear()

    @property
    def chats(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.protocol is not None]

    @property
    def last(self) -> Seen:
        return self.chats[-1]

    def wait_for_chats(self, count: int, *, timeout_s: float = 10.0) -> list[Seen]:
        """Return the chats once there are `count`."""
        with self._arrivals:
            arrived = self._arrivals.wait_for(lambda: len(self.chats) >= count, timeout_s)
        assert arrived, f"{len(self.chats)} chats arrived, {count} were awaited"
        return self.chats

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "StubUpstream":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def stop(self) -> None:
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    # -- the server ----------------------------------------------------------------------------
    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(next(self._connections), writer)
        try:
            async with asyncio.TaskGroup() as tasks:
                pump = tasks.create_task(connection.pump(reader))
                while (raw := await connection.next_request()) is not None:
                    seen = self._record(connection, raw)
                    connection.current = seen
                    is_open = await self._answer(connection, seen)
                    connection.current = None
                    if not is_open:
                        break
                pump.cancel()
        except* (ConnectionError, TimeoutError):
            pass  # The peer hung up while it was being answered; `closed` tells the test.
        finally:
            connection.hung_up()
            writer.transport.abort()

    def _record(self, connection: "_Connection", raw: "_Raw") -> Seen:
        method, target, headers, body = raw
        with self._lock:
            number = next(self._numbers)
        seen = Seen(
            number, method, target, headers, body, connection.number, arrived_at=time.monotonic()
        )
        if seen.protocol is not None and self.budget_tokens is not None:
            found = seen.protocol.violations(seen.json, self.budget_tokens)
            self.violations += [f"request {seen.number}: {text}" for text in found]
        with self._arrivals:
            self.requests.append(seen)
            self._arrivals.notify_all()
        return seen

    def _choose(self, seen: Seen) -> Answer:
        own, chats = self._scripts[seen.path], self._scripts[ANY_CHAT]
        queue = chats if seen.protocol is not None and not own else own
        if queue:
            chosen = queue.popleft()
            return _in_protocol(seen, chosen if isinstance(chosen, Answer) else chosen(seen))
        if seen.protocol is not None:
            return _in_protocol(seen, self.respond(seen))
        if seen.path == "/v1/models":
            model = {"id": "stub-1", "object": "model", "created": 1, "owned_by": "stub"}
            return json_answer({"object": "list", "data": [model]})
        return error(404, {"error": {"message": "no such path", "type": "x", "code": None}})

    async def _answer(self, connection: "_Connection", seen: Seen) -> bool:
        """Play the answer; return whether the connection can serve another request."""
        if seen.protocol is not None and self.on_chat is not None:
            await asyncio.to_thread(self.on_chat, seen)
        answer = self._choose(seen)
        try:
            for step in answer.before:
                if not await connection.play(step, framing="close"):
                    return False
            await connection.head(answer)
            for step in answer.steps:
                if not await connection.play(step, framing=answer.framing):
                    return False
            if answer.framing == "chunked":
                await connection.write(b"0\r\n\r\n")
        finally:
            seen.answered.set()
        return answer.framing != "close"


_Raw = tuple[str, str, list[tuple[str, str]], bytes]


class _Connection:
    """Bytes in, requests out; knows at once when the peer is gone, also while it answers."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.current: Seen | None = None
        self._writer = writer
        self._buffer = bytearray()
        self._changed = asyncio.Event()
        self._gone = asyncio.Event()

    async def pump(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(1 << 16):
                self._buffer += data
                self._changed.set()
        except ConnectionError:
            pass
        self.hung_up()

    def hung_up(self) -> None:
        if self.current is not None and not self.current.closed.is_set():
            self.current.closed_at = time.monotonic()
            self.current.closed.set()
        self._gone.set()
        self._changed.set()

    async def next_request(self) -> _Raw | None:
        """Return the next whole request; None when the peer is gone."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            assert len(self._buffer) < _HEAD_MAX_BYTES
            if not await self._more():
                return None
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, target, _ = lines[0].split(" ")
        pairs = (line.partition(":") for line in lines[1:])
        headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
        named = dict(headers)
        if named.get("expect", "").lower() == "100-continue":
            await self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if named.get("transfer-encoding") == "chunked":
            body = await self._chunked_body()
        else:
            body = await self._take(int(named.get("content-length", 0)))
        return None if body is None else (method, target, headers, body)

    async def _more(self) -> bool:
        if self._gone.is_set():
            return False
        self._changed.clear()
        await self._changed.wait()
        return True

    async def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            if not await self._more():
                return None
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _chunked_body(self) -> bytes | None:
        body = bytearray()
        while True:
            while (end := self._buffer.find(b"\r\n")) < 0:
                if not await self._more():
                    return None
            size = int(bytes(self._buffer[:end]).partition(b";")[0], 16)
            del self._buffer[: end + 2]
            piece = await self._take(size + 2)
            if piece is None:
                return None
            if size == 0:
                return bytes(body)
            body += piece[:-2]

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, answer: Answer) -> None:
        phrase = PHRASES.get(answer.status, "Unassigned")
        lines = [f"HTTP/1.1 {answer.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if answer.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif answer.framing == "length":
            size = sum(len(step) for step in answer.steps if isinstance(step, bytes))
            lines.append(f"content-length: {size}")
        else:
            lines.append("connection: close")
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def play(self, step: Step, *, framing: str) -> bool:
        """Do one step; False when the connection is over."""
        if isinstance(step, bytes):
            if framing == "chunked" and step:  # an empty chunk would end the body
                step = b"%x\r\n%b\r\n" % (len(step), step)
            await self.write(step)
        elif isinstance(step, Gate):
            await self._wait_open(step)
        elif isinstance(step, Pause):
            await self._wait_gone(step.seconds)
        elif isinstance(step, Cut):
            return False
        elif isinstance(step, Hang):
            await self._wait_gone(60.0)
            return False
        return True

    async def _wait_open(self, gate: Gate) -> None:
        until = time.monotonic() + WAIT_S
        while not gate.is_open and time.monotonic() < until:
            if self._gone.is_set():
                raise ConnectionResetError
            await asyncio.sleep(0.001)

    async def _wait_gone(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._gone.wait()
        except TimeoutError:
            return
        raise ConnectionResetError
