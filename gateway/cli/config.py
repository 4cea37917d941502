"""`library-of-context config`: every setting, and where its value came from."""

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import click
from msgspec import NODEFAULT, Struct, structs

from gateway.cli.client import otherwise_set
from gateway.cli.options import (
    SETTINGS_HELP,
    json_option,
    loaded_settings,
    settings_options,
)
from gateway.cli.tables import print_table
from gateway.configuration import (
    FIELDS,
    FILE_NAME,
    PREFIX,
    TABLES,
    Loaded,
    description,
    redacted,
    shown,
)
from gateway.retention.settings import RetentionRule
from gateway.served import ModelSettings, UpstreamSettings
from gateway.settings import AUTO, Settings
from gateway.upstream.discovery import choose

_EXAMPLE_UPSTREAM = {
    "url": "http://127.0.0.1:11434/v1",
    "budget_tokens": 16_000,
    "lookup_rounds": 4,
}
_EXAMPLE_MODEL = {
    "upstream": "mine",
    "window_tokens": 131_072,
    "budget_tokens": 16_000,
    "desk_tokens": 4_000,
    "reply_reserve_tokens": 2_048,
    "lookup_rounds": 4,
    "price": 2.5,
    "cache_read_price": 0.25,
    "cache_write_price": 3.125,
}
_EXAMPLE_RULE: Mapping[str, object] = {
    "kinds": ("chat",),
    "archive_after_days": 90.0,
    "purge_after_days": 365.0,
    "most_bytes": 10**9,
    "most_records": 10_000,
}
"""TOML has no null, so what is unset by default is shown by an example."""


@click.command(epilog=SETTINGS_HELP)
@click.option("--example", is_flag=True, help="Print a settings file with everything explained.")
@json_option
@settings_options
def config(example: bool, is_json: bool, config: str | None, **flags: object) -> None:
    """Print every setting with its value and where it came from.

    Takes the options of `serve`, to show what they would give.
    """
    if example:
        click.echo(example_toml(), nl=False)
        return
    loaded = loaded_settings(config=config, **flags)
    if is_json:
        values = redacted(loaded.settings)
        listed = {
            name: {"value": values[name], "from": source} for name, source in loaded.sources.items()
        }
        click.echo(json.dumps(listed, indent=2))
        return
    print_table(("setting", "value", "from"), _rows(loaded))
    kinds = {
        source.partition(" ")[0]: source.partition(" ")[2] for source in loaded.sources.values()
    }
    if "file" in kinds:
        click.echo(f"\nfile         {kinds['file']}")
    if "environment" in kinds:
        click.echo(f"\nenvironment  {PREFIX} and the setting's name in capitals")
    if others := otherwise_set(loaded.settings):
        click.echo(f"\nThe gateway that runs on this database has {others}.", err=True)


def _rows(loaded: Loaded) -> Iterator[tuple[str, str, str]]:
    """Yield every setting, and every row of a table with what it sets; where each is from, in one
    word: paths and variables would not fit."""
    for name, source in loaded.sources.items():
        place = source.partition(" ")[0]
        value = getattr(loaded.settings, name)
        if name in TABLES and value:
            for key, row in redacted(loaded.settings)[name].items():
                yield f"{name}.{key}", _set_values(row, type(value[key])), place
        elif value == AUTO and name == "upstream":
            chosen = choose(loaded.settings, environ=os.environ)
            yield name, f"auto: {chosen.settings.upstream} ({chosen.reason})", place
        else:
            yield name, shown(name, value), place


def _set_values(row: Mapping[str, Any], kind: type[Struct]) -> str:
    """Return what a table's row sets: a URL is its first field and needs no name."""
    defaults = {field.name: field.default for field in structs.fields(kind)}
    return ", ".join(
        str(value) if name == "url" else f"{name} {_toml(value)}"
        for name, value in row.items()
        if value != defaults[name]
    )


def example_toml() -> str:
    """Return a settings file that explains everything and, as it stands, changes nothing."""
    defaults = Settings()
    lines = [
        f"# {FILE_NAME}: every setting with its default. Read from --config FILE,",
        "# LIBRARY_OF_CONTEXT_CONFIG, this folder, or the user's configuration folder. A value in",
        f"# the environment ({PREFIX} and the name in capitals) wins, and a flag over both.",
        "# Made by: library-of-context config --example",
    ]
    for name, annotation in FIELDS.items():
        if name not in TABLES:
            lines += ["", *_explained(annotation), f"# {name} = {_toml(getattr(defaults, name))}"]
    for name, key, row, values in (
        ("upstreams", "mine", UpstreamSettings, _EXAMPLE_UPSTREAM),
        ("models", '"gpt-4o*"', ModelSettings, _EXAMPLE_MODEL),
        ("retention", "old-chats", RetentionRule, _EXAMPLE_RULE),
    ):
        lines += ["", *_explained(FIELDS[name]), f"# [{name}.{key}]"]
        hints = get_type_hints(row, include_extras=True)
        for field in structs.fields(row):
            value = values.get(field.name, field.default)
            assert value is not NODEFAULT and value is not None, field.name
            lines += [*_explained(hints[field.name]), f"# {field.name} = {_toml(value)}"]
    return "\n".join(lines) + "\n"


def _explained(annotation: Any) -> list[str]:
    return [f"## {line}" for line in textwrap.wrap(description(annotation), 94)]


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(value)  # Text, numbers and booleans are written alike in both.
