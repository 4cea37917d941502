"""The door: names, room, keys, and whatever escapes."""

import asyncio
import json
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from gateway.auth import LOCAL, Principal
from gateway.body.reading import ClientGone
from gateway.middleware import REQUEST_ID, Door, Names, Room, visit_of
from gateway.refusals import BadParameter, HostForbidden, KeyRequired, Overloaded
from gateway.telemetry import Telemetry
from tests.unit.gateway.peers import Client


def names(host: str = "127.0.0.1", **more: Any) -> Names:
    return Names(host=host, hosts=more.get("hosts", ()), origins=more.get("origins", ()))


@pytest.mark.parametrize(
    "host", ["localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST", "me.lan:2"]
)
def test_our_own_names_are_welcome(host: str) -> None:
    names(hosts=("me.lan",)).check(Headers({"host": host}))


@pytest.mark.parametrize(
    "host", ["evil.example", "", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::2]"]
)
def test_a_foreign_host_is_refused(host: str) -> None:
    """DESIGN 9: DNS rebinding."""
    with pytest.raises(HostForbidden, match="Host"):
        names().check(Headers({"host": host}))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://localhost:1.evil"])
def test_a_foreign_page_is_refused(origin: str) -> None:
    with pytest.raises(HostForbidden, match="Origin"):
        names().check(Headers({"host": "localhost:1", "origin": origin}))


@pytest.mark.parametrize("origin", ["http://localhost:1", "https://app.example"])
def test_our_own_pages_and_allowed_ones_are_let_in(origin: str) -> None:
    headers = Headers({"host": "localhost:1", "origin": origin})
    names(origins=("https://app.example/",)).check(headers)


def test_an_open_bind_without_names_takes_any_host_since_keys_guard_it() -> None:
    names("0.0.0.0").check(Headers({"host": "box.lan"}))
    with pytest.raises(HostForbidden):
        names("0.0.0.0", hosts=("box.lan",)).check(Headers({"host": "evil.example"}))


class Stage:
    """A door in front of an app of the test's."""

    def __init__(self, app: Any, *, requests_max: int = 2, principal: Principal = LOCAL) -> None:
        async def authenticate(headers: Headers) -> Principal:
            if headers.get("authorization") == "wrong":
                raise KeyRequired
            return principal

        telemetry = Telemetry(logs_text=False)
        self.room = Room(telemetry, requests_max=requests_max, body_bytes_max=100)
        allowed = names(origins=("https://app.example",))
        self.door = Door(
            app, names=allowed, room=self.room, telemetry=telemetry, authenticate=authenticate
        )

    async def ask(self, path: str = "/x", method: str = "GET", **headers: str) -> Client:
        client = Client()
        rows = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(b"host", b"localhost"), *rows],
        }
        await self.door(scope, client.receive, client.send)
        return client


async def fine(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


async def test_a_page_of_an_allowed_origin_may_ask_and_read() -> None:
    stage, origin = Stage(fine), "https://app.example"
    before = await stage.ask(
        method="OPTIONS", origin=origin, access_control_request_method="POST", authorization="wrong"
    )
    assert (before.status, before.body) == (204, b"")
    assert before.headers[b"access-control-allow-origin"] == origin.encode()
    assert b"authorization" in before.headers[b"access-control-allow-headers"]
    methods = before.headers[b"access-control-allow-methods"].decode().split(", ")
    assert methods == ["GET", "POST", "PUT", "PATCH", "DELETE"], "what our routes take"
    answer = await stage.ask(origin=origin)
    assert answer.headers[b"access-control-allow-origin"] == origin.encode()
    assert answer.headers[b"access-control-expose-headers"] == b"*"
    assert b"access-control-allow-origin" not in (await stage.ask()).headers


async def test_every_answer_carries_the_request_id() -> None:
    client = await Stage(fine).ask()
    assert client.body == b"ok"
    assert client.headers[REQUEST_ID]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BadParameter("after", "a whole number"), 400, "invalid_parameter"),
        (HTTPException(404), 404, "not_found"),
        (ZeroDivisionError("secret detail"), 500, "internal_error"),
    ],
)
async def test_what_escapes_becomes_an_answer_in_openais_shape(
    error: Exception, status: int, code: str
) -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    client = await Stage(failing).ask()
    assert client.status == status
    told = json.loads(client.body)["error"]
    assert told["code"] == code
    assert "secret" not in told["message"]
    if status == 500:
        assert client.headers[REQUEST_ID].decode() in told["message"]


async def test_an_answer_that_began_is_not_answered_twice() -> None:
    async def half(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    client = await Stage(half).ask()
    assert [message["type"] for message in client.sent] == ["http.response.start"]


async def test_nobody_is_answered_who_has_gone() -> None:
    async def gone(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientGone

    assert (await Stage(gone).ask()).sent == []


async def test_a_wrong_key_is_refused_but_health_needs_none() -> None:
    stage = Stage(fine)
    refused = await stage.ask(authorization="wrong")
    assert (refused.status, refused.headers[b"www-authenticate"]) == (401, b"Bearer")
    assert (await stage.ask("/health", authorization="wrong")).status == 200


async def test_the_next_request_finds_the_place_free_as_soon_as_it_sees_an_end() -> None:
    """DESIGN 8, overload."""
    may_end, has_ended = asyncio.Event(), asyncio.Event()

    async def lingering(scope: Scope, receive: Receive, send: Send) -> None:
        await may_end.wait()
        await fine(scope, receive, send)
        await has_ended.wait()

    stage = Stage(lingering, requests_max=1)
    first = asyncio.ensure_future(stage.ask())
    await asyncio.sleep(0)
    refused = await stage.ask()
    assert refused.status == 429
    assert int(refused.headers[b"retry-after"]) >= 1
    may_end.set()
    await asyncio.sleep(0)
    second = asyncio.ensure_future(stage.ask())
    await asyncio.sleep(0)
    has_ended.set()
    assert (await first).status == (await second).status == 200


async def test_bodies_in_memory_are_bounded_and_given_back() -> None:
    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        visit_of(scope).stay.take_bytes(300)
        await fine(scope, receive, send)

    stage = Stage(reading)
    for _ in range(3):
        assert (await stage.ask()).status == 200
    with pytest.raises(Overloaded):
        stage.room.take_bytes(401)
