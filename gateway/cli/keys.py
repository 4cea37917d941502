"""`library-of-context keys`: who may use the gateway, each with a collection of their own."""

import json
import os
from pathlib import Path

import click

from gateway.auth import (
    DEFAULT_COLLECTION,
    SCOPES,
    KeyNameTaken,
    KeysFileUnusable,
    add_key,
    list_keys,
    revoke_key,
)
from gateway.cli.options import Problem, Unusable, config_option, json_option, loaded_settings
from gateway.cli.tables import print_table
from gateway.configuration import user_folder
from gateway.settings import Settings

FILE_NAME = "keys.json"
keys_file_option = click.option(
    "--keys-file",
    metavar="FILE",
    help="File of gateway keys [default: the setting, else keys.json in the user's "
    "configuration folder].",
)


@click.group()
def keys() -> None:
    """Add, list and revoke gateway keys.

    With a keys file every request needs one of its keys. A key has a collection, and reaches
    nothing outside it.
    """


@keys.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--collection",
    metavar="NAME",
    default=DEFAULT_COLLECTION,
    show_default=True,
    help="The collection whose threads it reads and writes.",
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default=SCOPES[-1],
    show_default=True,
    help="The widest that its requests may recall from: their own thread, or the collection.",
)
@click.option(
    "--team",
    "teams",
    metavar="NAME",
    multiple=True,
    help="A team whose shelf it reads, and may promote records to; may be repeated.",
)
@click.option(
    "--budget-tokens",
    metavar="INTEGER",
    type=click.IntRange(min=1),
    help="Budget of its requests [default: the setting].",
)
@click.option("--upstream", metavar="NAME", help="A name from [upstreams], for all its requests.")
@keys_file_option
@config_option
@json_option
def add(
    name: str,
    collection: str,
    scope: str,
    teams: tuple[str, ...],
    budget_tokens: int | None,
    upstream: str | None,
    keys_file: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Add a key called NAME and print it, this one time."""
    settings, path = _place(config, keys_file)
    if upstream is not None and upstream not in settings.upstreams:
        named = ", ".join(settings.upstreams) or "none"
        raise click.BadParameter(f"{upstream!r} is not in [upstreams] ({named})")
    try:
        key, clear = add_key(
            path,
            key_id=name,
            collection=collection,
            scopes=SCOPES[: SCOPES.index(scope) + 1],
            teams=tuple(sorted(set(teams))),
            budget_tokens=budget_tokens,
            upstream=upstream,
        )
    except KeyNameTaken as error:
        raise Problem(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except KeysFileUnusable as error:
        raise Unusable(str(error)) from error
    told = {"name": key.id, "key": clear, "collection": key.collection, "keys_file": str(path)}
    click.echo(json.dumps(told, indent=2) if is_json else clear)
    click.echo(f"{key.id} reaches collection {key.collection}; {path} keeps only a hash.", err=True)
    if settings.keys_file != str(path):
        click.echo(f"Start the gateway with --keys-file {path}", err=True)


@keys.command("list")
@keys_file_option
@config_option
@json_option
def list_(keys_file: str | None, config: str | None, is_json: bool) -> None:
    """List the keys by name; a key itself is never shown again."""
    _, path = _place(config, keys_file)
    try:
        found = list_keys(path)
    except KeysFileUnusable as error:
        raise Unusable(str(error)) from error
    rows = [
        {
            "name": key.id,
            "collection": key.collection,
            "scope": key.scopes[-1],
            "teams": list(key.teams),
            "budget_tokens": key.budget_tokens,
            "upstream": key.upstream,
            "created_at": key.created_at,
        }
        for key in found
    ]
    if is_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(f"there are no keys in {path}" if path.exists() else f"there is no file {path}")
        return
    print_table(
        ("name", "collection", "scope", "teams", "budget", "upstream", "since"),
        [
            [_cell(value) for value in (row | {"created_at": key.created_at[:10]}).values()]
            for key, row in zip(found, rows, strict=True)
        ],
        right=("budget",),
    )


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return "-" if value is None else str(value)


@keys.command()
@click.argument("name", metavar="NAME")
@keys_file_option
@config_option
@json_option
def revoke(name: str, keys_file: str | None, config: str | None, is_json: bool) -> None:
    """Revoke the key called NAME.

    A running gateway refuses it within a second.
    """
    _, path = _place(config, keys_file)
    try:
        was_there = revoke_key(path, name)
    except KeysFileUnusable as error:
        raise Unusable(str(error)) from error
    if not was_there:
        raise Problem(f"there is no key {name!r} in {path}")
    click.echo(json.dumps({"name": name}) if is_json else f"revoked {name}")


def _place(config: str | None, keys_file: str | None) -> tuple[Settings, Path]:
    """Return the settings and the keys file that the command works on."""
    settings = loaded_settings(config=config, keys_file=keys_file).settings
    default = user_folder("config", os.environ) / FILE_NAME
    return settings, Path(settings.keys_file or default)
