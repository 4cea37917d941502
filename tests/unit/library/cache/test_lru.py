import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from library.cache.contract import Key
from library.cache.lru import ENTRY_BYTES, Lru, NearCache


def key(number: int) -> Key:
    return Key("question", number.to_bytes(16, "big"))


def test_the_longest_unused_goes_first() -> None:
    kept: Lru[str, str] = Lru(2 * (10 + ENTRY_BYTES))
    for name in ("a", "b"):
        kept.keep(name, name, value_bytes=10)
    assert kept.find("a") == "a"
    kept.keep("c", "c", value_bytes=10)
    assert (kept.find("a"), kept.find("b"), kept.find("c")) == ("a", None, "c")
    assert kept.evicted_count == 1


def test_what_is_larger_than_all_there_may_be_pushes_nothing_out() -> None:
    kept: Lru[str, str] = Lru(1_000)
    kept.keep("a", "a", value_bytes=10)
    kept.keep("b", "b", value_bytes=1_000)
    assert (kept.find("a"), kept.find("b")) == ("a", None)


def test_a_value_in_place_of_one_is_counted_once() -> None:
    kept: Lru[str, str] = Lru(10_000)
    for size_bytes in (5_000, 7_000, 10):
        kept.keep("a", "a", value_bytes=size_bytes)
    assert kept.size_bytes == 10 + ENTRY_BYTES
    kept.drop("a")
    assert (kept.size_bytes, len(kept)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 900), st.booleans()), max_size=60))
def test_it_never_holds_more_than_its_bytes_and_knows_how_many(
    steps: list[tuple[int, int, bool]],
) -> None:
    kept: Lru[int, int] = Lru(2_000)
    held: dict[int, int] = {}
    for name, size_bytes, is_kept in steps:
        if is_kept:
            kept.keep(name, size_bytes, value_bytes=size_bytes)
            held[name] = size_bytes
        else:
            kept.drop(name)
        # What is found is what was put last; whatever else may be gone.
        found = {one: value for one in range(10) if (value := kept.find(one)) is not None}
        assert all(held[one] == value for one, value in found.items())
        assert kept.size_bytes == sum(value + ENTRY_BYTES for value in found.values())
        assert kept.size_bytes <= 2_000


async def test_its_bytes_are_those_that_the_process_spends() -> None:
    for value_bytes in (100, 400, 4_000):
        cache = NearCache(1 << 30)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(2_000):
            await cache.put({key(number): number.to_bytes(value_bytes, "big")})
        spent = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert abs(cache.kept.size_bytes - spent) < 0.12 * spent, (value_bytes, spent)
