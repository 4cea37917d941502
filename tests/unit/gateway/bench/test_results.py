"""What is kept between runs, and what ends it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.bench.results import MOST_AGE, Finished, keep, kept, place, tidy
from gateway.bench.scoring import Answered, Laid

LAID = Laid(tokens=5, record_count=1, whole=("a",), parts=(), ms=1.5, is_first=True)
FINISHED = Finished("talk", 2.5, (Answered("q", "all", ("a",), {512: LAID}),))


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    path = place(tmp_path / "results", ("data", "method"))
    assert kept(path) is None
    keep(path, FINISHED)
    assert kept(path) == FINISHED
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_other_causes_have_another_place(tmp_path: Path) -> None:
    causes = [("data", "method"), ("data", "other"), ("data", ""), ("datamethod",)]
    assert len({place(tmp_path, one) for one in causes}) == len(causes)


def test_what_cannot_be_read_is_asked_again(tmp_path: Path) -> None:
    path = place(tmp_path, ("data",))
    path.write_bytes(b'{"conversation": "ta')
    assert kept(path) is None


def test_what_nobody_used_for_a_week_goes(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    old = (now - MOST_AGE - timedelta(hours=1)).timestamp()
    used, unused, folder = place(tmp_path, ("a",)), place(tmp_path, ("b",)), tmp_path / "replay"
    keep(used, FINISHED)
    keep(unused, FINISHED)
    folder.mkdir()
    (folder / "library.db").touch()
    for path in (used, unused, folder):
        os.utime(path, (old, old))
    assert kept(used) == FINISHED
    tidy(tmp_path, now=now)
    assert [*tmp_path.iterdir()] == [used]
    tidy(tmp_path / "none", now=now)
