"""Options that several commands take, the settings' own flags among them, and their errors."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gateway.configuration import (
    FIELDS,
    TABLES,
    Loaded,
    SettingsError,
    base_type,
    choices,
    description,
    flag,
    load,
    shown,
)
from gateway.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

SETTINGS_HELP = """Every option can also be set in the environment as LIBRARY_OF_CONTEXT_ and its
name in capitals, or in library-of-context.toml; the option wins over the environment, and that
over the file."""


class Problem(click.ClickException):
    """What was asked for does not exist or is not in order; exit code 1. `code` is the gateway's
    word for it, where it said one."""

    exit_code = 1

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Mistake(click.ClickException):
    """The command line or a setting is wrong; exit code 2."""

    exit_code = 2


class Unusable(click.ClickException):
    """The gateway or its database cannot be used now; exit code 3."""

    exit_code = 3


config_option = click.option(
    "--config",
    metavar="FILE",
    help="Settings file [default: LIBRARY_OF_CONTEXT_CONFIG, ./library-of-context.toml, the "
    "user's configuration folder].",
)
db_option = click.option(
    "--db", metavar="FILE", help="Database file [default: as `library-of-context config` says]."
)
json_option = click.option("--json", "is_json", is_flag=True, help="Print JSON, for programs.")


def settings_options(command: Command) -> Command:
    """Give a command one option a setting, and --config."""
    defaults = Settings()
    for name, annotation in reversed(FIELDS.items()):
        if name in TABLES:
            continue
        default = getattr(defaults, name)
        text = description(annotation)
        if default not in ("", ()):
            text += f" [default: {shown(name, default)}]"
        if base_type(annotation) is bool:
            negated = f"--no-{name.replace('_', '-')}"
            option = click.option(f"{flag(name)}/{negated}", name, default=None, help=text)
        else:
            # A plain string to click: the settings' own check is the only one, and says where.
            option = click.option(flag(name), name, metavar=metavar(annotation), help=text)
        command = option(command)
    return config_option(command)


def metavar(annotation: Any) -> str:
    """Return how a value of this field is written in help."""
    if listed := choices(annotation):
        return f"[{'|'.join(listed)}]"
    names = {int: "INTEGER", float: "NUMBER", tuple[str, ...]: "A,B,..."}
    return names.get(base_type(annotation), "TEXT")


def loaded_settings(*, config: str | None, **flags: object) -> Loaded:
    """Load all settings, or end the command with the one line that says what is wrong."""
    try:
        return load(flags=flags, environ=os.environ, config=config)
    except SettingsError as error:
        raise Mistake(str(error)) from error
