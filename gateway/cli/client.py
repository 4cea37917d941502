"""One way to the data for all commands: the HTTP routes under /library/.

When a gateway owns the database they are asked of that gateway, found through the owner's note
beside the file. Else they are asked of the same app, run inside this process for the moment, which
takes the owner's place and so cannot collide with a gateway that starts meanwhile. No command reads
the file on its own but `verify`, which must not trust the code that it checks.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from msgspec import structs

from gateway.auth import KeysFileUnusable
from gateway.cli.options import Problem, Unusable
from gateway.cli.running.joined import Joined, unlike
from gateway.settings import OFFLINE, Settings
from library.errors import LibraryError
from library.lock import Owner, read_owner

ANSWER_TIMEOUT_S = 60.0
"""Forgetting a large thread rewrites much of the file."""
T = TypeVar("T")


class LibraryClient:
    """Asks the routes under /library/, and turns their errors into the command's."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str, **parameters: object) -> Any:
        return await self._ask("GET", path, params=_given(parameters))

    async def post(self, path: str, **body: object) -> Any:
        return await self._ask("POST", path, json=_given(body))

    async def post_long(self, path: str, **body: object) -> Any:
        """Wait as long as it takes: what is linear in all that is stored."""
        return await self._ask("POST", path, json=_given(body), timeout=None)

    async def patch(self, path: str, **body: object) -> Any:
        return await self._ask("PATCH", path, json=_given(body))

    async def put(self, path: str, content: bytes, **parameters: object) -> Any:
        return await self._ask("PUT", path, content=content, params=_given(parameters))

    async def delete(self, path: str, **parameters: object) -> Any:
        return await self._ask("DELETE", path, params=_given(parameters))

    async def send_lines(self, path: str, lines: bytes) -> Any:
        return await self._ask("POST", path, content=lines)

    async def get_lines(self, path: str, **parameters: object) -> list[Any]:
        reply = await self._answer("GET", path, params=_given(parameters))
        return [json.loads(line) for line in reply.content.split(b"\n") if line]

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        return (await self._answer(method, path, **options)).json()

    async def _answer(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            reply = await self._http.request(method, f"/library{path}", **options)
        except httpx.HTTPError as error:
            raise Unusable(f"the gateway does not answer: {error}") from error
        if reply.is_success:
            return reply
        try:
            said = reply.json()["error"]
            message, code = said["message"], str(said.get("code"))
        except (ValueError, LookupError, TypeError, AttributeError):
            message, code = f"the gateway answered {reply.status_code}", ""
        if reply.is_client_error:
            raise Problem(message, code=code)
        raise Unusable(message)


def segment(name: str) -> str:
    """Return a name as one part of a path."""
    return quote(name, safe="")


def _given(values: dict[str, object]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def ask(
    settings: Settings, work: Callable[[LibraryClient], Awaitable[T]], *, may_make: bool = False
) -> T:
    """Run one piece of work on the library of `settings.db`; `may_make`: a new one if need be.

    Raises:
        Problem: there is no such database.
        Unusable: its owner cannot be asked, or it cannot be opened.

    """
    database = Path(settings.db)
    if not may_make and not database.exists():
        raise Problem(f"there is no database {database} yet; `serve` makes it")
    owner = read_owner(database)
    if owner is not None and owner.base_url is None:
        raise Unusable(f"{database} is in use by {owner}, which serves no one; try again")

    async def run() -> T:
        async with _outside(owner) if owner else _inside(settings) as http:
            return await work(LibraryClient(http))

    return asyncio.run(run())


def _outside(owner: Owner) -> httpx.AsyncClient:
    assert owner.base_url is not None
    return _client(owner, owner.base_url.removesuffix("/v1"))


async def joined_by(library: LibraryClient) -> Joined | None:
    """Return what the gateway says of itself; None: an older one, which does not."""
    try:
        return Joined(**await library.get("/settings"))
    except Problem:
        return None


def otherwise_set(settings: Settings) -> str:
    """Return the settings that a running gateway has otherwise, as flags or its environment gave
    them to it; "": none runs, or there are none."""
    owner = read_owner(Path(settings.db)) if Path(settings.db).exists() else None
    if owner is None or owner.base_url is None:
        return ""
    try:
        joined = ask(settings, joined_by)
    except Unusable:  # It is stopping.
        return ""
    return "" if joined is None else unlike(joined, settings)


@asynccontextmanager
async def _inside(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    # Heavy, and not needed to ask a gateway that runs.
    from gateway.app import build_app

    app = build_app(structs.replace(settings, upstream=OFFLINE), base_url=None)
    try:
        async with app.router.lifespan_context(app):
            owner = read_owner(Path(settings.db))
            assert owner is not None
            async with _client(
                owner, "http://127.0.0.1", transport=httpx.ASGITransport(app)
            ) as http:
                yield http
    except (LibraryError, KeysFileUnusable) as error:
        raise Unusable(str(error)) from error


def _client(
    owner: Owner, origin: str, *, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=origin,
        transport=transport,
        headers={"authorization": f"Bearer {owner.token}"},
        timeout=ANSWER_TIMEOUT_S,
        trust_env=False,  # A proxy of the environment is not for this machine's own gateway.
        verify=False,  # Nothing is encrypted here, and reading the certificates takes 25 ms.
    )
