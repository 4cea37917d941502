"""Which connections are used again, and what is said where there is none."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.upstream.http import pool as pool_module
from gateway.upstream.http.connection import Connection
from gateway.upstream.http.pool import ConnectTimeout, Origin, Pool, origin_of
from tests.unit.gateway.upstream.http.raw_server import OK, ask, raw_server, saying, whole


async def test_a_connection_whose_answer_was_read_serves_the_next_request() -> None:
    async with raw_server(saying(OK, OK, OK)) as server, Pool(connect_s=2.0) as pool:
        for _ in range(3):
            connection = await ask(pool, server)
            assert await whole(connection) == b"ok"
            pool.give_back(server.origin, connection)
        assert server.connection_count == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\n",
    ],
)
async def test_one_that_may_not_be_asked_again_is_closed(answer: bytes) -> None:
    """What comes behind an answer would be taken for the next one's (request smuggling)."""
    async with raw_server(saying(answer, OK)) as server, Pool(connect_s=2.0) as pool:
        first = await ask(pool, server)
        assert await whole(first) == b"ok"
        pool.give_back(server.origin, first)
        second = await ask(pool, server)
        assert second is not first
        assert await whole(second) == b"ok"


async def test_one_that_speaks_without_being_asked_is_not_used_again() -> None:
    spoke = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await spoke.wait()
        if server.connection_count == 1:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
            await writer.drain()

    async with raw_server(talk) as server, Pool(connect_s=2.0) as pool:
        first = await ask(pool, server)
        await whole(first)
        pool.give_back(server.origin, first)
        spoke.set()
        await _left(first)
        assert await whole(await ask(pool, server)) == b"ok"
        assert server.connection_count == 2


async def test_one_that_has_just_spoken_without_being_asked_is_not_used_again() -> None:
    """Its words wait in the socket: the event loop has not heard of them yet."""
    writers: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await saying(OK, OK)(reader, writer)

    async with raw_server(talk) as server, Pool(connect_s=2.0) as pool:
        first = await ask(pool, server)
        await whole(first)
        pool.give_back(server.origin, first)
        writers[0].write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
        assert await whole(await ask(pool, server)) == b"ok"
        assert server.connection_count == 2


async def test_one_that_its_server_closed_meanwhile_is_passed_over() -> None:
    async with raw_server(saying(OK)) as server, Pool(connect_s=2.0) as pool:
        first = await ask(pool, server)
        await whole(first)
        pool.give_back(server.origin, first)
        await _left(first)
        assert await whole(await ask(pool, server)) == b"ok"


async def test_one_that_nobody_asks_for_is_closed_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "IDLE_S", 0.02)
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.read()
        closed.set()

    async with raw_server(talk) as server, Pool(connect_s=2.0) as pool:
        connection = await ask(pool, server)
        await whole(connection)
        pool.give_back(server.origin, connection)
        async with asyncio.timeout(2):
            await closed.wait()


async def test_a_closed_pool_keeps_nothing_that_comes_back() -> None:
    async with raw_server(saying(OK, OK)) as server:
        async with Pool(connect_s=2.0) as pool:
            connection = await ask(pool, server)
            await whole(connection)
        pool.give_back(server.origin, connection)
        assert not connection.is_free


async def test_nobody_listening_says_where_and_why() -> None:
    async with Pool(connect_s=2.0) as pool:
        with pytest.raises(
            ConnectionError, match=r"no connection to 127.0.0.1:1 \(Connection refused\)"
        ):
            await pool.take(Origin("http", "127.0.0.1", 1))
        with pytest.raises(ConnectionError, match=r"no connection to nowhere.invalid:80 \(.+\)"):
            await pool.take(Origin("http", "nowhere.invalid", 80))


async def test_a_server_that_takes_no_part_in_a_handshake_is_left_in_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw_server(talk) as server, Pool(connect_s=0.1) as pool:
        with pytest.raises(ConnectTimeout):
            await pool.take(Origin("https", "127.0.0.1", server.port))


async def test_a_name_is_judged_by_what_it_leads_to_and_an_address_is_not() -> None:
    judged: list[tuple[str, int, Sequence[str]]] = []

    def judge(host: str, port: int, numbers: Sequence[str]) -> None:
        judged.append((host, port, numbers))
        raise PermissionError("not there")

    async with raw_server(saying(OK)) as server, Pool(connect_s=2.0, judge=judge) as pool:
        assert await whole(await ask(pool, server)) == b"ok"
        assert judged == []
        with pytest.raises(ConnectionError, match="not there"):
            await pool.take(Origin("http", "localhost", server.port))
        assert judged[0][:2] == ("localhost", server.port)
        assert "127.0.0.1" in judged[0][2]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path, host: str) -> None:
    server_context = _self_signed(tmp_path)
    server = await asyncio.start_server(_answered, "127.0.0.1", 0, ssl=server_context)
    async with server, Pool(connect_s=5.0) as pool:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            await pool.take(Origin("https", host, port))


async def test_one_that_is_vouched_for_serves_by_its_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_context = _self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    server = await asyncio.start_server(_answered, "127.0.0.1", 0, ssl=server_context)
    async with server, Pool(connect_s=5.0) as pool:
        port = server.sockets[0].getsockname()[1]
        connection = await pool.take(Origin("https", "localhost", port))
        await connection.ask(
            b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
            b"",
            upload=None,
            is_chunked=False,
            is_bodiless=False,
            timeout_s=5.0,
        )
        assert await whole(connection) == b"ok"
        with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            await pool.take(Origin("https", "127.0.0.1", port))


async def _left(connection: Connection) -> None:
    """Wait until a connection notes what its server did."""
    for _ in range(200):
        if not connection.is_free:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is still kept")


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


def _self_signed(folder: Path) -> ssl.SSLContext:
    """Return the context of a server that is called localhost."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("openssl makes the certificate")
    made = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", str(key)]
    made += ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(
    ("url", "origin", "name"),
    [
        ("http://Host/v1", Origin("http", "host", 80), "host"),
        ("https://host:8443", Origin("https", "host", 8443), "host:8443"),
        ("http://me:secret@[::1]:8000/v1", Origin("http", "::1", 8000), "[::1]:8000"),
        (
            "https://bücher.example/v1",
            Origin("https", "xn--bcher-kva.example", 443),
            "xn--bcher-kva.example",
        ),
    ],
)
def test_an_origin_is_what_a_url_leads_to(url: str, origin: Origin, name: str) -> None:
    assert origin_of(url) == origin
    assert origin.name == name


@pytest.mark.parametrize("url", ["ftp://host", "host:80", "http://", "http://host:99999", ""])
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"http|[Pp]ort"):
        origin_of(url)
