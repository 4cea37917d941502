"""Durable before visible, and what is said when it cannot be (CASES C2; DESIGN 1.5, 8)."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.answers import DONE, ROLE, Gate, Json, chunk, said, stream
from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess, events, run_cli
from tests.e2e.protocols import CHAT, PROTOCOLS, Protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, filler, small_talk, user
from tests.small_disk import small_disk


def test_a_turn_is_in_the_file_before_the_upstream_is_called(
    ask: Ask, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.5: the upstream itself looks, with a connection of its own."""
    found: list[list[str]] = []
    upstream.on_chat = lambda seen: found.append([row["text"] for row in events(gateway.db)])
    talk = [user(f"{topic} one"), assistant(f"{topic} two"), user(f"{topic} three")]
    ask(talk)
    assert all(m["content"] in found[0] for m in talk)


@pytest.mark.parametrize("asked_stream", [True, False])
def test_a_reply_is_in_the_file_before_the_client_sees_its_end(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, asked_stream: bool
) -> None:
    """DESIGN 1.5: twenty times, read the moment the end arrives."""
    for number in range(20):
        text = f"{topic} reply {number}"
        if asked_stream:
            upstream.script(
                stream([ROLE, chunk({"content": text}), chunk({}, finish="stop"), DONE])
            )
            with client.streaming([user(f"{topic} {number}")]) as response:
                received = b""
                for piece in response.iter_raw():
                    received += piece
                    if b"[DONE]" in received:
                        break
                assert text in [row["text"] for row in gateway.events()]
        else:
            upstream.script(said(text))
            assert client.chat([user(f"{topic} {number}")]).status == 200
            assert text in [row["text"] for row in gateway.events()]


