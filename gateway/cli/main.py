"""The command `library-of-context`.

Each command's module is imported when the command is run, not before: `serve` must answer within
1.5 s of its start, and rich, httpx and the client commands would cost a third of that.
"""

import os
import sys
from importlib import import_module
from typing import Any

import click

COMMANDS = {
    "serve": "gateway.cli.serve",
    "demo": "gateway.cli.demo",
    "doctor": "gateway.cli.doctor",
    "config": "gateway.cli.config",
    "keys": "gateway.cli.keys",
    "status": "gateway.cli.status",
    "reports": "gateway.cli.reports",
    "threads": "gateway.cli.records",
    "events": "gateway.cli.records",
    "search": "gateway.cli.records",
    "pin": "gateway.cli.pins",
    "unpin": "gateway.cli.pins",
    "forget": "gateway.cli.pins",
    "verify": "gateway.cli.verify",
}
"""Command -> the module that holds it under its own name; in the order of the help."""

EXIT_CODES = """Exit codes: 0 done; 1 a problem was found, or what was named does not exist;
2 the command line or a setting is wrong; 3 the gateway or its database cannot be used now;
130 stopped with Ctrl-C."""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="library-of-context")
def cli() -> None:
    """An OpenAI-compatible proxy that gives every chat a fixed context budget.

    Start it with `serve`, set OPENAI_BASE_URL to the address it prints, and chat on.
    """


def main() -> None:
    """Run the command line and exit with a code of `EXIT_CODES`."""
    try:
        outcome: Any = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe has gone (`... | head`); Python's own flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(outcome if isinstance(outcome, int) else 0)


if __name__ == "__main__":
    main()
