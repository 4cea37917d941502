"""`library-of-context serve`: start the gateway and say how to use it."""

import json
import os
import socket
import sys

import click

from gateway.app import build_app
from gateway.auth import KeysFileUnusable
from gateway.cli.options import (
    SETTINGS_HELP,
    Mistake,
    Unusable,
    loaded_settings,
    settings_options,
)
from gateway.cli.ports import bound_socket, occupant, origin
from gateway.cli.running.joined import Joined
from gateway.cli.running.programs import OPENAI_KEY, PLACEHOLDER
from gateway.cli.serving import run
from gateway.configuration import redacted, without_credentials
from gateway.log import end_log
from gateway.settings import Settings
from gateway.upstream.discovery import Chosen, choose
from library.errors import LibraryError
from library.runtime.allocator import limit_heaps
from library.runtime.garbage import set_aside


@click.command(epilog=SETTINGS_HELP)
@settings_options
def serve(config: str | None, **flags: object) -> None:
    """Start the gateway.

    The first line on standard output is the base URL, for OPENAI_BASE_URL. Ends with code 0 when
    it is stopped by a signal, after running requests had --shutdown-grace-s to end.
    """
    limit_heaps()
    settings = loaded_settings(config=config, **flags).settings
    listener = _listener(settings)
    chosen = choose(settings, environ=os.environ)
    base_url = f"{origin(settings.host, listener.getsockname()[1])}/v1"
    try:
        run(
            build_app(chosen.settings, base_url=base_url, upstream_reason=chosen.reason),
            listener,
            grace_s=settings.shutdown_grace_s,
            on_ready=lambda: _tell(banner(chosen, base_url)),
        )
    except (LibraryError, KeysFileUnusable) as error:
        raise Unusable(str(error)) from error
    finally:
        listener.close()
    # On a terminal in a new line: it has shown ^C.
    gap = "\n" if sys.stderr.isatty() else ""
    end_log(f"{gap}stopped; everything recorded is stored")


def _tell(lines: list[str]) -> None:
    set_aside()
    click.echo("\n".join(lines))


def _listener(settings: Settings) -> socket.socket:
    try:
        return bound_socket(settings.host, settings.port)
    except socket.gaierror as error:
        raise Mistake(f"--host {settings.host}: {error.strerror}") from error
    except OSError as error:
        if settings.port and settings.is_loopback:
            who = occupant(settings.host, settings.port)
            problem = f"port {settings.port} is taken by {who}; stop it, or choose another --port"
        else:
            problem = f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
        raise Unusable(problem) from error


def banner(chosen: Chosen, base_url: str) -> list[str]:
    """Return what a user sees at start: the base URL first, alone on its line."""
    settings = chosen.settings
    row = settings.upstreams.get(settings.upstream)
    url = without_credentials(row.url if row else settings.upstream)
    where = f"{settings.upstream} at {url}" if row else url
    reason = f" ({chosen.reason})" if chosen.reason else ""
    elsewhere = [
        f"models    {glob} go to {without_credentials(model.upstream)}"
        for glob, model in settings.models.items()
        if model.upstream
    ]
    mode = ", observed only: requests go out as they came" if settings.observe else ""
    return [
        base_url,
        f"database  {settings.db}",
        f"upstream  {where}{reason}",
        *elsewhere,
        f"budget    {settings.budget_tokens:,} tokens a request{mode}",
        *to_paste(chosen, base_url, is_powershell=sys.platform == "win32"),
    ]


def to_paste(chosen: Chosen, base_url: str, *, is_powershell: bool) -> list[str]:
    """Return two lines to paste: where clients find the gateway, and a first request.

    Clients want a key also where none is needed; one that is set already stays.
    """
    message = {"role": "user", "content": "Remember: the blue key opens the boathouse."}
    body = json.dumps({"model": chosen.model, "messages": [message]})
    url = f"{base_url}/chat/completions"
    key = "YOUR-KEY" if chosen.settings.keys_file else ""
    is_any = Joined(redacted(chosen.settings), chosen.reason).needs_no_key
    given = key or (PLACEHOLDER if is_any else "")  # Else the client's own goes to the upstream.
    if is_powershell:
        own = f'; if (-not $env:{OPENAI_KEY}) {{ $env:{OPENAI_KEY} = "{given}" }}' if given else ""
        header = f" -Headers @{{Authorization = 'Bearer {key}'}}" if key else ""
        return [
            f'$env:OPENAI_BASE_URL = "{base_url}"{own}',
            f"Invoke-RestMethod {url} -Method Post -ContentType application/json{header} "
            f"-Body '{body}'",
        ]
    own = f" {OPENAI_KEY}=${{{OPENAI_KEY}:-{given}}}" if given else ""
    header = f" -H 'authorization: Bearer {key}'" if key else ""
    return [
        f"export OPENAI_BASE_URL={base_url}{own}",
        f"curl {url} -H 'content-type: application/json'{header} -d '{body}'",
    ]
