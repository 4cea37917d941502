"""The bridge on a scripted gateway: what it answers itself, what it carries, and how it fails."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from gateway.mcp.bridge import (
    AT_ONCE_MAX,
    LINE_BYTES_MAX,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    Bridge,
    Carrier,
    Unreachable,
    read_lines,
)
from gateway.mcp.greeting import INSTRUCTIONS, PROTOCOLS

Json = dict[str, Any]


class Gateway:
    """Answers with what it was asked, after `gate` is open."""

    def __init__(self) -> None:
        self.asked: list[tuple[Json, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fault: Exception | None = None
        self.reads = True
        """False: it cannot read what it is asked, and so does not know whose the answer is."""
        self.at_once = self.at_once_most = 0
        self.is_asked = asyncio.Event()
        self.is_full = asyncio.Event()

    async def post(self, body: bytes, *, protocol: str) -> bytes:
        message = orjson.loads(body)
        self.asked.append((message, protocol))
        self.at_once += 1
        self.at_once_most = max(self.at_once, self.at_once_most)
        self.is_asked.set()
        if self.at_once == AT_ONCE_MAX:
            self.is_full.set()
        try:
            await self.gate.wait()
        finally:
            self.at_once -= 1
        if self.fault is not None:
            raise self.fault
        id_ = message["id"] if self.reads else None
        return orjson.dumps(
            {"jsonrpc": "2.0", "id": id_, "result": {"did": message["method"]}},
            option=orjson.OPT_INDENT_2,
        )

    async def close(self) -> None: ...


async def talked(
    gateway: Gateway,
    *messages: Json | bytes,
    during: Callable[[Callable[[Json], None]], Awaitable[None]] | None = None,
) -> list[Json]:
    """Send messages, one a line; return what was answered, in the order of the answers."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    answers: list[Json] = []

    async def write(line: bytes) -> None:
        assert b"\n" not in line
        answers.append(orjson.loads(line))

    async def carrier() -> Carrier:
        return gateway

    async with asyncio.TaskGroup() as group:
        running = group.create_task(Bridge(group.create_task(carrier()), write).run(lines))
        for message in messages:
            lines.put_nowait(message if isinstance(message, bytes) else orjson.dumps(message))
        if during is not None:
            await during(lambda more: lines.put_nowait(orjson.dumps(more)))
        lines.put_nowait(None)
        await running
    return answers


def request(method: str, *, id_: object = 1, **parameters: object) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": parameters}


async def test_a_client_is_greeted_without_a_gateway() -> None:
    gateway = Gateway()
    [answer] = await talked(gateway, request("initialize", protocolVersion=PROTOCOLS[1]))
    assert answer["result"]["protocolVersion"] == PROTOCOLS[1]
    assert answer["result"]["instructions"] == INSTRUCTIONS
    assert not gateway.asked


async def test_a_client_of_an_unknown_revision_is_offered_the_newest_that_begins_so() -> None:
    [answer] = await talked(Gateway(), request("initialize", protocolVersion="3000-01-01"))
    assert answer["result"]["protocolVersion"] == PROTOCOLS[-1]


async def test_a_newer_client_is_told_to_begin_with_the_handshake() -> None:
    [answer] = await talked(Gateway(), request("server/discover"))
    assert answer["error"]["code"] == UNKNOWN_METHOD


async def test_calls_are_carried_in_the_revision_that_was_agreed() -> None:
    gateway = Gateway()
    first = request("initialize", id_=0, protocolVersion=PROTOCOLS[2])
    answers = await talked(gateway, first, request("tools/list", id_="a"))
    assert answers[1] == {"jsonrpc": "2.0", "id": "a", "result": {"did": "tools/list"}}
    assert [protocol for _, protocol in gateway.asked] == [PROTOCOLS[2]]


