"""The command `library-of-context`.

A command's module is imported when that command is run, not before: `serve` must answer within
1.5 s of its start, and all modules together take a second. That is why the list of commands has
texts of its own.
"""

import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

NAME = "library-of-context"
COMMANDS = {
    "serve": ("serve", "Start the gateway."),
    "run": ("cli.running.run", "Run a program with the gateway in front of its model."),
    "demo": ("demo", "Show, on this machine alone, what the gateway does."),
    "doctor": (
        "cli.checking.doctor",
        "Check this machine and the settings, with a fix for every problem.",
    ),
    "config": ("config", "Print every setting with its value and where it came from."),
    "keys": ("keys", "Add, list and revoke gateway keys."),
    "status": ("status", "Print what is recorded, what waits to be indexed, what is stuck."),
    "reports": ("reports", "Print what each request sent, left out and recalled, and why."),
    "savings": ("cli.paging.savings", "Print what the budget saved or cost, in tokens and money."),
    "threads": ("records", "List threads, the last used first."),
    "sessions": ("cli.shelf.overview", "List conversations by name, or those that begin so."),
    "domains": ("cli.shelf.overview", "List projects, types and tags, to search with."),
    "events": ("records", "List the stored messages of a thread."),
    "search": ("records", "Find records as a request would."),
    "consult": ("records", "The same as search."),
    "grep": ("records", "Find lines that hold a pattern, or nearly some words."),
    "desk": ("cli.paging.desk", "List what lies on a thread's desk, or have it laid out afresh."),
    "pin": ("pins", "Keep a message in every prompt, or list what is kept."),
    "unpin": ("pins", "Let go of a pinned message."),
    "forget": ("pins", "Delete a thread, a record or a collection for good."),
    "remember": ("cli.shelf.insights", "Remember one fact, decision, preference, todo or rule."),
    "recall": ("cli.shelf.insights", "Find what was remembered, or list it."),
    "update": ("cli.shelf.insights", "Change what was remembered; older wording is kept."),
    "shelve": ("cli.shelf.documents", "Put a text by: a piece of a session, a snapshot, a log."),
    "shelve-document": ("cli.shelf.documents", "Shelve files and folders, to be found by part."),
    "promote": ("cli.shelf.promoting", "Copy a record to its project or a team, or take it back."),
    "open": ("cli.shelf.documents", "Print a record or a message, or some lines of it."),
    "retention": (
        "cli.shelf.retention",
        "Archive what nobody has wanted for long; list, restore, preview.",
    ),
    "purge": ("cli.shelf.retention", "Delete threads and records for good, several at once."),
    "prepare": ("cli.shelf.turns", "Record what a user says, and print what to send the model."),
    "commit": ("cli.shelf.turns", "Record what the model answered to a prepared turn."),
    "import": ("cli.moving.importing", "Take in conversations of other programs, or an export."),
    "mcp": ("mcp.command", "Serve memory to agents over MCP, on standard input and output."),
    "export": ("cli.moving.exporting", "Write everything to JSON lines, or to Markdown."),
    "backup": ("cli.moving.copies", "Copy the database, also while the gateway runs."),
    "restore": ("cli.moving.copies", "Put a backup in the database's place."),
    "stats": ("cli.moving.stats", "Count what is stored."),
    "reembed": ("cli.moving.stats", "Embed what is owed, or everything anew, and wait for it."),
    "hook": ("hooks.command", "Hooks for Claude Code: save, brief, remind; install them."),
    "model": ("model", "Show, check or install the embedding model."),
    "verify": ("verify", "Check everything stored against its digests."),
    "bench": ("bench.command", "Measure what is found, on conversations with labelled questions."),
}
"""Command -> the module that holds it under its own name (of this folder, or of the gateway's when
there is a dot in it), and what the list of commands says."""

EXIT_CODES = """Exit codes: 0 done; 1 a problem was found, or what was named does not exist;
2 the command line or a setting is wrong; 3 the gateway or its database cannot be used now;
130 stopped with Ctrl-C; 141 who read the output in a pipe has gone."""


class ReaderGone(Exception):
    """Who read the output in a pipe has gone (`... | head`)."""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = COMMANDS[cmd_name][0]
        place = f"gateway.{module}" if "." in module else f"gateway.cli.{module}"
        name = cmd_name.replace("-", "_")
        command = getattr(
            import_module(place), f"{name}_" if iskeyword(name) or name == "open" else name
        )
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would end with code 1.
            raise ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name=NAME)
def cli() -> None:
    """An OpenAI-compatible proxy that gives every chat a fixed context budget.

    Start it with `serve`, set OPENAI_BASE_URL to the address it prints, and chat on.
    """


def main() -> None:
    """Run the command line and exit with a code of `EXIT_CODES`."""
    try:
        outcome: Any = cli.main(prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except (ReaderGone, BrokenPipeError):
        # Python's own flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(outcome if isinstance(outcome, int) else 0)


if __name__ == "__main__":
    main()
