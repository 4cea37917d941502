"""Under which names a library keeps what it shares."""

from pathlib import Path

from library.cache.opening import opened_far
from library.store.sqlite import SqliteStore

URL = "redis://127.0.0.1:1/0"


async def prefix_of(db: Path, *, keyspace: str = "") -> str:
    store = await SqliteStore.open(db)
    far = await opened_far(store, url=URL, keyspace=keyspace)
    await store.close()
    assert far is not None
    return far._prefix


async def test_a_database_has_a_random_keyspace_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    """Issue 4; what another database left is found by nobody, unless both name one keyspace."""
    one, again, other = [await prefix_of(tmp_path / name) for name in ("a.db", "a.db", "b.db")]
    assert one == again != other
    version, keyspace = one.removeprefix("library-of-context:").split(":")
    assert version.isdigit() and len(keyspace) == 16
    named = {await prefix_of(tmp_path / name, keyspace="ours") for name in ("a.db", "b.db")}
    assert named == {f"library-of-context:{version}:ours"}


async def test_without_an_address_there_is_none(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "a.db")
    assert await opened_far(store, url="", keyspace="") is None
    await store.close()
