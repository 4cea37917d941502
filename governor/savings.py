"""What a budget saved, or cost, beside the whole history: tokens and money, by thread. Pure.

A small prompt that changes every turn can cost more than a long one that a warm cache holds. So
both ways are reckoned with the same prices: what went out, of which the upstream said how much it
had cached, and the client's own transcript, of which a warm cache would have held all that stood
in the transcript before it. Where an upstream says nothing of a cache, neither way gets one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million prompt tokens, in any one currency."""

    plain: float
    read: float
    """Out of the cache."""
    write: float
    """Into the cache, where the upstream takes more for that."""

    def cost(self, *, read: int, written: int, plain: int) -> float:
        return (read * self.read + written * self.write + plain * self.plain) / MILLION


@dataclass(slots=True)
class Saving:
    """The turns of one thread at one upstream."""

    thread_id: str
    upstream: str
    turn_count: int = 0
    client_tokens: int = 0
    """What the client sent, by our count."""
    forwarded_tokens: int = 0
    """What went out: the upstream's number, else our count."""
    cached_tokens: int | None = None
    """Of those, what the upstream said it had cached; None: it never said."""
    cost: float | None = 0.0
    """Of what went out; None: there is no price for some of it."""
    whole_cost: float | None = 0.0
    """Of the client's own transcripts, had they gone out."""


def cached_tokens(usage: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return how many prompt tokens an upstream read out of its cache and wrote into it; None
    where it says nothing of a cache.

    Source: `prompt_tokens_details.cached_tokens` (OpenAI, llama.cpp, vLLM), with
    `cache_write_tokens` beside it; `cache_read_input_tokens`, `cache_creation_input_tokens`
    (Anthropic); `prompt_cache_hit_tokens` (DeepSeek).
    """
    if not usage:
        return None
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    read = [
        details.get("cached_tokens"),
        usage.get("cache_read_input_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    ]
    written = [details.get("cache_write_tokens"), usage.get("cache_creation_input_tokens")]
    told = [count for count in (*read, *written) if _is_count(count)]
    if not told:
        return None
    return max(map(_count, read)), max(map(_count, written))


def savings(
    reports: Iterable[Mapping[str, Any]], prices: Callable[[str], Prices | None]
) -> list[Saving]:
    """Return what the turns of some reports, oldest first, came to; `prices` knows those of a
    model. The last used thread comes last."""
    found: dict[tuple[str, str], Saving] = {}
    before: dict[tuple[str, str], int] = {}
    for report in reports:
        if report.get("state") in {"refused", "failed"} or not report.get("client_tokens"):
            continue  # Nothing was answered, so that nothing was charged.
        key = (str(report.get("thread_id")), str(report.get("upstream")))
        saving = found.pop(key, None) or Saving(*key)
        found[key] = saving
        client, usage = _count(report["client_tokens"]), report.get("usage")
        sent = client if report.get("is_observe") else _count(report.get("prompt_tokens"))
        sent = _count((usage or {}).get("prompt_tokens")) or sent
        told = cached_tokens(usage)
        read, written = (min(told[0], sent), min(told[1], sent)) if told else (0, 0)
        saving.turn_count += 1
        saving.client_tokens += client
        saving.forwarded_tokens += sent
        if told:
            saving.cached_tokens = (saving.cached_tokens or 0) + read
        held = min(before.get(key, 0), client) if told else 0
        before[key] = client
        price = prices(str(report.get("model")))
        new = client - held
        saving.cost = _added(
            saving.cost, price, read=read, written=written, plain=sent - read - written
        )
        saving.whole_cost = _added(
            saving.whole_cost,
            price,
            read=held,
            written=new if written else 0,
            plain=0 if written else new,
        )
    return list(found.values())


def _added(
    money: float | None, price: Prices | None, *, read: int, written: int, plain: int
) -> float | None:
    if money is None or price is None:
        return None
    return money + price.cost(read=read, written=written, plain=max(0, plain))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _count(value: object) -> int:
    return value if isinstance(value, int) and _is_count(value) else 0
