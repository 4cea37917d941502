"""What the contract tests share: an open store, and no blocking call on its event loop."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from blockbuster import BlockBuster, blockbuster_ctx

from library.store.sqlite import SqliteStore
from tests.contract.conversation import Client


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    with blockbuster_ctx("library") as blockbuster:
        yield blockbuster


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "library.db")
    yield opened
    await opened.close()


@pytest.fixture
def client(store: SqliteStore) -> Client:
    return Client(store)
