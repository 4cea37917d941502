"""Where a database may lie (library/filesystem.py)."""

from pathlib import Path

import pytest

from library.errors import UnsuitableFileSystem
from library.filesystem import check_file_system, foreign_file_system, is_unc
from library.store.sqlite import SqliteStore

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
90 22 0:50 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\
91 22 0:51 / /mnt/nfs rw master:3 propagate_from:2 - nfs4 server:/export rw,vers=4.2
92 91 8:2 / /mnt/nfs/local rw - xfs /dev/sdb1 rw
93 22 0:52 / /home/ada/my\\040share rw - fuse.sshfs ada@host: rw
94 22 0:53 / /mnt/ntfs rw - fuseblk /dev/sdc1 rw
95 22 0:54 / /over rw - ext4 /dev/sdd1 rw
96 95 0:55 / /over rw - cifs //server/share rw
garbage
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/var/lib/library.db", None),
        ("/mnt/c/Users/ada/library.db", "9p"),
        ("/mnt/cats/library.db", None),
        ("/mnt/nfs/x", "nfs4"),
        ("/mnt/nfs/local/x", None),
        ("/home/ada/my share/x", "fuse.sshfs"),
        ("/mnt/ntfs/x", None),
        ("/over/x", "cifs"),
    ],
)
def test_the_innermost_mount_tells_whether_locks_hold(path: str, kind: str | None) -> None:
    """CASES I2 (WSL#2395)."""
    assert foreign_file_system(path, MOUNTS) == kind


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("\\\\server\\share\\x.db", True),
        ("//server/share/x.db", True),
        ("\\\\?\\UNC\\server\\share", True),
        ("\\\\?\\C:\\x.db", False),
        ("C:\\x.db", False),
        ("/x.db", False),
    ],
)
def test_network_paths_are_told_by_their_form(path: str, expected: bool) -> None:
    """CASES I2 (WSL#2395)."""
    assert is_unc(path) == expected


def test_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real.db").touch()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real.db")
    with pytest.raises(UnsuitableFileSystem, match="symbolic link"):
        check_file_system(link, allow_network_fs=True)


async def test_a_database_of_two_names_is_refused(tmp_path: Path) -> None:
    """CASES I4: under the other name another process would find neither the lock nor the log."""
    await (await SqliteStore.open(tmp_path / "library.db")).close()
    (tmp_path / "other.db").hardlink_to(tmp_path / "library.db")
    with pytest.raises(UnsuitableFileSystem, match=r"2 names \(hard links\)"):
        await SqliteStore.open(tmp_path / "other.db")
    (tmp_path / "library.db").unlink()
    await (await SqliteStore.open(tmp_path / "other.db")).close()


def test_a_foreign_file_system_is_refused_or_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("library.filesystem.foreign_file_system", lambda path, mounts: "nfs4")
    path = tmp_path / "new" / "library.db"
    with pytest.raises(UnsuitableFileSystem, match=r"library\.db cannot hold .* \(nfs4\)"):
        check_file_system(path, allow_network_fs=False)
    [warning] = check_file_system(path, allow_network_fs=True)
    assert "nfs4" in warning


async def test_a_warning_is_given_when_the_database_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CASES I2 (WSL#2395): who accepts the risk is still told of it at every start."""
    monkeypatch.setattr("library.filesystem.foreign_file_system", lambda path, mounts: "9p")
    store = await SqliteStore.open(tmp_path / "library.db", allow_network_fs=True)
    await store.close()
    assert "foreign file system (9p)" in caplog.text


def test_a_local_folder_is_fine(tmp_path: Path) -> None:
    assert check_file_system(tmp_path / "library.db", allow_network_fs=False) == []
