"""A file system that is soon full, to mount in a test."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, size_mb: int) -> Iterator[Path]:
    """Mount a tmpfs of that size at a new folder, for the length of the block."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "tmpfs", str(folder)]
    try:
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:  # No mount(8): not Linux.
        is_mounted = False
    if not is_mounted:
        pytest.skip("a small disk is a tmpfs, which only root on Linux may mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
