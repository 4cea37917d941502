"""A whole gateway on a free port, inside the test's own event loop."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from gateway.app import build_app
from gateway.cli.ports import bound_socket
from gateway.cli.serving import background
from gateway.settings import Settings


@asynccontextmanager
async def served(
    folder: Path,
    *,
    upstream: str = "offline",
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve with these settings; yield a client whose paths are the gateway's."""
    async with (
        served_at(folder, upstream=upstream, environ=environ, **more) as origin,
        aiohttp.ClientSession(origin) as client,
    ):
        yield client


@asynccontextmanager
async def served_at(
    folder: Path,
    *,
    upstream: str = "offline",
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[str]:
    """Serve with these settings; yield `http://host:port`."""
    more = {"embedder": "none", **more}
    settings = Settings(db=str(folder / "library.db"), upstream=upstream, **more)
    app = build_app(settings, base_url=None, environ=environ or {})
    with bound_socket("127.0.0.1", 0) as listener:
        async with background(app, listener) as origin:
            yield origin


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    """Return a request whose messages are a user's and an assistant's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "gpt-4o-mini", "messages": messages} | more
