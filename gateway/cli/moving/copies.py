"""`library-of-context backup` and `restore`: the whole database, in one file.

Neither asks the gateway: the copy is read from the file itself, beside its owner, and a database is
only replaced when nobody owns it.
"""

import json
import shutil
from pathlib import Path

import click

from gateway.cli.moving.identity import identity_of
from gateway.cli.options import (
    Problem,
    Unusable,
    config_option,
    db_option,
    json_option,
    loaded_settings,
)
from gateway.cli.progress import progress
from library.errors import LibraryError
from library.lock import OwnerLock
from library.store.moving.backup import back_up, put_aside, table_names
from library.verify import verify

OURS = {"event", "thread", "outbox"}


@click.command()
@click.argument("target", metavar="FILE")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@db_option
@config_option
@json_option
def backup(target: str, force: bool, db: str | None, config: str | None, is_json: bool) -> None:
    """Copy the database to FILE as it is at this moment, beside a running gateway or without one.

    The copy is one file, readable by you alone. `verify --db FILE` checks it, and `restore FILE`
    puts it back. The index is not in it: it is made again.
    """
    database = Path(loaded_settings(config=config, db=db).settings.db)
    path = Path(target)
    if not database.exists():
        raise Problem(f"there is no database {database} yet; `serve` makes it")
    if path.exists() and not force:
        raise Problem(f"{path} exists; --force overwrites it")
    if path.exists() and path.samefile(database):
        raise Problem(f"{path} is the database itself")
    try:
        with progress(is_quiet=is_json) as tell:
            size_bytes = back_up(database, path, lambda share: tell(share, "copied"))
    except LibraryError as error:
        raise Unusable(str(error)) from error
    if is_json:
        click.echo(json.dumps({"file": str(path), "size_bytes": size_bytes}, indent=2))
    else:
        click.echo(f"{size_bytes / 1e6:,.1f} MB copied to {path}")


@click.command()
@click.argument("source", metavar="FILE")
@click.option("--force", is_flag=True, help="Even where there is a database: that is put aside.")
@db_option
@config_option
@json_option
def restore(source: str, force: bool, db: str | None, config: str | None, is_json: bool) -> None:
    """Check the backup in FILE, digest by digest, and put it in the database's place.

    The gateway must not be running. A database that is there stays beside the new one, under
    another name.
    """
    database = Path(loaded_settings(config=config, db=db).settings.db)
    path = Path(source)
    if not path.is_file():
        raise Problem(f"there is no {path}")
    if database.exists() and path.samefile(database):
        raise Problem(f"{path} is the database itself")
    if database.exists() and not force:
        raise Problem(f"{database} exists; --force puts it aside")
    try:
        _check(path)
        lock = OwnerLock(database)
        try:
            aside = _replace(path, database, is_quiet=is_json)
        finally:
            lock.release()
    except LibraryError as error:
        raise Unusable(str(error)) from error
    if is_json:
        told = {"database": str(database), "put_aside": str(aside) if aside else None}
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"{path} is now {database}")
    if aside is not None:
        click.echo(f"what was there is now {aside}")


def _check(path: Path) -> None:
    """See that a file is a sound database of ours."""
    if not table_names(path) >= OURS:
        raise Problem(f"{path} is no backup of this program")
    broken = verify(path, identify=identity_of).first_break
    if broken is not None:
        raise Problem(f"{path} is damaged: {broken.kind}, {broken.where}: {broken.detail}")


def _replace(path: Path, database: Path, *, is_quiet: bool) -> Path | None:
    """Put a copy of the backup in the database's place; return where that is now."""
    fresh = database.with_name(f"{database.name}.restored")
    with progress(is_quiet=is_quiet) as tell:
        back_up(path, fresh, lambda share: tell(share, "copied"))
    aside = put_aside(database)
    # It was made of another state, and would be taken for one of this database.
    shutil.rmtree(database.with_name(f"{database.name}.index"), ignore_errors=True)
    fresh.replace(database)
    return aside
