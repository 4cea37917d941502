"""One owner a database, and others are told who (library/lock.py)."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from library.errors import StoreOwned, UnsuitableFileSystem
from library.lock import OwnerLock, read_owner

HOLD = """
import sys
from pathlib import Path
from library.lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]))
lock.announce("http://127.0.0.1:8765/v1")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "library.db"


def test_a_second_owner_is_told_who_the_first_is(database: Path) -> None:
    """CASES I4."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreOwned) as caught:
            OwnerLock(database)
        assert f"process {holder.pid} at http://127.0.0.1:8765/v1 since" in str(caught.value)
        owner = read_owner(database)
        assert owner is not None
        assert (owner.pid, owner.base_url) == (holder.pid, "http://127.0.0.1:8765/v1")
        holder.kill()
        holder.wait()
    assert read_owner(database) is None
    OwnerLock(database).release()


def test_two_stores_of_one_process_are_told_apart_too(database: Path) -> None:
    lock = OwnerLock(database)
    with pytest.raises(StoreOwned):
        OwnerLock(database)
    lock.release()
    lock.release()
    again = OwnerLock(database)
    assert again.owner.token != lock.owner.token
    again.release()
    assert read_owner(database) is None


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
def test_lock_and_note_are_for_their_owner_alone(database: Path) -> None:
    lock = OwnerLock(database)
    lock.announce("http://127.0.0.1:1/v1")
    for name in ("library.db.lock", "library.db.owner"):
        assert stat.S_IMODE((database.parent / name).stat().st_mode) == 0o600
    lock.release()


def test_a_lock_file_that_is_a_symlink_is_refused(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "library.db.lock").symlink_to(target)
    with pytest.raises(UnsuitableFileSystem):
        OwnerLock(database)


@pytest.mark.skipif(sys.platform != "linux", reason="a folder in which nobody can make a file")
def test_a_folder_without_room_for_a_lock_is_not_called_somebody_elses() -> None:
    with pytest.raises(UnsuitableFileSystem, match="no lock file can be made"):
        OwnerLock(Path("/proc/library.db"))


@pytest.mark.parametrize("note", ["", "{}", "[1]", '{"pid": 1, "started_at": "no", "token": 2}'])
def test_a_note_that_says_nothing_is_no_owner(database: Path, note: str) -> None:
    (database.parent / "library.db.owner").write_text(note, encoding="utf-8")
    assert read_owner(database) is None
