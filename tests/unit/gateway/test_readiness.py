"""Ready means: a request sent now would be served."""

from typing import Any, cast

from gateway.readiness import PROBE_FRESH_S, TRY_AGAIN_S, Readiness
from library.errors import StoreUnavailable
from library.library import Library
from tests.unit.gateway.peers import Upstream


class Store:
    def __init__(self) -> None:
        self.is_full = True
        self.tries = 0

    async def set_meta(self, key: str, value: str) -> None:
        self.tries += 1
        if self.is_full:
            raise StoreUnavailable("full")


class Shelf:
    def __init__(self) -> None:
        self.store = Store()


class Probed(Upstream):
    problem: str | None = None
    probes = 0

    async def probe(self) -> str | None:
        self.probes += 1
        return self.problem


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_a_failed_write_is_remembered_until_one_succeeds() -> None:
    clock, shelf, upstream = Clock(), Shelf(), Probed()
    library = cast("Library", cast("Any", shelf))
    readiness = Readiness(clock)
    assert await readiness.missing(library, upstream) == []
    readiness.write_failed("disk full")
    assert await readiness.missing(library, upstream) == ["library: disk full"]
    assert (shelf.store.tries, readiness.store_problem) == (0, "disk full")
    clock.now_s += TRY_AGAIN_S + 1
    assert await readiness.missing(library, upstream) == ["library: the store cannot write (full)"]
    clock.now_s += TRY_AGAIN_S + 1
    shelf.store.is_full = False
    assert await readiness.missing(library, upstream) == []
    readiness.write_failed("disk full")
    readiness.write_succeeded()
    assert await readiness.missing(library, upstream) == []


async def test_the_upstream_is_not_asked_more_often_than_needed() -> None:
    clock, upstream = Clock(), Probed()
    library = cast("Library", cast("Any", Shelf()))
    readiness = Readiness(clock)
    upstream.problem = "gone"
    for _ in range(5):
        assert await readiness.missing(library, upstream) == ["upstream: gone"]
    assert upstream.probes == 1
    clock.now_s += PROBE_FRESH_S + 1
    upstream.problem = None
    assert await readiness.missing(library, upstream) == []
