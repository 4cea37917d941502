"""Both sides of the relay, played by the test: a client, an upstream, and a governor with books."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any

from gateway.relay import Relay
from gateway.turn import Ended, Turn
from gateway.upstream.protocol import UpstreamFailed, UpstreamReply, UpstreamRequest
from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.wire import CHAT
from gateway.wire.protocol import PromptCache
from governor.counting import Counters
from governor.turn import Outcome, Policy, PreparedTurn, SwapReport, TurnRequest

COUNTERS = Counters()
EVENTS = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]
Piece = bytes | UpstreamFailed | None
"""None: the end of the body."""


async def read(reply: UpstreamReply) -> bytes:
    """Return an upstream's whole answer, and end it."""
    body = b"".join([piece async for piece in reply.chunks()])
    await reply.aclose()
    return body


class Client:
    """What the server sees of a client: its going, and what it was sent."""

    def __init__(self) -> None:
        self.is_gone = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self.has_body = asyncio.Condition()

    async def receive(self) -> dict[str, Any]:
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        async with self.has_body:
            self.has_body.notify_all()

    async def wait_for(self, part: bytes) -> None:
        async with self.has_body, asyncio.timeout(5):
            await self.has_body.wait_for(lambda: part in self.body)

    @property
    def body(self) -> bytes:
        return b"".join(one["body"] for one in self.sent if one["type"] == "http.response.body")

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    def is_ended(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


class Upstream:
    """Answers what the test puts into it."""

    name = "scripted"
    speaks: frozenset[str] | None = None
    caches: Mapping[str, PromptCache] = MappingProxyType({})

    def __init__(self, *pieces: Piece, status: int = 200, headers: Any = EVENTS) -> None:
        self.status = status
        self.headers = list(headers)
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        for piece in pieces:
            self.pieces.put_nowait(piece)
        self.failure: UpstreamFailed | None = None
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.asked: list[UpstreamRequest] = []
        self.is_asked = asyncio.Event()
        self.is_closed = False
        self.was_stopped = False
        """It was cancelled while it was working."""

    async def open(self, request: UpstreamRequest) -> "Upstream":
        self.asked.append(request)
        self.is_asked.set()
        try:
            await self.may_open.wait()
        except asyncio.CancelledError:
            self.was_stopped = True
            raise
        if self.failure is not None:
            raise self.failure
        return self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        while True:
            try:
                piece = await self.pieces.get()
            except asyncio.CancelledError:
                self.was_stopped = True
                raise
            if piece is None:
                return
            if isinstance(piece, UpstreamFailed):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.is_closed = True

    async def count_tokens(self, text: str) -> int | None:
        return None

    async def probe(self) -> str | None:
        return None

    async def close(self) -> None: ...


class Books:
    """A governor that prepares everything and keeps what was committed."""

    def __init__(self) -> None:
        self.prepare_error: Exception | None = None
        self.commit_error: Exception | None = None
        self.may_prepare = asyncio.Event()
        self.may_prepare.set()
        self.may_commit = asyncio.Event()
        self.may_commit.set()
        self.is_committing = asyncio.Event()
        self.outcomes: list[Outcome] = []
        self.is_prepared = False

    async def prepare(self, request: TurnRequest) -> PreparedTurn:
        await self.may_prepare.wait()
        if self.prepare_error is not None:
            raise self.prepare_error
        self.is_prepared = True
        report = SwapReport(turn_id=request.turn_id, thread_id="thread-1", budget_tokens=8_000)
        return PreparedTurn(
            turn_id=request.turn_id,
            recorded=None,
            plan=None,
            report=report,
            prompt_state=None,
            counter=request.counter,
        )

    async def foresee(self, request: TurnRequest) -> SwapReport:
        return (await self.prepare(request)).report

    async def commit(self, turn: PreparedTurn, outcome: Outcome) -> SwapReport:
        self.is_committing.set()
        self.outcomes.append(outcome)
        await self.may_commit.wait()
        if self.commit_error is not None:
            raise self.commit_error
        return turn.report

    @property
    def outcome(self) -> Outcome:
        [outcome] = self.outcomes
        return outcome


class Stage:
    """One exchange with all its parts."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        is_stream: bool = True,
        policy: Policy | None = None,
        max_reply_bytes: int = 1_000_000,
        keepalive_comment_s: float = 0.0,
        room_bytes: int = 1_000_000,
    ) -> None:
        self.client = Client()
        self.upstream = upstream
        self.books = Books()
        self.ended: list[Ended] = []
        self.relay = Relay(
            self.books,
            max_reply_bytes=max_reply_bytes,
            keepalive_comment_s=keepalive_comment_s,
            on_end=self.ended.append,
        )
        self.turn = Turn(
            request=TurnRequest(
                turn_id="turn-1",
                collection="default",
                session_id=None,
                identified_by="content",
                model="m",
                upstream="scripted",
                messages=(),
                schemas=(),
                reply_tokens=None,
                policy=policy or Policy(),
                counter=COUNTERS.counter_for("gpt-4o"),
                dialect=chat_dialect,
            ),
            upstream=upstream,
            is_stream=is_stream,
            outgoing=lambda _: UpstreamRequest("POST", "/chat/completions", {}, b"{}"),
            wire=CHAT,
            has_room_for=lambda size_bytes: size_bytes <= room_bytes,
        )

    async def run(self) -> None:
        async with asyncio.timeout(5):
            await self.relay.run(self.turn, self.client.receive, self.client.send)


def ended(steps_ms: dict[str, float] | None = None, **fields: object) -> Ended:
    """Return an exchange that is over, with a report of a few numbers."""
    report = SwapReport(turn_id="t", state="done", parts={"window": 70, "desk": 30})
    report.degraded = ["embedder"]
    report.steps_ms = {"record": 1.5} | (steps_ms or {})
    return Ended(Stage(Upstream()).turn.request, report, **fields)  # type: ignore[arg-type]