async def test_notifications_get_no_answer() -> None:
    gateway = Gateway()
    assert await talked(gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []
    assert not gateway.asked


async def test_what_is_no_message_is_answered_and_passed_over() -> None:
    answers = await talked(Gateway(), b"{nonsense", b"\n", b"[1]", request("ping"))
    assert [one.get("error", {}).get("code") for one in answers] == [PARSE_ERROR, -32600, None]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
async def test_a_line_with_a_number_that_json_has_not_is_refused_under_its_own_id(
    value: str,
) -> None:
    """With null for an id its sender, who wrote what Python's `json` writes, waited for ever."""
    line = request("tools/call", id_="a", name="grep", arguments={"timeout_s": 1.5})
    [answer] = await talked(Gateway(), orjson.dumps(line).replace(b"1.5", value.encode()))
    assert (answer["id"], answer["error"]["code"]) == ("a", PARSE_ERROR)
    [answer] = await talked(Gateway(), f'{{"id": {value}, "method": "ping"}}'.encode())
    assert answer["id"] is None


async def test_an_answer_without_an_id_goes_to_the_one_that_asked() -> None:
    """What is nested too deep for the SDK was answered with null, and its sender waited on."""
    gateway = Gateway()
    gateway.reads = False
    [answer] = await talked(gateway, request("tools/list", id_="deep", note={"id": None}))
    assert (answer["id"], answer["result"]) == ("deep", {"did": "tools/list"})
    gateway.reads = True
    [answer] = await talked(gateway, request("tools/list", id_=0, note={"id": None}))
    assert answer["id"] == 0


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ('{"jsonrpc": "2.0", "id": "a", "method": "m", "params": DEEP}', "a"),
        ('{"id":-7,"method":"m","params":{"id":1,"x":DEEP}}', -7),
        ('{"method":"m","params":DEEP,"jsonrpc":"2.0","id":12}\r\n', 12),
        ('{"method":"m","params":DEEP,"id":"z"} ', "z"),
        ('{"method":"m","params":DEEP,"id":007}', None),
        ('{"method":"m","params":DEEP}', None),
        ("DEEP", None),
    ],
)
async def test_a_line_that_is_too_deep_to_be_read_is_refused_under_its_own_id(
    line: str, id_: object
) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    [answer] = await talked(Gateway(), line.replace("DEEP", deep).encode())
    assert (answer["id"], answer["error"]["code"]) == (id_, PARSE_ERROR)


async def test_a_line_that_is_too_long_is_refused_and_the_next_one_read() -> None:
    stream = io.BytesIO(b'"' + b"x" * (3 * LINE_BYTES_MAX) + b'"\n' + b'{"id": 1}\n')
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    read_lines(stream, lines)
    first, second, end = [await lines.get() for _ in range(3)]
    assert first is not None and LINE_BYTES_MAX < len(first) <= LINE_BYTES_MAX + 2
    assert (second, end) == (b'{"id": 1}\n', None)
    [answer] = await talked(Gateway(), first)
    assert "longer than" in answer["error"]["message"]


async def test_a_gateway_that_is_gone_is_an_error_of_that_call_alone() -> None:
    gateway = Gateway()
    gateway.fault = Unreachable("it went away")
    [answer] = await talked(gateway, request("tools/list"))
    assert answer["error"]["message"] == "it went away"
    gateway.fault = None
    [answer] = await talked(gateway, request("tools/list"))
    assert "result" in answer


async def test_a_cancelled_call_stops_and_is_not_answered() -> None:
    gateway = Gateway()
    gateway.gate.clear()

    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}

    async def cancel_it(send: Callable[[Json], None]) -> None:
        await gateway.is_asked.wait()
        send(cancel)

    assert await talked(gateway, request("tools/call", id_=7), during=cancel_it) == []
    assert gateway.at_once == 0
    # One that is cancelled at once, before it began.
    assert await talked(gateway, request("tools/call", id_=7), cancel) == []


async def test_a_cancellation_that_names_no_call_is_passed_over() -> None:
    """One that named a list ended the bridge, and with it every call under way."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [7]}}
    [answer] = await talked(Gateway(), cancel, request("ping"))
    assert answer["result"] == {}


async def test_calls_run_side_by_side_up_to_a_bound() -> None:
    gateway = Gateway()
    gateway.gate.clear()

    async def let_go(send: Callable[[Json], None]) -> None:
        await gateway.is_full.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        gateway.gate.set()

    calls = [request("tools/call", id_=number) for number in range(AT_ONCE_MAX + 5)]
    answers = await talked(gateway, *calls, during=let_go)
    assert sorted(one["id"] for one in answers) == [*range(AT_ONCE_MAX + 5)]
    assert gateway.at_once_most == AT_ONCE_MAX


@pytest.mark.parametrize("bad", [1.5, True, None, [1], {"a": 1}])
async def test_an_id_of_another_type_is_refused(bad: object) -> None:
    [answer] = await talked(Gateway(), request("tools/list", id_=bad))
    assert answer["error"]["code"] == -32600
