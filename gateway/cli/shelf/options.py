"""Options that the commands for records share: what narrows a search, and what says what a record
is."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from library.kinds.filter import IMPORTANCES, KINDS

Command = TypeVar("Command", bound=Callable[..., Any])

collection_option = click.option(
    "--collection", metavar="NAME", help="The collection to work on [default: default]."
)
looked_into_option = click.option(
    "--collection", metavar="NAME", help="Only this one [default: every one]."
)
searched_option = click.option(
    "--collection", metavar="NAME", help="The one to search [default: that of THREAD, or default]."
)
thread_option = click.option("--thread", metavar="ID", help="For this thread alone.")
project_option = click.option("--project", metavar="NAME", help="What it belongs to.")
tag_option = click.option("--tag", "tags", metavar="TAG", multiple=True, help="May be repeated.")
importance_option = click.option(
    "--importance", type=click.Choice(IMPORTANCES), help="How much it matters [default: medium]."
)
_FILTERS = (
    click.option("--kind", type=click.Choice(KINDS), multiple=True, help="May be repeated."),
    click.option("--type", metavar="TYPE", multiple=True, help="As decision or code; repeatable."),
    click.option("--project", metavar="NAME", multiple=True, help="May be repeated."),
    click.option("--tag", metavar="TAG", multiple=True, help="All of them, where repeated."),
    click.option(
        "--source", metavar="SOURCE", multiple=True, help="A document's, or a folder ending in /."
    ),
    click.option("--importance", type=click.Choice(IMPORTANCES), help="So much at least."),
    click.option("--since", metavar="DATE", help="Said or dated then, or later."),
    click.option("--until", metavar="DATE", help="Said or dated then, or earlier."),
)
FILTER_NAMES = ("kind", "type", "project", "tag", "source", "importance", "since", "until")


def filter_options(command: Command) -> Command:
    """Give a command the options that narrow a search, under the names of the HTTP parameters."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the filter's options that were given, as parameters."""
    return {name: value for name in FILTER_NAMES if (value := options.get(name))}
