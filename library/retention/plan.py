"""What a run would do, worked out from plain data. Pure: reads no clock and no store.

Nothing goes from active to purged in one run: a thread lies in the archive in between, where it is
found and can be restored. What was used or written to since it was archived is made active again.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from library.kinds.filter import IMPORTANCES, Importance
from library.retention.holding import Holding
from library.retention.policy import Immunity, Policy, Rule

Action = Literal["restore", "archive", "purge"]
PACKED_SHARE = 0.4
"""Of its size, what a thread is reckoned to take once it is archived, until that is known: .23 of
BEAM, .28 of tau-bench, .31 of LoCoMo, .38 of BFCL's user turns (2026-11-30)."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one thread, and why."""

    action: Action
    holding: Holding
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do, in this order."""

    steps: tuple[Step, ...]
    kept: Mapping[str, int]
    """How many threads that a rule is for are immune, by why."""
    seen_count: int
    """Threads that were looked at."""

    def of(self, action: Action) -> list[Holding]:
        """Return the threads to which that would be done."""
        return [step.holding for step in self.steps if step.action == action]


def planned(
    holdings: Sequence[Holding], policy: Policy, *, now: datetime, worded: frozenset[int]
) -> Plan:
    """Return what to do; `worded` has the numbers of threads that say a word which is kept."""
    immune = {one.no: why for one in holdings if (why := _immune(one, policy.immunity, worded))}
    # A chat takes the records that it alone finds with it.
    for one in holdings:
        if one.owner_no is not None and one.no in immune:
            immune.setdefault(one.owner_no, "its records")
    steps: list[Step] = []
    kept: Counter[str] = Counter()
    ruled: dict[tuple[int, int], list[Holding]] = defaultdict(list)
    for one in holdings:
        number = next((at for at, rule in enumerate(policy.rules) if rule.matches(one)), None)
        if one.is_wanted_again:
            steps.append(Step("restore", one, "used since it was archived"))
        elif number is not None:
            ruled[one.collection_id, number].append(one)
            kept.update([immune[one.no]] if one.no in immune else [])
    for (_, number), members in sorted(ruled.items()):
        free = [one for one in members if one.no not in immune]
        steps += _of_rule(policy.rules[number], members, free, now=now)
    order = {"restore": 0, "archive": 1, "purge": 2}
    steps.sort(key=lambda step: (order[step.action], step.holding.no))
    return Plan(tuple(steps), dict(kept), len(holdings))


def _of_rule(
    rule: Rule, members: Sequence[Holding], free: Sequence[Holding], *, now: datetime
) -> list[Step]:
    steps = {step.holding.no: step for step in _by_age(rule, free, now=now)}
    for step in _by_quota(rule, members, free, steps):
        steps.setdefault(step.holding.no, step)
    return [*steps.values()]


def _by_age(rule: Rule, free: Sequence[Holding], *, now: datetime) -> list[Step]:
    steps = []
    for one in free:
        if one.archived_at is None:
            if _is_over(now - one.touched_at, rule.archive_after_days):
                steps.append(Step("archive", one, f"untouched for {rule.archive_after_days:g} d"))
        elif _is_over(now - one.archived_at, rule.purge_after_days):
            steps.append(Step("purge", one, f"archived for {rule.purge_after_days:g} d"))
    return steps


def _by_quota(
    rule: Rule, members: Sequence[Holding], free: Sequence[Holding], done: Mapping[int, Step]
) -> list[Step]:
    """Return what brings the rule's threads of one collection under its quotas, the least important
    and longest untouched first, beside what is `done` already."""
    most_bytes = math.inf if rule.most_bytes is None else rule.most_bytes
    most = math.inf if rule.most_records is None else rule.most_records
    left = [one for one in members if one.no not in done or done[one.no].action != "purge"]
    size = sum(_archived(one) if one.no in done else one.stored_bytes for one in left)
    excess = len(left) - most
    rest = sorted((one for one in free if one.no not in done), key=_value)
    active = [one for one in rest if one.archived_at is None]
    steps: list[Step] = []
    for one in active:
        if size <= most_bytes:
            break
        steps.append(Step("archive", one, f"over {most_bytes} bytes"))
        size -= one.stored_bytes - _archived(one)
    rest_active = active[len(steps) :]
    for one in rest:
        if one.archived_at is not None and (size > most_bytes or excess > 0):
            why = f"over {most} threads" if excess > 0 else f"over {most_bytes} bytes"
            steps.append(Step("purge", one, why))
            size, excess = size - one.stored_bytes, excess - 1
    # Purged by the run after this one, unless somebody wants them until then.
    excess -= sum(step.action == "archive" for step in (*done.values(), *steps))
    for one in rest_active:
        if excess <= 0:
            break
        steps.append(Step("archive", one, f"over {most} threads"))
        excess -= 1
    return steps


def _archived(one: Holding) -> int:
    return one.stored_bytes if one.archived_at else int(one.stored_bytes * PACKED_SHARE)


def _value(one: Holding) -> tuple[int, datetime, int]:
    return _level(one.importance), one.touched_at, one.no


def _level(importance: Importance | None) -> int:
    return 0 if importance is None else IMPORTANCES.index(importance)


def _is_over(age: timedelta, days: float | None) -> bool:
    return days is not None and age >= timedelta(days=days)


def _immune(one: Holding, immunity: Immunity, worded: frozenset[int]) -> str | None:
    """Return why a thread is left alone; None: it is not."""
    least, wanted = immunity.importance_least, immunity.wanted_least
    if one.is_pinned:
        return "pinned"
    if one.is_shared:
        return "shared"
    if None not in (least, one.importance) and _level(one.importance) >= _level(least):
        return "important"
    if set(one.tags) & set(immunity.tags):
        return "tagged"
    if wanted is not None and one.wanted >= wanted:
        return "wanted"
    return "worded" if one.no in worded else None
