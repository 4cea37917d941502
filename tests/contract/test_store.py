"""What every store must do (library/store/contract.py): places, turns, outbox, pins, deletion.

Where a client's transcript belongs is in test_reconciliation.py.
"""

import asyncio
import sqlite3
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import orjson
import pytest

from library.errors import EventConflict, StoreUnavailable, TooManyPins, UnknownRecord
from library.records import NOWHERE, Event, Gone, IndexedEvent, OwnSettings, Passage, TurnState
from library.store import outbox
from library.store.recording import MOST_TOLD
from library.store.sqlite import SqliteStore
from library.store.threads import PINS_MAX
from tests.contract.conversation import START, Client, Said, live_texts, message, reply, texts_on

U1: Said = ("user", "Where do we deploy?")
A1: Said = ("assistant", "On Heroku.")
U2: Said = ("user", "Since when?")

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def indexed(seq: int, count: int = 1) -> IndexedEvent:
    return IndexedEvent(
        seq, tuple(Passage(seq, each, count, each, each + 1) for each in range(count))
    )


class TestForeseeing:
    async def test_what_is_foreseen_is_what_is_recorded_then_and_nothing_is_stored(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES B7 (billion-context PR#72): a count answers for the next request."""
        first = await client.record([U1])
        await client.finish(first, reply("On Heroku."))
        before = await store.watermarks()
        turn = client.turn([U1, A1, U2])
        foreseen = await store.foresee_turn(turn)
        assert await store.watermarks() == before
        assert foreseen.new_count == 1
        assert foreseen.prompt_state == b"state of " + first.turn_id.encode()
        assert await store.record_turn(turn) == foreseen

    async def test_a_thread_that_is_foreseen_is_not_there(
        self, store: SqliteStore, client: Client
    ) -> None:
        await store.foresee_turn(client.turn([U1]))
        assert await store.threads(collection_id=None, limit=9) == []

    async def test_what_cannot_be_recorded_cannot_be_foreseen(
        self, store: SqliteStore, client: Client
    ) -> None:
        await client.record([message("user", "one", event_id="mine")])
        with pytest.raises(EventConflict):
            await store.foresee_turn(client.turn([message("user", "two", event_id="mine")]))


class TestTurns:
    async def test_a_recorded_message_comes_back_as_it_was_given(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES J2 (mem0#2967): event time beside insert time; J11: text unchanged."""
        when = datetime(2019, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)
        body = {
            "role": "user",
            "name": "Ada",
            "content": [
                {"type": "text", "text": "def f():\n\treturn  1"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ],
            "vendor": {"big": 1 << 70, "none": None, "float": 1.5},
        }
        given = message("user", "def f():\n\treturn  1")
        given = type(given)(given.role, given.digest, body, given.text, None, when)
        recorded = await client.record([given])
        [event] = await store.events(recorded.event_seqs, collection_id=recorded.collection_id)
        assert event.body == body
        assert list(event.body) == list(body)
        assert event.text == given.text
        assert (event.occurred_at, event.recorded_at) == (when, START)
        assert (event.role, event.digest, event.position) == ("user", given.digest, 0)
        assert event.turn_id == recorded.turn_id

    async def test_what_a_turn_told_is_given_back_as_reading_it_again_gives_it(
        self, store: SqliteStore, client: Client
    ) -> None:
        when = datetime(2019, 5, 4, 3, 2, 1, 123456, tzinfo=timezone(timedelta(hours=2)))
        body = {"role": "user", "name": "Ada", "content": [{"type": "text", "text": "hi"}, {}]}
        given = message("user", "hi", event_id="mine")._replace(body=body, occurred_at=when)
        first = await client.record([U1])
        await client.finish(first, reply(A1[1]))
        before = [message(*said) for said in (U1, A1, U2)]
        second = await client.record([*before, given])
        edited = await client.record([U1, A1, ("user", "Until when?")])
        cut = [message("user", "Of late:"), *before[1:], given, message("user", "And?")]
        shortened = await client.record(cut)
        client.session_id = "t"
        elsewhere = await client.record([message("user", "hi", event_id="mine")])
        for recorded in (first, second, edited, shortened, elsewhere):
            seqs = [event.seq for event in recorded.told]
            assert seqs == sorted(recorded.event_seqs)[-recorded.new_count :][-len(seqs) :]
            assert list(recorded.told) == await store.events(seqs, collection_id=None)
        assert len(second.told) == 2

    async def test_of_many_new_messages_the_newest_are_told_and_of_known_ones_none(
        self, store: SqliteStore, client: Client
    ) -> None:
        said: list[Said] = [("user", f"note {number}") for number in range(MOST_TOLD + 5)]
        recorded = await client.record(said)
        assert [event.seq for event in recorded.told] == list(recorded.event_seqs[-MOST_TOLD:])
        assert (await client.record(said)).told == ()

    async def test_the_very_next_call_sees_what_was_committed(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H4 (litellm#12364)."""
        said: list[Said] = []
        for number in range(20):
            said.append(("user", f"question {number}"))
            recorded = await client.ask(said, f"answer {number}")
            said.append(("assistant", f"answer {number}"))
            assert await live_texts(store, recorded.thread_no) == [text for _, text in said]

    async def test_an_ended_turn_has_its_report_state_and_number(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        before = await store.turn_report(recorded.turn_id, collection_id=None)
        assert (before["state"], before["number"]) == ("prepared", None)
        await client.finish(recorded, reply(A1[1]))
        after = await store.turn_report(recorded.turn_id, collection_id=recorded.collection_id)
        assert after["state"] == "done"
        assert after["budget_tokens"] == 8000
        assert after["thread_id"] == recorded.thread_id
        with pytest.raises(UnknownRecord):
            await store.turn_report(recorded.turn_id, collection_id=recorded.collection_id + 1)

    async def test_reports_are_numbered_in_the_order_in_which_turns_end(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.record([U1])
        second = await client.record([("user", "another thread")])
        await client.finish(second, reply("b"))
        reports = await store.turn_reports(collection_id=None)
        assert [report["turn_id"] for report in reports] == [second.turn_id]
        await client.finish(first, reply("a"))
        later = await store.turn_reports(collection_id=None, after=reports[-1]["number"])
        assert [report["turn_id"] for report in later] == [first.turn_id]
        of_thread = await store.turn_reports(collection_id=None, thread_id=second.thread_id)
        assert [report["turn_id"] for report in of_thread] == [second.turn_id]
        newest = await store.turn_reports(collection_id=None, newest=1)
        assert [report["turn_id"] for report in newest] == [first.turn_id]

    async def test_finishing_twice_stores_and_returns_the_same_once(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        [first] = await client.finish(recorded, reply("one"))
        [again] = await client.finish(recorded, reply("two"))
        assert again == first
        assert await live_texts(store, recorded.thread_no) == [U1[1], "one"]

    async def test_a_returned_reply_equals_what_reading_it_gives(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        replies = await client.finish(recorded, reply("one"), reply("two", is_partial=True))
        assert list(replies) == await store.events(
            [event.seq for event in replies], collection_id=None
        )

    async def test_of_several_choices_the_one_the_client_goes_on_from_is_live(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        first, second = await client.finish(recorded, reply("one"), reply("two"))
        assert await live_texts(store, recorded.thread_no) == [U1[1], "one"]
        assert first.branch_id != second.branch_id
        going_on = await client.record([U1, ("assistant", "two"), U2])
        assert going_on.new_count == 1
        assert await live_texts(store, recorded.thread_no) == [U1[1], "two", U2[1]]

    async def test_a_failed_turn_without_a_reply_keeps_its_message(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        assert await client.finish(recorded, state=TurnState.FAILED) == ()
        assert await live_texts(store, recorded.thread_no) == [U1[1]]
        report = await store.turn_report(recorded.turn_id, collection_id=None)
        assert report["state"] == "failed"

    async def test_the_live_paths_of_many_threads_come_at_once(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.ask([U1], A1[1])
        other = await client.with_session("other").ask([U1], A1[1])
        numbers = (first.thread_no, other.thread_no)
        found = await store.live_paths([*numbers, 99])
        assert found == {n: await store.live_path(n) for n in numbers} | {99: ()}
        assert all(found[number] for number in numbers)

    async def test_a_partial_reply_is_marked(self, store: SqliteStore, client: Client) -> None:
        """CASES D7 (litellm#14457)."""
        recorded = await client.record([U1])
        [event] = await client.finish(
            recorded, reply("On Her", is_partial=True), state=TurnState.ABANDONED
        )
        assert event.is_partial
        [read] = await store.events([event.seq], collection_id=None)
        assert read.is_partial

    async def test_prompt_state_is_kept_until_a_turn_leaves_another(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.ask([U1], A1[1])
        following = await client.record([U1, A1, U2])
        assert following.prompt_state == b"state of turn-0"
        await store.finish_turn(
            following.turn_id,
            state=TurnState.DONE,
            replies=[],
            report=b"{}",
            prompt_state=None,
            ended_at=NOW,
        )
        state = await store.prompt_state(recorded.thread_id, collection_id=None)
        assert state == b"state of turn-0"

    async def test_a_turn_nobody_recorded_cannot_be_finished(self, store: SqliteStore) -> None:
        with pytest.raises(UnknownRecord):
            await store.finish_turn(
                "nobody's",
                state=TurnState.DONE,
                replies=[],
                report=b"{}",
                prompt_state=None,
                ended_at=NOW,
            )

    async def test_a_request_of_system_text_only_is_a_turn_of_an_empty_thread(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([])
        assert (recorded.path, recorded.event_seqs) == ((), ())
        [event] = await client.finish(recorded, reply("hello"))
        assert await live_texts(store, recorded.thread_no) == ["hello"]
        assert event.position == 0


class TestEventIds:
    async def test_a_given_id_names_the_event_and_an_equal_one_is_no_second(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        given = message("user", "hello", event_id="mine")
        first = await session.record([given])
        again = await session.record([given])
        assert again.event_seqs == first.event_seqs
        assert again.new_count == 0
        event = await store.event_by_id("mine", collection_id=first.collection_id)
        assert (event.id, event.seq) == ("mine", first.event_seqs[0])

    async def test_a_newest_only_message_with_a_known_id_is_not_appended_again(
        self, client: Client
    ) -> None:
        session = client.with_session("s")
        await session.ask([("user", "a")], "b")
        recorded = await session.record([message("user", "c", event_id="mine")])
        await session.finish(recorded, reply("d"))
        again = await session.record([message("user", "c", event_id="mine")])
        assert (again.event_seqs, again.new_count) == (recorded.event_seqs, 0)

    async def test_a_given_id_with_other_content_is_refused_and_changes_nothing(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES J3 (mem0#1750)."""
        recorded = await client.record([message("user", "hello", event_id="mine")])
        with pytest.raises(EventConflict):
            await client.record([message("user", "other", event_id="mine")])
        assert (await store.watermarks()).recorded == recorded.event_seqs[0]

    async def test_ids_of_the_librarys_own_form_are_not_given_away(self, client: Client) -> None:
        with pytest.raises(EventConflict):
            await client.record([message("user", "hello", event_id="e7")])

    async def test_one_id_in_two_collections_is_two_events(self, store: SqliteStore) -> None:
        """CASES H3 (claude-code-hub PR#793)."""
        one, two = Client(store, "one", name="x"), Client(store, "two", name="y")
        first = await one.record([message("user", "hello", event_id="mine")])
        second = await two.record([message("user", "goodbye", event_id="mine")])
        event = await store.event_by_id("mine", collection_id=first.collection_id)
        assert event.text == "hello"
        event = await store.event_by_id("mine", collection_id=second.collection_id)
        assert event.text == "goodbye"

    async def test_an_id_of_another_collection_is_unknown(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        [event] = await store.events(recorded.event_seqs, collection_id=None)
        assert await store.event_by_id(event.id, collection_id=None) == event
        for identifier in (event.id, "never", "e999", "e", "e0", "e01"):
            with pytest.raises(UnknownRecord):
                await store.event_by_id(identifier, collection_id=recorded.collection_id + 1)


class TestThreads:
    async def test_the_thread_that_was_used_last_comes_first(
        self, store: SqliteStore, client: Client
    ) -> None:
        async def listed(limit: int) -> list[str]:
            return [row["id"] for row in await store.threads(collection_id=None, limit=limit)]

        first = (await client.record([U1])).thread_id
        second = (await client.with_session("s").record([("user", "other")])).thread_id
        assert await listed(10) == [second, first]
        await client.record([U1, A1, U2])
        assert await listed(10) == [first, second]
        assert await listed(1) == [first]

    async def test_threads_are_listed_with_their_counts(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.ask([U1], A1[1])
        second = await client.with_session("s").ask([("user", "other " * 100)], "b")
        await client.ask([U1, A1, U2], "c")
        await client.ask([U1, A1, U2], "d")
        other, thread = sorted(
            await store.threads(collection_id=first.collection_id, limit=10),
            key=lambda row: row["event_count"],
        )
        assert thread["id"] == first.thread_id
        assert (thread["event_count"], thread["branch_count"], thread["turn_count"]) == (5, 2, 3)
        assert thread["title"] == U1[1]
        assert (other["id"], other["session_id"]) == (second.thread_id, "s")
        assert len(other["title"]) <= 80
        assert await store.threads(collection_id=99, limit=10) == []

    async def test_a_threads_events_come_in_pages_live_or_all(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.ask([U1], "dead")
        await client.ask([U1], "live")

        async def page(*, live_only: bool, after: int, limit: int) -> list[Event]:
            return await store.thread_events(
                recorded.thread_id,
                collection_id=None,
                live_only=live_only,
                after=after,
                limit=limit,
            )

        everything = await page(live_only=False, after=0, limit=10)
        assert [event.text for event in everything] == [U1[1], "dead", "live"]
        live = await page(live_only=True, after=0, limit=10)
        assert [event.text for event in live] == [U1[1], "live"]
        assert await page(live_only=False, after=everything[0].seq, limit=1) == everything[1:2]

    async def test_a_thread_is_found_by_its_session_too(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.with_session("mine").ask([U1], "x")
        by_session = await store.prompt_state("mine", collection_id=recorded.collection_id)
        assert by_session == await store.prompt_state(recorded.thread_id, collection_id=None)
        with pytest.raises(UnknownRecord):
            await store.prompt_state("mine", collection_id=recorded.collection_id + 1)

    async def test_path_events_are_the_newest_before_a_position(
        self, store: SqliteStore, client: Client
    ) -> None:
        await client.ask([U1], "dead")
        await client.ask([U1], A1[1])
        recorded = await client.record([U1, A1, U2])
        assert await texts_on(store, recorded) == [U1[1], A1[1], U2[1]]
        before = await store.path_events(recorded.path, before_position=2, limit=1)
        assert [event.text for event in before] == [A1[1]]
        assert await store.path_events((), before_position=2, limit=1) == []
        assert await store.path_events(recorded.path, before_position=0, limit=5) == []


class TestPins:
    async def test_a_pin_counts_for_its_thread_or_everywhere_until_taken_away(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.ask([U1], A1[1])
        other = await client.ask([("user", "other")], "x")
        [event] = await store.events(first.event_seqs, collection_id=None)
        for _ in range(2):
            await store.pin(event.id, collection_id=first.collection_id, everywhere=False)
        assert (await client.record([U1])).pins == (event.seq,)
        assert (await client.record([("user", "other")])).pins == ()
        await store.pin(event.id, collection_id=first.collection_id, everywhere=True)
        assert (await client.record([("user", "other")])).pins == (event.seq,)
        assert await store.pinned(collection_id=None, thread_id=other.thread_id) == [event]
        assert await store.unpin(event.id, collection_id=first.collection_id)
        assert not await store.unpin(event.id, collection_id=first.collection_id)
        assert await store.pinned(collection_id=None, thread_id=None) == []

    async def test_what_is_anothers_cannot_be_pinned(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([U1])
        with pytest.raises(UnknownRecord):
            await store.pin(
                f"e{recorded.event_seqs[0]}",
                collection_id=recorded.collection_id + 1,
                everywhere=True,
            )

    async def test_a_thread_and_a_collection_have_so_many_pins_and_no_more(
        self, store: SqliteStore, client: Client
    ) -> None:
        """DESIGN 1.13: every request reads the texts of all its pins."""
        said = [("user", str(number)) for number in range(PINS_MAX + 1)]
        recorded = await client.record(said)

        async def pin(seq: int, *, everywhere: bool = False) -> Event:
            return await store.pin(f"e{seq}", collection_id=None, everywhere=everywhere)

        *most, last = recorded.event_seqs
        for seq in most:
            await pin(seq)
        with pytest.raises(TooManyPins):
            await pin(last)
        await pin(most[0])
        await pin(last, everywhere=True)
        with pytest.raises(TooManyPins):
            await pin(last)
        assert (await client.record(said)).pins == recorded.event_seqs
        assert await store.unpin(f"e{most[0]}", collection_id=None)
        await pin(last)


class TestOutbox:
    async def test_every_event_is_owed_once_and_oldest_first(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.ask([U1], A1[1])
        assert not await store.thread_indexed(recorded.thread_no)
        first = await store.claim(owner="a", limit=1, lease_s=60, now=NOW)
        second = await store.claim(owner="b", limit=9, lease_s=60, now=NOW)
        assert [claim.seq for claim in (*first, *second)] == [1, 2]
        assert await store.claim(owner="c", limit=9, lease_s=60, now=NOW) == []
        marks = await store.watermarks()
        assert (marks.recorded, marks.indexed, marks.pending_count) == (2, 0, 2)
        assert marks.oldest_pending_at == START
        assert await store.settle(second, [indexed(2)]) == 1
        assert (await store.watermarks()).indexed == 0
        assert await store.settle(first, [indexed(1)]) == 1
        marks = await store.watermarks()
        assert (marks.recorded, marks.indexed, marks.pending_count) == (2, 2, 0)
        assert marks.oldest_pending_at is None
        assert await store.thread_indexed(recorded.thread_no)

    async def test_an_expired_lease_goes_to_the_next_and_the_late_holder_settles_nothing(
        self, store: SqliteStore, client: Client
    ) -> None:
        await client.record([U1])
        slow = await store.claim(owner="slow", limit=9, lease_s=1, now=NOW)
        later = NOW + timedelta(seconds=2)
        fast = await store.claim(owner="fast", limit=9, lease_s=60, now=later)
        assert [claim.attempt for claim in (*slow, *fast)] == [1, 2]
        assert await store.settle(slow, [indexed(1)]) == 0
        await store.fail(slow[0], error="late", retry_at=NOW, quarantine=True)
        assert await store.settle(fast, [indexed(1)]) == 1
        assert await store.settle(fast, [indexed(1)]) == 0

    async def test_of_a_batch_only_what_is_still_held_is_settled(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([message("user", text) for text in ("one", "two", "three")])
        slow = await store.claim(owner="slow", limit=9, lease_s=1, now=NOW)
        later = NOW + timedelta(seconds=2)
        [taken] = await store.claim(owner="fast", limit=1, lease_s=60, now=later)
        assert taken.seq == recorded.event_seqs[0]
        assert await store.settle(slow, [indexed(claim.seq) for claim in slow]) == 2
        marks = await store.watermarks()
        assert (marks.indexed, marks.pending_count) == (0, 1)
        kept = [
            event.seq async for page in store.indexed_events(after=0, batch=9) for event, _ in page
        ]
        assert kept == list(recorded.event_seqs[1:])
        assert await store.settle([taken], [indexed(taken.seq)]) == 1
        assert (await store.watermarks()).indexed == 3

    async def test_failed_work_waits_for_its_time(self, store: SqliteStore, client: Client) -> None:
        await client.record([U1])
        [claim] = await store.claim(owner="a", limit=9, lease_s=60, now=NOW)
        retry_at = NOW + timedelta(seconds=10)
        await store.fail(claim, error="no", retry_at=retry_at, quarantine=False)
        assert await store.claim(owner="a", limit=9, lease_s=60, now=NOW) == []
        [again] = await store.claim(owner="a", limit=9, lease_s=60, now=retry_at)
        assert again.attempt == 2

    async def test_what_kills_its_process_soon_stands_alone(
        self, store: SqliteStore, client: Client
    ) -> None:
        """Issue 2, crash test: a batch in hand is not given up with the one event in it."""
        await client.record([message("user", f"event {number}") for number in range(100)])
        poison, now, deaths, tries = 60, NOW, 0, Counter[int]()
        while claims := await store.claim(owner="a", limit=64, lease_s=1, now=now):
            now += timedelta(seconds=2)
            tries.update(claim.seq for claim in claims)
            if poison not in {claim.seq for claim in claims}:
                await store.settle(claims, [indexed(claim.seq) for claim in claims])
                continue
            deaths += 1
            if deaths == 6:
                await store.fail(claims[0], error="deadly", retry_at=now, quarantine=True)
        assert (deaths, tries.pop(poison)) == (6, 6)
        assert max(tries.values()) <= 4
        marks = await store.watermarks()
        assert (marks.pending_count, [one.seq for one in marks.quarantined]) == (0, [poison])

    async def test_kills_soon_after_each_start_blame_no_event_in_particular(
        self, store: SqliteStore, client: Client
    ) -> None:
        """Issue 2, crash test: a process that never gets further than its first batch."""
        await client.record([message("user", f"event {number}") for number in range(12)])
        now = NOW
        for _ in range(16):
            claims = await store.claim(owner="a", limit=64, lease_s=1, now=now)
            now += timedelta(seconds=2)
        [last] = claims
        assert last.attempt == 4

    async def test_quarantined_work_is_listed_blocks_nothing_and_is_retried_on_demand(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.record([message("user", "poison", event_id="bad")])
        await client.finish(recorded, reply("fine"))
        bad, good = await store.claim(owner="a", limit=9, lease_s=60, now=NOW)
        await store.fail(bad, error="boom", retry_at=NOW, quarantine=True)
        await store.settle([good], [indexed(good.seq)])
        marks = await store.watermarks()
        assert marks.indexed == marks.recorded == 2
        [listed] = marks.quarantined
        assert (listed.seq, listed.event_id, listed.attempts, listed.error) == (1, "bad", 1, "boom")
        assert await store.thread_indexed(recorded.thread_no)
        later = NOW + timedelta(days=1)
        assert await store.claim(owner="a", limit=9, lease_s=60, now=later) == []
        assert await store.retry_quarantined([99]) == 0
        assert await store.retry_quarantined(None) == 1
        [again] = await store.claim(owner="a", limit=9, lease_s=60, now=later)
        assert (again.seq, again.attempt) == (1, 1)

    async def test_passages_come_back_in_order(self, store: SqliteStore, client: Client) -> None:
        await client.ask([U1], A1[1])
        claims = await store.claim(owner="a", limit=9, lease_s=60, now=NOW)
        results = [indexed(1, 2), indexed(2)]
        assert await store.settle(claims, results) == 2
        batches = [batch async for batch in store.indexed_events(after=0, batch=1)]
        assert [[result for _, result in batch] for batch in batches] == [
            [each] for each in results
        ]
        assert [batch[0][0].text for batch in batches] == [U1[1], A1[1]]

    async def test_what_replaces_what_is_found_from_either_side_and_goes_with_its_events(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.ask([U1], A1[1])
        await client.ask([("user", "other")], "x")
        claims = await store.claim(owner="a", limit=9, lease_s=60, now=NOW)
        replaced = {2: (1,), 4: (1, 3, 99)}
        results = [
            replace(indexed(one.seq), replaced_seqs=replaced.get(one.seq, ())) for one in claims
        ]
        assert await store.settle(claims, results) == 4
        assert await store.replacements([1]) == [(1, 2), (1, 4)]
        assert await store.replacements([3, 4]) == [(1, 4), (3, 4)]
        assert await store.replacements([]) == []
        await store.forget_thread(first.thread_id, collection_id=first.collection_id)
        assert await store.replacements([1, 2, 3, 4]) == [(3, 4)]

    async def test_what_was_replaced_in_turn_is_followed_to_the_newest_within_a_limit(
        self, store: SqliteStore, client: Client
    ) -> None:
        for number in range(outbox.MOST_STEPS):
            await client.ask([("user", f"fact {number}")], "noted")
        claims = await store.claim(owner="a", limit=99, lease_s=60, now=NOW)
        results = [
            replace(indexed(one.seq), replaced_seqs=(one.seq - 1,) if one.seq > 1 else ())
            for one in claims
        ]
        await store.settle(claims, results)
        last = len(claims)
        assert last > outbox.MOST_STEPS + 2
        followed = [(at, at + 1) for at in range(1, outbox.MOST_STEPS + 1)]
        assert await store.replacements([1]) == followed
        assert await store.replacements([last - 1]) == [(last - 2, last - 1), (last - 1, last)]


class TestForgetting:
    async def test_a_forgotten_thread_is_gone_and_another_stays(
        self, store: SqliteStore, client: Client
    ) -> None:
        gone = await client.ask([U1], "dead")
        await client.ask([U1], A1[1])
        stays = await client.ask([("user", "other")], "x")
        claims = await store.claim(owner="a", limit=1, lease_s=60, now=NOW)
        await store.pin("e1", collection_id=None, everywhere=True)
        deleted = await store.forget_thread(gone.thread_id, collection_id=gone.collection_id)
        assert (deleted.count, deleted.thread_nos) == (3, (gone.thread_no,))
        assert await store.settle(claims, [indexed(1)]) == 0
        assert await store.events([1, 2, 3], collection_id=None) == []
        assert await store.pinned(collection_id=None, thread_id=None) == []
        [row] = await store.threads(collection_id=None, limit=9)
        assert row["id"] == stays.thread_id
        assert await live_texts(store, gone.thread_no) == []
        with pytest.raises(UnknownRecord):
            await store.turn_report(gone.turn_id, collection_id=None)
        with pytest.raises(UnknownRecord):
            await store.forget_thread(gone.thread_id, collection_id=None)

    async def test_sequence_numbers_are_never_used_again(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.ask([U1], A1[1])
        number = (await store.turn_reports(collection_id=None))[-1]["number"]
        await store.forget_thread(recorded.thread_id, collection_id=None)
        again = await client.ask([U1], A1[1])
        assert again.event_seqs[0] > 2
        assert again.thread_no > recorded.thread_no
        assert (await store.turn_reports(collection_id=None))[-1]["number"] > number

    async def test_a_thread_of_another_collection_cannot_be_forgotten(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.ask([U1], A1[1])
        with pytest.raises(UnknownRecord):
            await store.forget_thread(recorded.thread_id, collection_id=recorded.collection_id + 1)

    async def test_a_forgotten_collection_is_gone_and_its_name_starts_anew(
        self, store: SqliteStore
    ) -> None:
        one, two = Client(store, "one", name="x"), Client(store, "two", name="y")
        await one.ask([U1], "a")
        await two.ask([U1], "b")
        assert (await store.forget_collection("one")).count == 2
        assert await store.forget_collection("one") == Gone(0, ())
        [row] = await store.threads(collection_id=None, limit=9)
        assert row["collection"] == "two"
        assert (await one.record([U1])).matched_by == "new"

    @pytest.mark.parametrize("whole_collection", [False, True])
    async def test_what_is_set_for_a_thread_alone_goes_with_it(
        self, store: SqliteStore, client: Client, whole_collection: bool
    ) -> None:
        """CASES C4 (open-webui#7991)."""
        mine = client.with_session("mine")
        assert (await mine.record([U1])).own == OwnSettings()
        await store.change_own_settings(
            "mine", lambda own: replace(own, budget_tokens=700), collection_id=None
        )
        await store.change_own_settings(
            "mine", lambda own: replace(own, desk_placement="user"), collection_id=None
        )
        recorded = await mine.record([U1, A1, U2])
        assert recorded.own == OwnSettings(700, "user", None)
        with pytest.raises(UnknownRecord):
            await store.change_own_settings(
                recorded.thread_id,
                lambda _: OwnSettings(),
                collection_id=recorded.collection_id + 1,
            )
        found = await store.own_settings(recorded.thread_id, collection_id=None)
        assert found == (recorded.thread_id, recorded.own)
        if whole_collection:
            await store.forget_collection("default")
        else:
            await store.forget_thread("mine", collection_id=None)
        assert (await mine.record([U1])).own == OwnSettings()

    async def test_what_a_turn_leaves_for_the_next_can_be_replaced(
        self, store: SqliteStore, client: Client
    ) -> None:
        recorded = await client.with_session("mine").record([U1])
        await store.set_prompt_state("mine", b"{}", collection_id=recorded.collection_id)
        assert await store.prompt_state(recorded.thread_id, collection_id=None) == b"{}"
        with pytest.raises(UnknownRecord):
            await store.set_prompt_state("mine", b"", collection_id=recorded.collection_id + 1)

    async def test_no_byte_of_a_forgotten_text_is_left_in_the_files(
        self, store: SqliteStore, client: Client, tmp_path: Path
    ) -> None:
        """Many threads interleaved, so that rows are moved between pages when some go."""
        payload = "data:image/png;base64," + "SECRETPIXELS" * 2_000
        clients = [
            Client(
                store,
                session_id=f"s{number}",
                name=f"n{number}",
                system_texts=(f"SYSTEM{number}.",),
            )
            for number in range(4)
        ]
        said: list[list[Said]] = [[] for _ in clients]
        for round_number in range(30):
            for number, each in enumerate(clients):
                words = f"THREAD{number}. " * (1 + (round_number * 7) % 40)
                said[number].append(("user", f"{words}{round_number}"))
                await each.ask(said[number], f"ANSWER{number}. {words}")
                said[number].append(("assistant", f"ANSWER{number}. {words}"))
        given = message("user", "look")
        body = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": payload}}]}
        image = type(given)("user", given.digest, body, "look")
        await clients[0].record([*(message(*each) for each in said[0]), image])
        for number in range(3):
            await store.forget_thread(f"s{number}", collection_id=None)
            for needle in (f"THREAD{number}.", f"ANSWER{number}.", f"SYSTEM{number}."):
                assert await asyncio.to_thread(occurrences, tmp_path, needle.encode()) == 0
        assert await asyncio.to_thread(occurrences, tmp_path, b"SECRETPIXELS") == 0
        assert await asyncio.to_thread(occurrences, tmp_path, b"THREAD3.") > 0

    async def test_a_reader_that_keeps_the_log_is_said_and_the_next_start_finishes(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "busy.db"
        store = await SqliteStore.open(path, busy_timeout_s=0.05)
        recorded = await Client(store).ask([("user", "SECRET")], "SECRET too")

        def reading() -> sqlite3.Connection:
            reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM event").fetchone()
            return reader

        reader = await asyncio.to_thread(reading)
        with pytest.raises(StoreUnavailable):
            await store.forget_thread(recorded.thread_id, collection_id=None)
        await asyncio.to_thread(reader.close)
        await store.close()
        store = await SqliteStore.open(path)
        assert await asyncio.to_thread(occurrences, tmp_path, b"SECRET") == 0
        await store.close()


def occurrences(folder: Path, needle: bytes) -> int:
    return sum(path.read_bytes().count(needle) for path in folder.iterdir() if path.is_file())


class TestMeta:
    async def test_a_note_is_kept_and_replaced(self, store: SqliteStore) -> None:
        assert await store.meta("k") is None
        await store.set_meta("k", "1")
        await store.set_meta("k", "2")
        assert await store.meta("k") == "2"

    async def test_a_collection_keeps_its_number(self, store: SqliteStore, client: Client) -> None:
        number = await store.made_collection("default")
        assert (await client.record([U1])).collection_id == number
        assert await store.collection_id("default") == await store.made_collection("default")
        assert await store.made_collection("other") != number

    async def test_to_look_for_a_collection_makes_none(self, store: SqliteStore) -> None:
        await store.made_collection("here")
        assert await store.collection_id("typo") == NOWHERE
        assert await store.threads(collection_id=NOWHERE, limit=10) == []
        assert await store.collection_names() == ["here"]


class TestClosing:
    async def test_closing_commits_what_is_queued_and_refuses_what_comes_later(
        self, store: SqliteStore, client: Client, tmp_path: Path
    ) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(client.record([("user", f"message {number}")]))
                for number in range(50)
            ]
            await asyncio.sleep(0)
            await store.close()
        assert len({task.result().thread_no for task in tasks}) == 50
        with pytest.raises(StoreUnavailable) as caught:
            await client.record([U1])
        assert caught.value.reason == "closed"
        await store.close()
        again = await SqliteStore.open(tmp_path / "library.db")
        assert (await again.watermarks()).recorded == 50
        for task in tasks:
            report = await again.turn_report(task.result().turn_id, collection_id=None)
            assert report["state"] == "abandoned"
        await again.close()

    async def test_a_turn_that_a_dead_process_left_prepared_is_abandoned(
        self, store: SqliteStore, client: Client, tmp_path: Path
    ) -> None:
        recorded = await client.record([U1])
        claims = await store.claim(owner="dead", limit=9, lease_s=1e6, now=NOW)
        await store.close()
        again = await SqliteStore.open(tmp_path / "library.db")
        report = await again.turn_report(recorded.turn_id, collection_id=None)
        assert report["state"] == "abandoned"
        fresh = await again.claim(owner="new", limit=9, lease_s=60, now=NOW)
        assert [claim.seq for claim in fresh] == [claim.seq for claim in claims]
        assert await again.settle(claims, [indexed(1)]) == 0
        await again.close()


class TestLargeParts:
    async def test_a_large_payload_is_stored_once_and_comes_back_byte_for_byte(
        self, store: SqliteStore, client: Client, tmp_path: Path
    ) -> None:
        url = "data:image/png;base64," + "QUJD" * 100_000
        body = {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "QUJD" * 5_000, "format": "wav"}},
                {"$part": "mine", "x": {"$part": {"$part": 1}}},
            ],
        }
        for number in range(5):
            given = message("user", f"look {number}")
            image = type(given)("user", given.digest, body, given.text)
            recorded = await client.record([image])
            [event] = await store.events(recorded.event_seqs, collection_id=None)
            assert orjson.dumps(event.body) == orjson.dumps(body)
        await store.close()
        size_bytes = await asyncio.to_thread(lambda: (tmp_path / "library.db").stat().st_size)
        assert size_bytes < 2 * len(url)


class TestMasking:
    async def test_a_masked_message_is_still_recognised_when_it_is_sent_again(
        self, tmp_path: Path
    ) -> None:
        """DESIGN 9: the digest is that of what was said."""
        key = "sk-" + "a1B2" * 10
        path = tmp_path / "masked.db"
        store = await SqliteStore.open(path, mask_secrets=True)
        client = Client(store, system_texts=(f"Use {key}.",))
        first = await client.record([("user", f"my key is {key}")])
        [answer] = await client.finish(first, reply(f"I see {key}"))
        assert answer.text == "I see [masked openai key]"
        said: list[Said] = [("user", f"my key is {key}"), ("assistant", f"I see {key}"), U2]
        following = await client.record(said)
        assert (following.thread_id, following.new_count) == (first.thread_id, 1)
        assert await texts_on(store, following) == [
            "my key is [masked openai key]",
            "I see [masked openai key]",
            U2[1],
        ]
        await store.close()
        assert await asyncio.to_thread(occurrences, tmp_path, key.encode()) == 0


class TestGroupCommit:
    async def test_many_waiting_turns_share_a_commit_and_a_bad_one_harms_none(
        self, store: SqliteStore, client: Client
    ) -> None:
        await client.record([message("user", "taken", event_id="taken")])
        before = store.stats
        outcomes = await asyncio.gather(
            *(
                client.record([message("user", f"m{number}", event_id="taken")])
                if number % 10 == 5
                else client.record([("user", f"m{number}")])
                for number in range(100)
            ),
            return_exceptions=True,
        )
        bad = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(bad) == 10
        assert all(isinstance(each, EventConflict) for each in bad)
        after = store.stats
        assert after["jobs"] - before["jobs"] == 100
        assert after["commits"] - before["commits"] < 20
        assert len(await store.threads(collection_id=None, limit=1000)) == 91


async def test_a_collection_that_is_there_is_found_without_the_writer(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await store.made_collection("home")

    async def full(*_: object) -> None:
        raise StoreUnavailable("full")

    monkeypatch.setattr(store, "_write", full)
    assert await store.made_collection("home") == number
    assert await store.collection_id("new") == NOWHERE
    with pytest.raises(StoreUnavailable):
        await store.made_collection("new")
