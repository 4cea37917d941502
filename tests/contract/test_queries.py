"""What the statements of the SQLite store look at: SQLite's own plans, on an empty schema."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from library.store.migrations import migrate
from library.store.statements import SQL
from library.store.threads import delete_threads

SMALL = ("json_each", "collection", "pin", "p ")
"""Tables that may be gone through: few rows, however much was said."""
BY_NAME = (
    *("find_thread", "find_session", "session_thread", "thread_by_id", "thread_by_no"),
    *("find_record", "record", "record_of_source", "copies", "copies_of_thread"),
    *("records_of_owner", "pinned_of_record", "seq_with_given_id", "events", "event_with_seq"),
    *("named_reply", "turn", "turn_to_end", "thread_pins", "is_archived", "rows_to_archive"),
)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        yield connection


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    names = set(re.findall(r":([a-z_]+)", SQL[name]))
    given = dict.fromkeys(names, "[1]") if names else ["[1]"] * SQL[name].count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", given)
    return [row[3] for row in rows.fetchall()]


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_named_is_looked_up_and_not_searched_for(
    connection: sqlite3.Connection, name: str
) -> None:
    """No step of a request may cost time linear in the catalog (DESIGN 7)."""
    scans = [step for step in plan(connection, name) if step.startswith("SCAN ")]
    assert [step for step in scans if not f"{step[5:]} ".startswith(SMALL)] == []


def test_messages_are_counted_of_the_threads_that_are_listed_and_of_no_others(
    connection: sqlite3.Connection,
) -> None:
    steps = plan(connection, "threads")
    assert steps.index("SCAN thread") < steps.index("SCAN t")
    assert all("SCAN" not in step for step in steps[steps.index("SCAN t") + 1 :])


def test_threads_that_are_deleted_together_go_through_the_turns_once(
    connection: sqlite3.Connection,
) -> None:
    """A rule may purge thousands; turns have no index by thread."""
    connection.execute(SQL["insert_collection"], ("home",))
    for number in range(1, 6):
        connection.execute(SQL["insert_thread"], (f"t{number}", 1, f"s{number}", 0, 0))
    looked: list[int] = []
    for numbers in ([1], [2, 3, 4, 5]):
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        assert delete_threads(connection, numbers).thread_nos == tuple(numbers)
        connection.set_trace_callback(None)
        looked.append(sum("FROM turn" in statement for statement in statements))
    assert looked[0] == looked[1]
    assert connection.execute("SELECT count(*) FROM thread").fetchone() == (0,)
