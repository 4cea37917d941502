"""`library-of-context doctor`: what is not in order, and what to do about it."""

import asyncio
import json
import os
from dataclasses import asdict

import click

from gateway.cli.checking.checks import (
    Finding,
    check_database,
    check_keys_file,
    check_place,
    check_port,
    owner_of,
)
from gateway.cli.checking.client_check import check_clients
from gateway.cli.checking.upstream_check import check_upstreams
from gateway.cli.client import otherwise_set
from gateway.cli.options import json_option, loaded_settings, settings_options
from gateway.cli.tables import folded
from gateway.configuration import without_credentials
from gateway.settings import Settings
from gateway.upstream.discovery import choose
from gateway.upstream.embedder import embedder_options
from library.cache.contract import CacheUnavailable
from library.cache.redis import RedisCache
from library.embedding.names import NONE, ONNX
from library.embedding.protocol import EmbedderUnavailable


@click.command()
@json_option
@settings_options
@click.pass_context
def doctor(context: click.Context, /, is_json: bool, config: str | None, **flags: object) -> None:
    """Check this machine and the settings; print a fix for every problem.

    Takes the options of `serve`, to check what they would give. Ends with code 1 when there is a
    problem.
    """
    settings = loaded_settings(config=config, **flags).settings
    findings = look(settings)
    if is_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo("\n".join(lines(finding)))
    if others := otherwise_set(settings):
        click.echo(f"\nThe gateway that runs has {others}; that was not checked.", err=True)
    context.exit(1 if any(finding.is_problem for finding in findings) else 0)


def lines(finding: Finding) -> list[str]:
    """Return a finding as people read it."""
    out = folded(f"{'x' if finding.is_problem else 'ok':<3} {finding.what:<9} ", finding.text)
    return out + folded(f"{'':<14}fix: ", finding.fix) if finding.is_problem else out


def look(settings: Settings) -> list[Finding]:
    """Return everything that was looked at, in the order in which a start needs it."""
    owner = owner_of(settings)
    return [
        *check_place(settings),
        check_database(settings, owner),
        check_port(settings, owner),
        check_keys_file(settings),
        *check_upstreams(choose(settings, environ=os.environ), os.environ),
        check_embedder(settings),
        check_redis(settings),
        *check_clients(settings, os.environ, owner),
    ]


def check_embedder(settings: Settings) -> Finding:
    """Whether text can be turned into vectors."""
    return asyncio.run(_check_embedder(settings))


async def _check_embedder(settings: Settings) -> Finding:
    if settings.embedder == NONE:
        return Finding("embedder", "none: recall is by words alone")
    try:
        embedder = await embedder_options(settings, os.environ).open(settings.embedder)
        row = await embedder.embed_question("boathouse")
        await embedder.close()
    except (EmbedderUnavailable, ValueError) as error:
        return Finding("embedder", str(error), how_to_mend(settings.embedder))
    return Finding("embedder", f"{embedder.identity}, {len(row)} bytes a passage")


def check_redis(settings: Settings) -> Finding:
    """Whether the shared cache can be asked and written to."""
    return asyncio.run(_check_redis(settings))


async def _check_redis(settings: Settings) -> Finding:
    if not settings.redis_url:
        return Finding("redis", "none: what is worked out is remembered in memory alone")
    where = without_credentials(settings.redis_url)
    cache = RedisCache(settings.redis_url, keyspace="doctor")
    try:
        await cache.connect()
    except CacheUnavailable as error:
        fix = "wsl-redis-install.sh --status, or another --redis-url; answers come without it too"
        return Finding("redis", f"{where}: {error}", fix)
    finally:
        await cache.close()
    return Finding("redis", f"{where} answers")


def how_to_mend(name: str) -> str:
    """Return what to do where an embedder does not work."""
    if name == ONNX:
        return "library-of-context model install"
    return "mend it, or choose another --embedder; until then recall is by words"
