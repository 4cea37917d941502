"""Where a database may lie: on a local file system, under one name.

SQLite's write-ahead log needs shared memory and POSIX locks that hold. Network and foreign file
systems (NFS, SMB, 9P and drvfs under WSL, sshfs) offer them in name only, and a database there is
damaged sooner or later, so they are refused with the reason (CASES I2, WSL#2395). Behind a symlink,
or with a second name (a hard link), it would have its lock, its log and its index under each name,
and two owners would not meet.

`foreign_file_system` is pure, tested on sample texts.
"""

import os
import sys
from pathlib import Path

from library.errors import UnsuitableFileSystem

FOREIGN_TYPES = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "v9fs", "afs", "ceph", "glusterfs",
        "lustre", "beegfs", "gpfs", "davfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs",
        "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.davfs2", "fuse.glusterfs", "fuse.cephfs",
        "fuse.vmhgfs-fuse", "fuse.smbnetfs", "fuse.gvfsd-fuse",
    }
)  # fmt: skip
"""As /proc/self/mountinfo names them; local fuse systems (ntfs-3g) are left alone."""

_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def foreign_file_system(path: str, mountinfo: str) -> str | None:
    """Return the type of the foreign file system that absolute `path` lies on; None: it is local.

    `mountinfo` is the text of /proc/self/mountinfo; of several mounts on one point the last counts.
    Source: proc_pid_mountinfo(5).
    """
    best_point, best_type = "", ""
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = fields[4]
        for escape, character in _ESCAPES.items():
            point = point.replace(escape, character)
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best_point):
            best_point, best_type = point, after.split(" ", 1)[0]
    return best_type if best_type in FOREIGN_TYPES else None


def is_unc(path: str) -> bool:
    """Tell whether `path` is a Windows network path: \\\\server\\share or //server/share."""
    plain = path.replace("\\", "/")
    if plain.startswith("//?/"):
        return plain[4:8].upper() == "UNC/"
    return plain.startswith("//")


def check_file_system(path: Path, *, allow_network_fs: bool) -> list[str]:
    """Return warnings about where the database is to lie.

    Raises:
        UnsuitableFileSystem: it is a symlink or has a second name, or lies where locks do not
            hold and `allow_network_fs` is off.

    """
    if path.is_symlink():
        raise UnsuitableFileSystem(path=str(path), reason="it is a symbolic link")
    if path.exists() and path.stat().st_nlink > 1:
        reason = f"the file has {path.stat().st_nlink} names (hard links)"
        raise UnsuitableFileSystem(path=str(path), reason=reason)
    if is_unc(str(path)) and os.name == "nt":
        reason = "it is a network path (UNC)"
    elif sys.platform == "linux":
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        kind = foreign_file_system(str(_existing(path).resolve()), mountinfo)
        if kind is None:
            return []
        reason = f"it lies on a network or foreign file system ({kind}), whose locks do not hold"
    else:
        return []
    if not allow_network_fs:
        raise UnsuitableFileSystem(path=str(path), reason=reason)
    return [f"{path}: {reason}"]


def _existing(path: Path) -> Path:
    """Return the nearest folder above `path` that exists: the one it will be made in."""
    for parent in path.absolute().parents:
        if parent.exists():
            return parent
    return Path(path.anchor)
