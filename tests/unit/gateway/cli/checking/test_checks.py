"""gateway/cli/checking/checks.py: each thing `doctor` looks at, in order and out of order."""

import os
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.cli.checking import checks
from gateway.cli.checking.checks import (
    Finding,
    check_database,
    check_keys_file,
    check_place,
    check_port,
    owner_of,
)
from gateway.cli.checking.doctor import lines
from gateway.settings import Settings
from library.filesystem import check_file_system
from library.lock import Owner, OwnerLock
from library.store.migrations import migrate


def owner(base_url: str | None) -> Owner:
    return Owner(
        pid=4_242, started_at=datetime(2026, 1, 1, tzinfo=UTC), token="t", base_url=base_url
    )


def test_a_free_port_is_in_order() -> None:
    assert not check_port(Settings(port=0), None).is_problem
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    assert not check_port(Settings(port=port), None).is_problem


def test_a_port_held_by_the_gateway_of_this_database_is_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        finding = check_port(Settings(port=port), owner(f"http://127.0.0.1:{port}/v1"))
    assert not finding.is_problem
    assert "4242" in finding.text


def test_where_a_gateway_runs_on_the_database_no_other_port_is_looked_at() -> None:
    """`doctor --db` said that the default port was taken: by the gateway of another database."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        finding = check_port(Settings(port=port), owner("http://127.0.0.1:4242/v1"))
    assert not finding.is_problem
    assert finding.text.startswith("127.0.0.1:4242: the gateway of this database")


def test_a_port_held_by_another_program_names_it_and_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        finding = check_port(Settings(port=port), None)
    assert str(port) in finding.text
    assert "--port" in finding.fix


def test_a_place_on_a_local_disk_is_in_order(tmp_path: Path) -> None:
    found = check_place(Settings(db=str(tmp_path / "new" / "library.db")))
    assert [finding for finding in found if finding.is_problem] == []


def test_a_symlink_is_no_place_for_a_database(tmp_path: Path) -> None:
    (tmp_path / "real.db").touch()
    (tmp_path / "library.db").symlink_to(tmp_path / "real.db")
    (found,) = check_place(Settings(db=str(tmp_path / "library.db")))
    assert found.is_problem


def test_a_network_file_system_that_was_allowed_is_still_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES I2 (WSL#2395)."""

    def warned(path: Path, *, allow_network_fs: bool) -> list[str]:
        assert allow_network_fs
        return [*check_file_system(path, allow_network_fs=True), "it is far away"]

    monkeypatch.setattr(checks, "check_file_system", warned)
    found = check_place(Settings(db=str(tmp_path / "library.db"), allow_network_fs=True))
    assert [finding.text for finding in found if finding.is_problem] == ["it is far away"]


def test_a_full_disk_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FREE_BYTES_MIN", 2**80)
    found = check_place(Settings(db=str(tmp_path / "library.db")))
    assert [finding.what for finding in found if finding.is_problem] == ["disk"]


def test_a_folder_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # Root may write anywhere.
    found = check_place(Settings(db=str(tmp_path / "library.db")))
    assert "cannot be written" in next(finding.text for finding in found if finding.is_problem)


def test_a_database_yet_to_be_made_is_in_order(tmp_path: Path) -> None:
    assert not check_database(Settings(db=str(tmp_path / "library.db")), None).is_problem


def test_a_database_that_others_can_read_is_a_problem(tmp_path: Path) -> None:
    database = tmp_path / "library.db"
    database.touch()
    database.chmod(0o644)
    finding = check_database(Settings(db=str(database)), None)
    assert finding.fix == f"chmod 600 {database}"
    database.chmod(0o600)
    assert not check_database(Settings(db=str(database)), None).is_problem


def test_a_file_that_is_no_database_is_a_problem(tmp_path: Path) -> None:
    database = tmp_path / "library.db"
    database.touch(mode=0o600)
    assert not check_database(Settings(db=str(database)), None).is_problem
    database.write_text("garbage", encoding="utf-8")
    finding = check_database(Settings(db=str(database)), None)
    assert "no SQLite database" in finding.text
    assert finding.is_problem


def test_a_database_of_another_user_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "library.db"
    database.touch(mode=0o600)
    monkeypatch.setattr(os, "getuid", lambda: database.stat().st_uid + 1)
    finding = check_database(Settings(db=str(database)), None)
    assert finding.fix.startswith("chown ")


def test_a_database_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "library.db"
    database.touch(mode=0o600)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert check_database(Settings(db=str(database)), None).fix == f"chmod 600 {database}"


def test_the_owner_of_a_database_is_named(tmp_path: Path) -> None:
    database = tmp_path / "library.db"
    settings = Settings(db=str(database))
    assert owner_of(settings) is None
    database.touch(mode=0o600)
    lock = OwnerLock(database)
    try:
        found = owner_of(settings)
        assert found is not None
        assert str(os.getpid()) in check_database(settings, found).text
    finally:
        lock.release()
    assert "nobody" in check_database(settings, owner_of(settings)).text


def test_a_keys_file_must_exist_and_be_private(tmp_path: Path) -> None:
    assert not check_keys_file(Settings()).is_problem
    path = tmp_path / "keys.json"
    settings = Settings(keys_file=str(path))
    assert "keys add" in check_keys_file(settings).fix
    path.touch()
    path.chmod(0o640)
    assert check_keys_file(settings).fix == f"chmod 600 {path}"
    path.chmod(0o600)
    assert not check_keys_file(settings).is_problem


def test_a_finding_fits_80_columns_and_its_fix_stands_below() -> None:
    told = lines(Finding("database", "it cannot be read " * 9, "chmod 600 it"))
    assert told[0].startswith("x   database  it cannot")
    assert max(map(len, told)) <= 80
    assert told[-1] == f"{'':<14}fix: chmod 600 it"
    assert lines(Finding("port", "is free")) == ["ok  port      is free"]


def test_a_database_of_another_version_is_a_problem_with_a_fix(tmp_path: Path) -> None:
    """It was called healthy, and every request to it failed."""
    settings, files = Settings(db=str(tmp_path / "library.db")), ("library.db",)
    database = Path(settings.db)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        migrate(connection)
        database.chmod(0o600)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert not check_database(settings, None).is_problem
    assert tuple(path.name for path in tmp_path.iterdir()) == files, "it looked, and made no file"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("ALTER TABLE turn RENAME COLUMN upstream TO place")
    found = check_database(settings, None)
    assert found.text.endswith("is of another version: no column turn.upstream")
    assert "export" in found.fix