def test_the_end_of_a_stream_waits_for_the_commit(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.5: while the reply cannot be committed its text flows, and its end does not."""
    gate = Gate()
    upstream.script(stream([ROLE, chunk({"content": "abc"}), gate, chunk({}, finish="stop"), DONE]))
    with client.streaming([user(topic)]) as response:
        pieces = response.iter_raw()
        received = b""
        while b"abc" not in received:
            received += next(pieces)
        with locked(gateway.db):
            gate.open()
            ended = threading.Event()

            def read() -> None:
                nonlocal received
                for piece in pieces:
                    received += piece
                    if b"[DONE]" in received:
                        ended.set()

            reader = threading.Thread(target=read)
            reader.start()
            assert not ended.wait(0.4)
        assert ended.wait(10)
        reader.join()
    assert "abc" in [row["text"] for row in gateway.events()]


@contextlib.contextmanager
def locked(db: Path) -> Iterator[None]:
    """Hold SQLite's write lock from another process, as a backup or a careless tool would."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()\n"
        "c.execute('ROLLBACK')\n"
    )
    with subprocess.Popen(
        ["python3", "-c", code, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.communicate(timeout=10)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_mb=6) as folder:
        yield folder


def fill(place: Path) -> None:
    """Take what room is left."""
    with contextlib.suppress(OSError), (place / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@pytest.mark.parametrize("durability", ["strict", "relaxed"])
def test_a_full_disk_is_answered_as_configured_and_said(
    start_gateway: StartGateway,
    upstream: StubUpstream,
    disk: Path,
    topic: str,
    durability: str,
) -> None:
    """CASES C2 (letta#3151); DESIGN 8."""
    gateway = start_gateway(db=disk / "library.db", durability=durability)
    client = Client(gateway.url)
    first = client.chat([user(f"{topic} before")])
    assert first.status == 200
    fill(disk)
    large = [*small_talk(topic, turns=10), user(f"{topic} " + filler(topic, words=1_500))]
    for protocol in PROTOCOLS:
        calls_before = len(upstream.chats)
        reply = Client(gateway.url, protocol).chat(large)
        if durability == "strict":
            assert reply.status == 503
            assert protocol.is_refusal(reply.json)
            assert len(upstream.chats) == calls_before
        else:
            assert reply.status == 200
            assert "unrecorded" in reply.headers["x-library-degraded"]
            assert upstream.last.messages[-1] == large[-1]
    metric = {
        "strict": 'library_store_errors_total{reason="full"} ',
        "relaxed": 'library_degraded_total{part="unrecorded"} ',
    }[durability]
    assert f"\n{metric}" in gateway.get("/metrics").text
    assert gateway.status()["write_problem"]
    assert gateway.get("/readyz").status_code == 503
    assert gateway.get("/livez").status_code == 200
    (disk / "ballast").unlink()
    later = client.chat([user(f"{topic} after")])
    assert later.status == 200
    assert "x-library-degraded" not in later.headers
    assert gateway.status()["write_problem"] is None
    assert f"{topic} after" in [row["text"] for row in gateway.events()]
    assert gateway.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


@pytest.mark.parametrize(
    ("protocol", "durability"),
    [*((one, "strict") for one in PROTOCOLS), (CHAT, "relaxed")],
    ids=[*(f"{one.name}-strict" for one in PROTOCOLS), "chat-relaxed"],
    indirect=["protocol"],
)
def test_a_reply_that_cannot_be_stored_is_told_within_the_stream(
    start_gateway: StartGateway,
    upstream: StubUpstream,
    disk: Path,
    topic: str,
    protocol: Protocol,
    durability: str,
) -> None:
    """CASES C2: the disk fills while the reply streams; strict shows no end of it."""
    gateway = start_gateway(db=disk / "library.db", durability=durability)
    client = Client(gateway.url, protocol)
    gate = Gate()
    text = filler(topic, words=2_000)
    upstream.script(stream([protocol.begin, protocol.piece(text), gate, *protocol.end]))
    with client.streaming([user(topic)]) as response:
        pieces = response.iter_raw()
        received = next(pieces)
        fill(disk)
        gate.open()
        received += b"".join(pieces)
    if durability == "strict":
        assert protocol.end[-1] not in received
        assert protocol.code(json.loads(received.rstrip().rpartition(b"data: ")[2]))
    else:
        assert received.endswith(protocol.end[-1])
    assert gateway.process.poll() is None


def test_a_locked_database_is_waited_for(
    client: Client, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 8: a bounded wait, then the turn is recorded."""
    replies: list[int] = []
    with locked(gateway.db):
        thread = threading.Thread(
            target=lambda: replies.append(client.chat([user(topic)]).status), daemon=True
        )
        thread.start()
        thread.join(0.5)
        assert replies == []
    thread.join(15)
    assert replies == [200]
    assert topic in [row["text"] for row in gateway.events()]


def test_a_read_only_disk_is_said_at_the_start(disk: Path) -> None:
    """Issue 2, durability: a gateway that could record nothing does not begin."""
    GatewayProcess(db=disk / "library.db", upstream="offline").stop()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    call = ("serve", "--port", "0", "--upstream", "offline", "--db", str(disk / "library.db"))
    done = run_cli(*call, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "read-only" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_database_is_refused_at_start_with_a_clear_message(tmp_path: Path) -> None:
    """STYLE, errors: corrupt is not retried."""
    db = tmp_path / "own" / "library.db"
    db.parent.mkdir()
    db.write_bytes(b"SQLite format 3\0" + b"\xff" * 8_000)
    with pytest.raises(AssertionError, match=r"damaged|not a database|malformed"):
        GatewayProcess(db=db, upstream="offline").stop()


def test_every_turn_has_a_report_and_verify_finds_nothing_wrong(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """Issue 2: `verify` says OK, also for edits, partial replies and paged turns."""
    gateway = start_gateway()
    client = Client(gateway.url)
    talk = [*small_talk(topic, turns=20)]
    edits = ([*talk, user("a")], [*talk, user("b")], talk[:5], [*talk[:3], user("c")])
    turns = [client.chat(messages).turn_id for messages in edits]
    upstream.script(stream([ROLE, chunk({"content": "half"})]))
    turns.append(client.chat([user(f"{topic} cut")], stream=True).turn_id)
    for turn in turns:
        assert gateway.report(turn)["turn_id"] == turn
    gateway.wait_indexed()
    assert gateway.cli("verify").stdout.startswith("OK")
    gateway.stop()
    assert gateway.cli("verify").stdout.startswith("OK")


def test_verify_names_the_first_break(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """Issue 2: `verify`."""
    gateway = start_gateway()
    client = Client(gateway.url)
    client.chat([*small_talk(topic, turns=3), user("x")])
    gateway.wait_indexed()
    gateway.stop()
    code = 'UPDATE event SET body = \'{"role": "user", "content": "forged"}\' WHERE seq = 3'
    subprocess.run(
        [
            "python3",
            "-c",
            f"import sqlite3; c = sqlite3.connect({str(gateway.db)!r}); "
            f"c.execute({code!r}); c.commit()",
        ],
        check=True,
    )
    done = gateway.cli("verify", check=False)
    assert done.returncode == 1
    assert "digest" in done.stdout + done.stderr
    assert "e3" in done.stdout + done.stderr


def test_a_huge_attachment_comes_back_byte_for_byte(
    ask: Ask, gateway: GatewayProcess, topic: str, upstream: StubUpstream
) -> None:
    """DESIGN 7: stored once by digest, and whole again when the client leaves it to us."""
    picture: Json = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + "iVBORw0K" * 9_000, "detail": "low"},
    }
    with_picture = user([{"type": "text", "text": f"{topic} look"}, picture])
    ask([with_picture], session=topic)
    ask([user("and now?")], session=topic)
    assert upstream.last.messages[0] == with_picture
    assert json.dumps(picture["image_url"]["url"])[1:200] in json.dumps(upstream.last.json)
