from hypothesis import given
from hypothesis import strategies as st

from governor.counting.cache import ENTRY_BYTES, CountCache


def test_a_text_is_found_again_whatever_object_holds_it() -> None:
    cache = CountCache(1_000_000)
    salt = cache.salt("a")
    cache.put(salt, "some text", 2)
    assert cache.get(salt, "".join(["some", " text"])) == 2
    assert cache.get(salt, "some test") is None
    assert (cache.hits, cache.misses) == (1, 1)


def test_counts_of_two_tokenizers_are_kept_apart() -> None:
    cache = CountCache(1_000_000)
    cache.put(cache.salt("a"), "text", 1)
    cache.put(cache.salt("b"), "text", 2)
    assert cache.get(cache.salt("a"), "text") == 1
    assert cache.get(cache.salt("b"), "text") == 2


@given(st.lists(st.integers(0, 200), max_size=300))
def test_a_cache_may_lose_but_never_lies_and_keeps_its_limit(texts: list[int]) -> None:
    limit = 20 * ENTRY_BYTES
    cache = CountCache(limit)
    salt = cache.salt("a")
    for number in texts:
        found = cache.get(salt, str(number))
        assert found in (None, number)
        if found is None:
            cache.put(salt, str(number), number)
        assert cache.size_bytes <= limit


def test_what_is_used_outlives_what_is_not() -> None:
    cache = CountCache(100 * ENTRY_BYTES)
    salt = cache.salt("a")
    cache.put(salt, "used", 1)
    for number in range(500):
        cache.put(salt, f"once {number}", number)
        assert cache.get(salt, "used") == 1
    assert cache.get(salt, "once 0") is None
