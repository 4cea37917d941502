"""What a run would do, from plain data."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.kinds.filter import IMPORTANCES, KINDS
from library.retention.holding import Holding
from library.retention.plan import Plan, planned
from library.retention.policy import Immunity, Policy, Rule

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOBODY: frozenset[int] = frozenset()


def held(no: int, *, days: float = 0, **more: object) -> Holding:
    """Return a chat that was touched so many days ago."""
    one = Holding(
        no=no,
        id=f"t{no}",
        session_id=None,
        collection_id=1,
        collection="home",
        kind="chat",
        type="",
        project="",
        tags=(),
        importance=None,
        title="",
        owner_no=None,
        is_pinned=False,
        is_shared=False,
        event_count=1,
        plain_bytes=100,
        stored_bytes=100,
        changed_at=NOW - timedelta(days=days),
        found_count=0,
        used_count=0,
        used_at=None,
        archived_at=None,
        summary="",
    )
    return replace(one, **more)  # type: ignore[arg-type]


def archived(no: int, *, days: float, **more: object) -> Holding:
    return held(no, days=days + 1, archived_at=NOW - timedelta(days=days), **more)


def plan(*holdings: Holding, immunity: Immunity | None = None, **rule: object) -> Plan:
    policy = Policy([Rule(**rule)], immunity or Immunity())  # type: ignore[arg-type]
    return planned(holdings, policy, now=NOW, worded=NOBODY)


def steps(found: Plan) -> list[tuple[str, int]]:
    return [(step.action, step.holding.no) for step in found.steps]


def test_what_nobody_touched_is_archived_and_purged_after_its_time_there() -> None:
    found = plan(
        held(1, days=89),
        held(2, days=90),
        archived(3, days=364),
        archived(4, days=365),
        archive_after_days=90,
        purge_after_days=365,
    )
    assert steps(found) == [("archive", 2), ("purge", 4)]
    assert [step.reason for step in found.steps] == ["untouched for 90 d", "archived for 365 d"]


def test_nothing_goes_from_active_to_purged_in_one_run() -> None:
    found = plan(held(1, days=9_999), archive_after_days=0, purge_after_days=0, most_records=0)
    assert steps(found) == [("archive", 1)]


def test_to_be_laid_on_a_desk_or_opened_is_a_touch_and_to_be_found_is_none() -> None:
    found = plan(
        held(1, days=100, used_count=1, used_at=NOW - timedelta(days=5)),
        held(2, days=100, found_count=59),
        archive_after_days=90,
    )
    assert steps(found) == [("archive", 2)]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (held(1, days=999, is_pinned=True), "pinned"),
        (held(1, days=999, is_shared=True), "shared"),
        (held(1, days=999, kind="insight", importance="high"), "important"),
        (held(1, days=999, kind="insight", importance="low", tags=("keep",)), "tagged"),
        (held(1, days=999, used_count=3), "wanted"),
        (held(1, days=999, found_count=60), "wanted"),
        (held(1, days=999, used_count=2, found_count=19), None),
        (held(1, days=999, kind="insight", importance="medium", tags=("other",)), None),
    ],
)
def test_pins_importance_tags_and_use_keep_and_finds_count_a_twentieth(
    one: Holding, why: str | None
) -> None:
    found = plan(one, immunity=Immunity(tags=("keep",)), archive_after_days=1)
    assert steps(found) == ([] if why else [("archive", 1)])
    assert found.kept == ({why: 1} if why else {})


def test_what_says_a_kept_word_is_left_alone() -> None:
    policy = Policy([Rule(archive_after_days=1)], Immunity())
    some = [held(1, days=9), held(2, days=9)]
    found = planned(some, policy, now=NOW, worded=frozenset({1}))
    assert steps(found) == [("archive", 2)]
    assert found.kept == {"worded": 1}


def test_a_chat_keeps_with_the_immune_records_that_it_alone_finds() -> None:
    """To purge it would delete them with it."""
    chat = archived(1, days=500)
    rule = held(2, days=500, kind="insight", importance="critical", owner_no=1)
    found = plan(chat, rule, purge_after_days=10, archive_after_days=10)
    assert steps(found) == []
    assert found.kept == {"its records": 1, "important": 1}


def test_the_first_rule_that_matches_a_kind_and_project_holds() -> None:
    rules = [
        Rule(kinds=("insight",)),
        Rule(projects=("old",), archive_after_days=1),
        Rule(kinds=("chat",), projects=("home",), archive_after_days=50),
    ]
    some = [
        held(1, days=60, kind="insight", project="old", importance="low"),
        held(2, days=60, kind="document", project="old", importance="low"),
        held(3, days=60, kind="document", project="new", importance="low"),
        held(4, days=60),
        held(5, days=60, collection="other", collection_id=2),
    ]
    found = planned(some, Policy(rules), now=NOW, worded=NOBODY)
    assert steps(found) == [("archive", 2), ("archive", 4)]


def test_what_was_touched_since_it_was_archived_is_restored_even_where_no_rule_is() -> None:
    used = archived(1, days=5, used_at=NOW - timedelta(days=2), used_count=1)
    gone_on = archived(2, days=5, changed_at=NOW - timedelta(days=1))
    found = planned([used, gone_on], Policy(), now=NOW, worded=NOBODY)
    assert steps(found) == [("restore", 1), ("restore", 2)]


def test_over_a_quota_of_bytes_the_longest_untouched_are_archived_first() -> None:
    some = [held(no, days=no) for no in range(1, 6)]  # 500 bytes, 5 the longest untouched.
    assert steps(plan(*some, most_bytes=500)) == []
    assert steps(plan(*some, most_bytes=450)) == [("archive", 5)]
    assert steps(plan(*some, most_bytes=400)) == [("archive", 4), ("archive", 5)]


def test_what_is_less_important_goes_first_and_when_all_is_archived_the_archive_is_purged() -> None:
    low = held(1, days=1, kind="insight", importance="low")
    medium = held(2, days=99, kind="insight", importance="medium")
    assert steps(plan(low, medium, most_bytes=199)) == [("archive", 1)]
    old, older = archived(3, days=10, stored_bytes=40), archived(4, days=20, stored_bytes=40)
    assert steps(plan(old, older, most_bytes=79)) == [("purge", 4)]


def test_over_a_quota_of_count_the_archive_gives_first_and_the_rest_comes_with_the_next_run() -> (
    None
):
    some = [held(1, days=1), held(2, days=2), held(3, days=3), archived(4, days=4)]
    found = plan(*some, most_records=2)
    assert steps(found) == [("archive", 3), ("purge", 4)]
    after = [held(1, days=1), held(2, days=2), archived(3, days=0)]
    assert steps(plan(*after, most_records=2)) == [("purge", 3)]


def test_what_age_archives_counts_for_a_quota_of_count() -> None:
    some = [held(1, days=1), held(2, days=2), held(3, days=99), held(4, days=99)]
    found = plan(*some, most_records=2, archive_after_days=90)
    assert steps(found) == [("archive", 3), ("archive", 4)]


def test_quotas_are_of_one_collection_each() -> None:
    some = [held(1, days=1), held(2, days=2, collection_id=2, collection="other")]
    assert steps(plan(*some, most_records=1)) == []


moments = st.integers(0, 500).map(lambda days: NOW - timedelta(days=days))
holdings = st.lists(
    st.builds(
        Holding,
        no=st.integers(1, 60),
        id=st.just("t"),
        session_id=st.none(),
        collection_id=st.integers(1, 2),
        collection=st.just("home"),
        kind=st.sampled_from(KINDS),
        type=st.just(""),
        project=st.sampled_from(["", "a"]),
        tags=st.sampled_from([(), ("keep",)]),
        importance=st.sampled_from([None, *IMPORTANCES]),
        title=st.just(""),
        owner_no=st.none() | st.integers(1, 60),
        is_pinned=st.booleans(),
        is_shared=st.booleans(),
        event_count=st.integers(1, 9),
        plain_bytes=st.integers(0, 500),
        stored_bytes=st.integers(0, 500),
        changed_at=moments,
        found_count=st.integers(0, 90),
        used_count=st.integers(0, 4),
        used_at=st.none() | moments,
        archived_at=st.none() | moments,
        summary=st.just(""),
    ),
    max_size=25,
    unique_by=lambda one: one.no,
)
limits = st.none() | st.integers(0, 400)
rules = st.builds(
    Rule,
    kinds=st.sampled_from([(), ("chat",), ("insight", "document")]),
    projects=st.sampled_from([(), ("a",)]),
    archive_after_days=limits,
    purge_after_days=limits,
    most_bytes=limits,
    most_records=st.none() | st.integers(0, 9),
)


@given(holdings, st.lists(rules, max_size=3), st.frozensets(st.integers(1, 60), max_size=5))
def test_whatever_the_rules_nothing_immune_goes_and_only_the_archive_is_purged(
    some: list[Holding], policy_rules: list[Rule], worded: frozenset[int]
) -> None:
    policy = Policy(policy_rules, Immunity(tags=("keep",)))
    found = planned(some, policy, now=NOW, worded=worded)
    assert max(Counter(step.holding.no for step in found.steps).values(), default=1) == 1
    for step in found.steps:
        one = step.holding
        assert (step.action == "archive") == (one.archived_at is None)
        if step.action == "restore":
            continue
        assert not (one.is_pinned or one.is_shared or "keep" in one.tags or one.no in worded)
        assert one.importance not in {"high", "critical"}
        assert one.wanted < 3.0
        kept = {two.owner_no for two in some if two.is_pinned or two.is_shared or two.no in worded}
        assert one.no not in kept
    assert found == planned(some, policy, now=NOW, worded=worded)
