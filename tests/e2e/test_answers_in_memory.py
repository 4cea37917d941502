"""What answers may hold of the gateway's memory (DESIGN 1.13, 8)."""

import gzip
import json
import time
from pathlib import Path

import pytest

from tests.e2e.answers import DONE, ROLE, Answer, Gate, Step, chunk, completion, stream
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import WAIT_S, GatewayProcess
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, RawConnection, Reply, user

BODY_BYTES_MAX = 65_536
ROOM_BYTES = 4 * BODY_BYTES_MAX


def peak_bytes(gateway: GatewayProcess) -> int:
    """Return the most memory that the gateway has had."""
    status = Path(f"/proc/{gateway.process.pid}/status")
    if not status.exists():
        pytest.skip("the peak of another process is read as Linux tells it")
    lines = status.read_text("utf-8").splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1_024


def wait_held(gateway: GatewayProcess, size_bytes: int) -> None:
    """Return once so many bytes of bodies and answers are in its memory."""
    until = time.monotonic() + WAIT_S
    is_held = False
    while not is_held:
        assert time.monotonic() < until, f"never held {size_bytes} bytes"
        lines = gateway.get("/metrics").text.splitlines()
        [line] = [line for line in lines if line.startswith("library_inflight_body_bytes ")]
        is_held = float(line.split()[1]) >= size_bytes


def held_back(*, is_stream: bool, gate: Gate) -> Answer:
    """Return an answer that nearly fills the room, and then waits."""
    words = "x" * (ROOM_BYTES - 20_000) + "so far"
    if is_stream:
        steps: list[Step] = [ROLE, chunk({"content": words}), gate, chunk({}, finish="stop"), DONE]
        return stream(steps)
    data = json.dumps(completion({"role": "assistant", "content": words})).encode()
    return Answer((data[:-1], gate, data[-1:]), headers=(("content-type", "application/json"),))


@pytest.mark.parametrize("is_stream", [False, True])
def test_answers_in_memory_leave_no_room_for_more_bodies(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """DESIGN 8, overload: 429 before memory runs out, whichever side fills it."""
    gateway = start_gateway(max_body_bytes=BODY_BYTES_MAX)
    upstream.budget_tokens = None
    gate = Gate()
    upstream.script(held_back(is_stream=is_stream, gate=gate))
    body = {"model": MODEL, "messages": [user(topic)], "stream": is_stream}
    first = RawConnection(gateway.origin, body)
    upstream.wait_for_chats(1)
    if is_stream:  # Else the gateway waits for its client to read, and reads no further itself.
        first.read_until(b"so far")
    # A body that came before would take the answer's room, and the answer would not be kept.
    wait_held(gateway, ROOM_BYTES - 50_000)
    client = Client(gateway.url)
    large = [user("a word " * (BODY_BYTES_MAX // 8))]

    def until(status: int) -> Reply:
        for _ in range(100):
            reply = client.chat(large, budget=100_000)
            if reply.status == status:
                return reply
            time.sleep(0.05)
        raise AssertionError(f"{reply.status} and not {status}: {reply.content!r}")

    refused = until(429)
    assert refused.headers["retry-after"]
    assert refused.json["error"]["code"] == "gateway_overloaded"
    gate.open()
    first.read_until(DONE if is_stream else b'"total_tokens": 18}}')
    first.hang_up()
    until(200)


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_answer_beyond_the_room_reaches_the_client_whole_and_is_marked_in_the_record(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """DESIGN 1.4, 1.13: it is relayed, and no more of it is kept than there is room for."""
    gateway = start_gateway(max_body_bytes=BODY_BYTES_MAX)
    pieces = ["y" * 50_000 for _ in range(12)]
    if is_stream:
        steps = [ROLE, *(chunk({"content": one}) for one in pieces), chunk({}, finish="stop"), DONE]
        upstream.script(stream(steps))
        whole = b"".join(steps)
    else:
        whole = json.dumps(completion({"role": "assistant", "content": "".join(pieces)})).encode()
        cut = [whole[at : at + 50_000] for at in range(0, len(whole), 50_000)]
        upstream.script(Answer(tuple(cut), headers=(("content-type", "application/json"),)))
    reply = Client(gateway.url).chat([user(topic)], stream=is_stream)
    assert (reply.status, reply.content) == (200, whole)
    gateway.report(reply.turn_id)
    [stored] = [row for row in gateway.events() if row["role"] == "assistant"]
    assert len(stored["text"]) <= ROOM_BYTES
    assert "was not stored" in stored["text"]


def test_an_answer_that_swells_is_held_back_by_a_slow_reader_and_arrives_whole(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.13; CASES E2: a compressed answer may grow a thousandfold."""
    gateway = start_gateway(idle_timeout_s=1.0)
    size_bytes = 60_000_000
    swollen = gzip.compress(ROLE + b": " + b"0" * size_bytes + b"\n\n" + chunk({}, finish="stop"))
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    client = Client(gateway.url)
    client.chat([user(f"{topic} first")])  # Loads what is loaded once.
    before_bytes = peak_bytes(gateway)
    upstream.script(Answer((swollen, gzip.compress(DONE)), headers=headers))
    received, last = 0, b""
    # Longer than the upstream may be silent, which here has said everything at once.
    with client.streaming([user(topic)]) as response:
        pieces = response.iter_raw()
        received += len(next(pieces))
        time.sleep(2.0)
        for piece in pieces:
            received, last = received + len(piece), last[-100:] + piece
    assert last.endswith(DONE)
    assert received > size_bytes
    assert peak_bytes(gateway) - before_bytes < size_bytes // 3
