import pytest

from governor.savings import Prices, cached_tokens, savings

PRICES = Prices(plain=1.0, read=0.1, write=1.25)


def report(client: int, sent: int, cached: int | None = None, **more: object) -> dict[str, object]:
    usage = {"prompt_tokens": sent}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}  # type: ignore[assignment]
    return {
        "thread_id": "t",
        "upstream": "u",
        "model": "m",
        "state": "done",
        "client_tokens": client,
        "prompt_tokens": sent,
        "usage": usage,
    } | more


def test_tokens_that_were_sent_forwarded_and_cached_are_summed_by_thread_and_upstream() -> None:
    reports = [
        report(9_000, 7_000, 0),
        report(9_500, 7_200, 6_000),
        report(500, 500, thread_id="other"),
        report(800, 800, upstream="elsewhere"),
    ]
    found = {(one.thread_id, one.upstream): one for one in savings(reports, lambda _: None)}
    ours = found["t", "u"]
    assert (ours.turn_count, ours.client_tokens, ours.forwarded_tokens) == (2, 18_500, 14_200)
    assert ours.cached_tokens == 6_000
    assert found["other", "u"].cached_tokens is None
    assert ours.cost is None is ours.whole_cost
    assert len(found) == 3


def test_the_money_is_told_each_way_and_a_small_desk_can_cost_more() -> None:
    """Issue 4: so that a user can see when a smaller desk costs more."""
    reports = [report(10_000, 8_000, 0), report(10_100, 8_000, 0), report(10_200, 8_000, 0)]
    (ours,) = savings(reports, lambda _: PRICES)
    assert ours.cost == pytest.approx(0.024)
    assert ours.whole_cost == pytest.approx((10_000 + 200 + 0.1 * (10_000 + 10_100)) / 1e6)
    assert ours.whole_cost < ours.cost  # type: ignore[operator]


def test_without_a_word_of_a_cache_neither_way_has_one() -> None:
    (ours,) = savings([report(10_000, 8_000), report(10_000, 8_000)], lambda _: PRICES)
    assert ours.cost == pytest.approx(0.016)
    assert ours.whole_cost == pytest.approx(0.02)


def test_what_is_written_into_a_cache_costs_what_writing_costs() -> None:
    usage = {
        "prompt_tokens": 8_000,
        "cache_read_input_tokens": 5_000,
        "cache_creation_input_tokens": 2_000,
    }
    (ours,) = savings([report(8_000, 8_000, usage=usage)], lambda _: PRICES)
    assert ours.cost == pytest.approx((0.1 * 5_000 + 1.25 * 2_000 + 1_000) / 1e6)
    assert ours.whole_cost == pytest.approx(1.25 * 8_000 / 1e6)


def test_what_was_refused_or_failed_costs_nothing_and_observing_sends_the_whole() -> None:
    reports = [report(9_000, 0, state="refused"), report(9_000, 7_000, state="failed")]
    assert savings(reports, lambda _: PRICES) == []
    observed = report(9_000, 7_000, is_observe=True, usage=None)
    assert savings([observed], lambda _: PRICES)[0].forwarded_tokens == 9_000


@pytest.mark.parametrize(
    ("usage", "told"),
    (
        (None, None),
        ({}, None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": None}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, (0, 0)),
        ({"prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 2}}, (7, 2)),
        ({"prompt_cache_hit_tokens": 7}, (7, 0)),
        ({"cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}, (7, 2)),
        ({"prompt_cache_hit_tokens": "7", "cache_read_input_tokens": -1}, None),
        ({"prompt_cache_hit_tokens": True}, None),
    ),
)
def test_what_upstreams_say_of_their_caches_is_read(
    usage: dict[str, object] | None, told: tuple[int, int] | None
) -> None:
    assert cached_tokens(usage) == told
