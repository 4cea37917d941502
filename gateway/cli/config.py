"""`library-of-context config`: every setting, and where its value came from."""

import json
import textwrap
from typing import Any, get_type_hints

import click
from msgspec import NODEFAULT, structs

from gateway.cli.options import SETTINGS_HELP, json_option, loaded_settings, settings_options
from gateway.cli.tables import print_table
from gateway.configuration import (
    FIELDS,
    FILE_NAME,
    PREFIX,
    TABLES,
    description,
    redacted,
    shown,
)
from gateway.settings import ModelSettings, Settings, UpstreamSettings

_EXAMPLE_MODEL = {
    "upstream": "mine",
    "window_tokens": 131_072,
    "budget_tokens": 16_000,
    "desk_tokens": 4_000,
    "reply_reserve_tokens": 2_048,
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
    rows = {
        name: (shown(name, getattr(loaded.settings, name)), source)
        for name, source in loaded.sources.items()
    }
    if is_json:
        values = redacted(loaded.settings)
        listed = {name: {"value": values[name], "from": rows[name][1]} for name in rows}
        click.echo(json.dumps(listed, indent=2))
        return
    print_table(("setting", "value", "from"), [(name, *texts) for name, texts in rows.items()])


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
        ("upstreams", "mine", UpstreamSettings, {"url": "http://127.0.0.1:11434/v1"}),
        ("models", '"gpt-4o*"', ModelSettings, _EXAMPLE_MODEL),
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
