"""`retention` and `purge`: what nobody has wanted for long, and what must go for good."""

import json
from typing import Any

import click

from gateway.cli.client import ask
from gateway.cli.options import Problem, config_option, db_option, json_option, loaded_settings
from gateway.cli.pins import is_confirmed, named, told_of
from gateway.cli.records import limit_option
from gateway.cli.shelf.options import Command, collection_option
from gateway.cli.tables import one_line, print_table
from library.kinds.filter import KINDS

TEXT_CELLS = 80
_RULE = (
    click.option("--kind", type=click.Choice(KINDS), multiple=True, help="May be repeated."),
    click.option("--project", metavar="NAME", multiple=True, help="May be repeated."),
    click.option("--archive-after-days", type=float, metavar="DAYS", help="Unwanted for so long."),
    click.option("--purge-after-days", type=float, metavar="DAYS", help="Archived for so long."),
    click.option("--most-bytes", type=int, metavar="BYTES", help="Of one collection's share."),
    click.option("--most-records", type=int, metavar="COUNT", help="The same, counted."),
)


def rule_options(command: Command) -> Command:
    """Give a command the options of a rule that stands in place of the settings' rules."""
    for option in reversed(_RULE):
        command = option(command)
    return command


@click.group()
def retention() -> None:
    """Archive what nobody has wanted for long, and delete what lay in the archive long enough.

    By the rules of [retention] in the settings, or by one given with the options. What is archived
    lies compressed, is found as before, and is active again when it is opened.
    """


@retention.command()
@rule_options
@collection_option
@limit_option
@db_option
@config_option
@json_option
def preview(limit: int, db: str | None, config: str | None, is_json: bool, **rule: Any) -> None:
    """Show what `run` would do now, and why; nothing is changed."""
    settings = loaded_settings(config=config, db=db).settings
    wanted = {name: value for name, value in rule.items() if value not in (None, ())}
    plan = ask(settings, lambda library: library.get("/retention/preview", limit=limit, **wanted))
    _tell_plan(plan, is_json=is_json)


@retention.command()
@rule_options
@click.option("--dry-run", is_flag=True, help="As `preview`.")
@collection_option
@db_option
@config_option
@json_option
def run(dry_run: bool, db: str | None, config: str | None, is_json: bool, **rule: Any) -> None:
    """Do it. What is purged is deleted for good."""
    settings = loaded_settings(config=config, db=db).settings
    wanted = {name: value for name, value in rule.items() if value not in (None, ())}
    wanted |= {"dry_run": dry_run}
    done = ask(settings, lambda library: library.post_long("/retention/run", **wanted))
    if dry_run:
        _tell_plan(done, is_json=is_json)
    elif is_json:
        click.echo(json.dumps(done, indent=2))
    else:
        told = f"{done['archived']} archived, {done['restored']} restored, {done['purged']} purged"
        click.echo(f"{told}, of {done['seen']}{_kept(done)}")


@retention.command("list")
@collection_option
@limit_option
@db_option
@config_option
@json_option
def listed(
    collection: str | None, limit: int, db: str | None, config: str | None, is_json: bool
) -> None:
    """List what is archived."""
    settings = loaded_settings(config=config, db=db).settings
    asked = {"collection": collection, "limit": limit}
    found = ask(settings, lambda library: library.get("/retention/archived", **asked))
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        (
            one["id"],
            one["kind"],
            _day(one["archived_at"]),
            f"{one['plain_bytes']:,}",
            f"{one['stored_bytes']:,}",
            one_line(one["summary"] or one["title"], size=TEXT_CELLS),
        )
        for one in found["archived"]
    ]
    print_table(
        ("id", "kind", "archived", "bytes", "packed to", "about"),
        rows,
        right=("bytes", "packed to"),
        whole=("id",),
    )


@retention.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@db_option
@config_option
@json_option
def archive(ids: tuple[str, ...], db: str | None, config: str | None, is_json: bool) -> None:
    """Archive the threads and records named ID..., whatever the rules say."""
    settings = loaded_settings(config=config, db=db).settings
    done = ask(settings, lambda library: library.post_long("/retention/archive", ids=list(ids)))
    click.echo(json.dumps(done) if is_json else f"{done['archived_count']} archived")


@retention.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@db_option
@config_option
@json_option
def restore(ids: tuple[str, ...], db: str | None, config: str | None, is_json: bool) -> None:
    """Make the archived threads and records ID... active again; to open one does the same."""
    settings = loaded_settings(config=config, db=db).settings
    done = ask(settings, lambda library: library.post_long("/retention/restore", ids=list(ids)))
    click.echo(json.dumps(done) if is_json else f"{done['restored_count']} restored")


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@db_option
@config_option
@json_option
def purge(
    ids: tuple[str, ...], is_sure: bool, db: str | None, config: str | None, is_json: bool
) -> None:
    """Delete the threads and records ID... for good, archived or not, whatever keeps them.

    As `forget`, of any number at once: the files are rewritten once for all of them. The id of a
    message or a part stands for all of its thread.
    """
    settings = loaded_settings(config=config, db=db).settings
    if not is_sure:
        told = ", ".join(dict.fromkeys(map(told_of, ask(settings, lambda it: named(it, *ids)))))
        if not is_confirmed(f"Delete {told} for good?"):
            raise Problem("nothing was deleted")
    done = ask(settings, lambda library: library.post_long("/retention/purge", ids=list(ids)))
    click.echo(json.dumps(done) if is_json else f"{done['purged_count']} purged")


def _tell_plan(plan: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        click.echo(json.dumps(plan, indent=2))
        return
    rows = [
        (
            one["action"],
            one["id"],
            one["kind"],
            _day(max(one["changed_at"], one["used_at"] or "")),
            one["reason"],
            one_line(one["title"], size=TEXT_CELLS),
        )
        for one in plan["steps"]
    ]
    print_table(("what", "id", "kind", "touched", "why", "about"), rows, whole=("id",))
    told = f"{plan['archive']} to archive, {plan['restore']} to restore, {plan['purge']} to purge"
    click.echo(f"{told}, of {plan['seen']}{_kept(plan)}")


def _kept(done: dict[str, Any]) -> str:
    kept = ", ".join(f"{count} {why}" for why, count in sorted(done["kept"].items()))
    return f"; kept: {kept}" if kept else ""


def _day(moment: str) -> str:
    return moment[:10]
