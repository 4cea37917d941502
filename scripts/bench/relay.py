"""The least a Python proxy can do: uvicorn, an aiohttp client, bytes in and bytes out.

What the gateway costs beyond this is what it does for the user. It keeps nothing, decides nothing,
and copies no header but the content type.
"""

import socket
import sys

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

UPSTREAM = sys.argv[1] if len(sys.argv) > 1 else ""
_sessions: list[aiohttp.ClientSession] = []


async def relay(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    if not _sessions:
        connector = aiohttp.TCPConnector(limit=0)
        _sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
    answer = await _sessions[0].post(
        UPSTREAM + request.url.path.removeprefix("/v1"),
        data=await request.body(),
        headers={"content-type": "application/json"},
    )
    async with answer:
        response = StreamingResponse(
            answer.content.iter_any(),
            status_code=answer.status,
            headers={"content-type": answer.headers["content-type"]},
        )
        await response(scope, receive, send)


class _Relay:
    """Starlette calls a function with a request, and a class instance with the bare scope."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await relay(scope, receive, send)


app = Starlette(routes=[Route("/v1/chat/completions", _Relay(), methods=["POST"])])

if __name__ == "__main__":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="error", access_log=False, loop="uvloop")
    uvicorn.Server(config).run(sockets=[listener])
