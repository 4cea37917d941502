"""`library-of-context mcp`: memory for an agent, over standard input and output."""

import asyncio
import io
import signal
import sys
from contextlib import suppress

import click

from gateway.cli.options import Mistake, config_option, db_option, loaded_settings
from gateway.mcp.bridge import Bridge, Carrier, Unreachable, read_lines
from gateway.mcp.compat.names import SYSTEMS, Compat
from gateway.mcp.greeting import PROTOCOLS
from gateway.mcp.names import UnknownTools, chosen
from gateway.settings import Settings

PING = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'
LINES_MAX = 4
"""Lines that are read ahead; the pipe holds the rest back."""


@click.command()
@click.option(
    "--tools",
    metavar="A,B,...",
    help="Offer these tools only: names, or `cooperative` [default: the setting mcp_tools].",
)
@click.option(
    "--compat",
    type=click.Choice(SYSTEMS),
    help="Offer the tools of rlm-claude (rlm_...), or of The Library of Context (library_...), "
    "instead of ours, for instructions that were written for those.",
)
@click.option(
    "--collection", metavar="NAME", help="The collection to work in [default: `default`]."
)
@db_option
@config_option
def mcp(
    tools: str | None,
    compat: Compat | None,
    collection: str | None,
    db: str | None,
    config: str | None,
) -> None:
    """Serve MCP on standard input and output, for agents that start their servers themselves.

    Speaks for the gateway that runs on the database; where none runs, it opens the database here,
    and says so on standard error. A client that speaks HTTP needs no command: the gateway answers
    at /mcp.
    """
    settings = loaded_settings(config=config, db=db).settings
    query = {"collection": collection} if collection else {}
    if tools is not None:
        try:
            chosen(filter(None, tools.split(",")))
        except UnknownTools as error:
            raise Mistake(f"--tools: {error}") from error
        query["tools"] = tools
    if compat is not None:
        query["compat"] = compat
    with suppress(asyncio.CancelledError):  # Told to stop: that is no failure.
        asyncio.run(_serve(settings, query, compat))


async def _serve(settings: Settings, query: dict[str, str], compat: Compat | None) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(LINES_MAX)
    # A reader of its own: Python cannot end while a thread reads with the one of `sys.stdin`.
    read_lines(io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False)), lines)
    lock = asyncio.Lock()

    async def write(message: bytes) -> None:
        async with lock:
            await asyncio.to_thread(_write, message)

    async with asyncio.TaskGroup() as group:
        opening = group.create_task(_opened(settings, query))
        with suppress(NotImplementedError):  # On Windows there is no such signal to wait for.
            own = asyncio.current_task()
            assert own is not None
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, own.cancel)
        try:
            await Bridge(opening, write, compat=compat).run(lines)
        finally:
            await (await opening).close()


async def _opened(settings: Settings, query: dict[str, str]) -> Carrier:
    """Return a way to the gateway, which has been asked something: the first call need not wait
    for what it loads then."""
    carrier = await asyncio.to_thread(_made, settings, query)
    with suppress(Unreachable):  # The first call will say why.
        await carrier.post(PING, protocol=PROTOCOLS[-1])
    return carrier


def _made(settings: Settings, query: dict[str, str]) -> Carrier:
    # An HTTP client takes a third of a second, in which the agent has been greeted already.
    from gateway.mcp.carrier import OwnersCarrier

    return OwnersCarrier(settings, query=query, say=_say)


def _say(text: str) -> None:
    click.echo(f"library-of-context mcp: {text}", err=True)


def _write(message: bytes) -> None:
    sys.stdout.buffer.write(message + b"\n")
    sys.stdout.buffer.flush()
