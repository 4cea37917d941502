"""What one answer over several rounds may hold of the gateway's memory (DESIGN 1.13)."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, cast

import orjson
import pytest

from gateway.lookups.reading import Shelf
from gateway.lookups.rounds import Rounds
from gateway.lookups.upstream import LookingUp
from gateway.upstream.protocol import UpstreamFailed, UpstreamReply
from gateway.wire.crossing.bodies import AnyStored
from governor.turn import PreparedTurn, SwapReport
from tests.unit.gateway.lookups.test_rounds import COUNTER, WIRES, Pages, Posts, reply_of
from tests.unit.gateway.peers import EVENTS, JSON, Upstream, read
from tests.unit.gateway.wire.lookups.test_splicing import STREAMS

WIRE_NAMES = [wire.name for wire in WIRES]


class Replies(Upstream):
    """Answers one request after the other."""

    def __init__(self, *answers: Sequence[bytes], headers: Any) -> None:
        super().__init__(headers=headers)
        self.answers = [Upstream(*pieces, None, headers=headers) for pieces in answers]

    async def open(self, request: Any) -> Upstream:
        self.asked.append(request)
        return await self.answers[len(self.asked) - 1].open(request)


async def opened(
    name: str,
    upstream: Upstream,
    *,
    limit_bytes: int = 10_000_000,
    has_room_for: Callable[[int], bool] = lambda _: True,
) -> UpstreamReply:
    """Return the answer to a question, by an upstream whose model may look things up."""
    wire = next(wire for wire in WIRES if wire.name == name)
    items = {("input" if name == "responses" else "messages"): [{"role": "user", "content": "q"}]}
    request = wire.decode(orjson.dumps({"model": "m", **items}), None)
    report = SwapReport("t", prompt_tokens=500, budget_tokens=4_000)
    prepared = PreparedTurn("t", None, None, report, None, COUNTER, has_lookups=True)
    posting = Posts(wire, request)

    def rounds_of(turn: PreparedTurn) -> Rounds:
        return Rounds(
            turn,
            wire=wire,
            request=request,
            dialect=AnyStored(wire),
            posting=posting,
            shelf=cast(Shelf, Pages("page")),
            most=3,
        )

    looking = LookingUp(
        upstream,
        wire=wire,
        posting=posting,
        rounds_of=rounds_of,
        is_stream=upstream.headers == EVENTS,
        limit_bytes=limit_bytes,
        has_room_for=has_room_for,
    )
    return await looking.open(looking.outgoing(prepared))


@pytest.mark.parametrize("name", WIRE_NAMES)
async def test_a_body_that_is_too_long_to_be_kept_is_asked_for_again_without_our_tools(
    name: str,
) -> None:
    """Issue 5: the client sees nothing of our calls, whatever comes, and its answer whole."""
    long = reply_of(_wire(name), "word " * 5_000, ["library_search"])
    plain = reply_of(_wire(name), "long " * 5_000, [])
    upstream = Replies([long[:9_000], long[9_000:]], [plain[:9_000], plain[9_000:]], headers=JSON)
    body = await read(await opened(name, upstream, limit_bytes=10_000))
    assert body == plain
    first, second = (request.body for request in upstream.asked)
    assert b"library_search" in first and b"library_" not in second
    assert upstream.answers[0].is_closed


async def test_an_answer_that_is_read_no_further_is_ended_before_another_is_asked_for() -> None:
    is_ended: list[bool] = []

    class Ending(Replies):
        async def open(self, request: Any) -> Upstream:
            reply = await super().open(request)
            if len(self.asked) == 1:
                chunks = reply.chunks

                async def noted() -> AsyncGenerator[bytes, None]:
                    try:
                        async for chunk in chunks():
                            yield chunk
                    finally:
                        is_ended.append(True)

                reply.chunks = noted  # type: ignore[method-assign]
            else:
                assert is_ended
            return reply

    upstream = Ending([_looks("chat")], [_says("chat")], headers=JSON)
    assert await read(await opened("chat", upstream, limit_bytes=10)) == _says("chat")


@pytest.mark.parametrize("name", WIRE_NAMES)
async def test_what_every_round_keeps_is_counted_with_what_else_is_in_memory(name: str) -> None:
    for headers in (EVENTS, JSON):
        is_stream = headers == EVENTS
        parts = [("words", "I look."), ("ours", "x")]
        looks = STREAMS[name](parts) if is_stream else _looks(name)
        says = STREAMS[name]([("words", "Ω")]) if is_stream else _says(name)
        counted: list[int] = []

        def has_room_for(size_bytes: int, counted: list[int] = counted) -> bool:
            counted.append(size_bytes)
            return True

        upstream = Replies([looks[:40], looks[40:]], [says], headers=headers)
        body = await read(await opened(name, upstream, has_room_for=has_room_for))
        assert "Ω".encode() in body and b'"library_' not in body
        assert counted == [40, len(looks) - 40, len(says)]


@pytest.mark.parametrize("name", WIRE_NAMES)
async def test_a_stream_that_there_is_no_room_to_keep_reaches_the_client_and_ends_its_rounds(
    name: str,
) -> None:
    parts = [("thought", "hm"), ("words", "I look."), ("thought", "then"), ("ours", "x")]
    body = STREAMS[name](parts)
    pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
    upstream = Replies(pieces, headers=EVENTS)
    shown = await read(await opened(name, upstream, has_room_for=lambda _: False))
    assert len(upstream.asked) == 1
    assert b"hm" in shown and b"then" in shown
    assert b'"library_' not in shown
    end = {"chat": b"[DONE]", "messages": b"message_stop", "responses": b"response.completed"}
    assert end[name] in shown


async def test_no_more_of_a_stream_is_counted_than_may_be_kept() -> None:
    """DESIGN 1.13: what has no end took the room of all other answers."""
    counted: list[int] = []

    def has_room_for(size_bytes: int) -> bool:
        counted.append(size_bytes)
        return True

    body = STREAMS["chat"]([("words", "word " * 2_000)])
    pieces = [body[at : at + 1_000] for at in range(0, len(body), 1_000)]
    upstream = Replies(pieces, headers=EVENTS)
    shown = await read(await opened("chat", upstream, limit_bytes=5_000, has_room_for=has_room_for))
    assert shown == body
    assert 5_000 <= sum(counted) <= 8_000 < len(body)


@pytest.mark.parametrize("is_one_piece", [False, True])
@pytest.mark.parametrize("name", WIRE_NAMES)
async def test_an_event_that_is_too_long_to_be_looked_at_breaks_the_stream_and_is_not_shown(
    name: str, is_one_piece: bool
) -> None:
    """DESIGN 1.13: in Responses the last event repeats every call. What came in front of it is
    shown: it is recorded, too."""
    events = STREAMS[name]([("words", "I look."), ("ours", "x")]).split(b"\n\n")
    events[-2] += b" " * 20_000
    pieces = [event + b"\n\n" for event in events[:-1]]
    pieces = [b"".join(pieces)] if is_one_piece else pieces
    reply = await opened(name, Replies(pieces, headers=EVENTS), limit_bytes=10_000)
    shown = bytearray()
    with pytest.raises(UpstreamFailed, match="longer than 10000 bytes"):
        async for piece in reply.chunks():
            shown += piece
    assert shown
    assert b"library_" not in shown


async def test_a_whole_answer_that_there_is_no_room_to_keep_passes_without_our_tools() -> None:
    upstream = Replies([_looks("chat")], [_says("chat")], headers=JSON)
    body = await read(await opened("chat", upstream, has_room_for=lambda _: False))
    assert body == _says("chat")
    assert b"library_" not in upstream.asked[-1].body


def _wire(name: str) -> Any:
    return next(wire for wire in WIRES if wire.name == name)


def _looks(name: str) -> bytes:
    return reply_of(_wire(name), "I look.", ["library_search"])


def _says(name: str) -> bytes:
    return reply_of(_wire(name), "Ω", [])
