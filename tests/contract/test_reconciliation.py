"""Where a client's transcript belongs (DESIGN 4.2, CASES E3 and H): threads, branches, paths."""

from dataclasses import replace

import pytest

from library.records import RecordedTurn, TurnState
from library.store.sqlite import SqliteStore
from tests.contract.conversation import (
    Client,
    Said,
    all_texts,
    live_texts,
    message,
    path_of,
    reply,
    texts_on,
)


def conversation(name: str, turn_count: int) -> list[Said]:
    """Return a finished conversation: question, answer, question, answer, ..."""
    said: list[Said] = []
    for number in range(turn_count):
        said += [("user", f"{name} question {number}"), ("assistant", f"{name} answer {number}")]
    return said


async def replay(client: Client, said: list[Said]) -> RecordedTurn:
    """Play a conversation turn by turn, the whole transcript each time; return the last turn."""
    recorded: RecordedTurn | None = None
    for index in range(0, len(said), 2):
        recorded = await client.ask(said[: index + 1], said[index + 1][1])
    assert recorded is not None
    return recorded


class TestByContent:
    async def test_a_growing_transcript_is_one_branch_of_one_thread(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 10)
        recorded = await replay(client, said)
        assert (recorded.matched_by, recorded.has_forked, recorded.new_count) == (
            "content",
            False,
            1,
        )
        assert len(recorded.path) == 1
        assert recorded.positions == tuple(range(19))
        assert await all_texts(store, recorded.thread_id) == [text for _, text in said]

    async def test_a_retried_post_stores_no_second_message(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES E3 (better-ccflare PR#465)."""
        said = conversation("a", 3)
        first = await replay(client, said)
        again = await client.record(said[:-1])
        assert (again.event_seqs, again.path) == (first.event_seqs, first.path)
        assert (again.new_count, again.has_forked) == (0, False)
        await client.finish(again, reply(said[-1][1]))
        assert await all_texts(store, first.thread_id) == [text for _, text in said]

    async def test_two_conversations_with_an_equal_start_are_two_from_where_they_differ(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H1 (headroom#1808)."""
        hello: Said = ("user", "Hello")
        one = await client.ask([hello], "Hi!")
        first = await client.ask([hello, ("assistant", "Hi!"), ("user", "one")], "1")
        second = await client.ask([hello, ("assistant", "Hi!"), ("user", "two")], "2")
        assert first.thread_id == second.thread_id == one.thread_id
        assert (first.has_forked, second.has_forked) == (False, True)
        assert await texts_on(store, first) == ["Hello", "Hi!", "one"]
        assert await texts_on(store, second) == ["Hello", "Hi!", "two"]
        again = await client.record(
            [hello, ("assistant", "Hi!"), ("user", "one"), ("assistant", "1"), ("user", "on")]
        )
        assert await texts_on(store, again) == ["Hello", "Hi!", "one", "1", "on"]
        assert await live_texts(store, one.thread_no) == ["Hello", "Hi!", "one", "1", "on"]

    async def test_a_conversation_that_begins_as_another_did_is_a_thread_of_its_own(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H1 (headroom#1808), H5: a retry and a regeneration are none."""
        hello: Said = ("user", "Hello")
        one = await client.ask([hello], "Hi!")
        again = await client.ask([hello], "Hi there!")
        assert again.thread_id == one.thread_id, "regenerated"
        first: list[Said] = [hello, ("assistant", "Hi there!"), ("user", "one")]
        await client.ask(first, "1")
        other = await client.ask([hello], "Hi there!")
        assert other.thread_id != one.thread_id
        assert (other.matched_by, other.new_count) == ("new", 1)
        assert (await client.ask([hello], "Hi there!")).thread_id == other.thread_id, "a retry"
        second: list[Said] = [hello, ("assistant", "Hi there!"), ("user", "two")]
        assert (await client.ask(second, "2")).thread_id == other.thread_id
        on = await client.record([*first, ("assistant", "1"), ("user", "on")])
        assert (on.thread_id, on.has_forked) == (one.thread_id, False)
        assert await live_texts(store, one.thread_no) == [*(text for _, text in first), "1", "on"]
        assert await live_texts(store, other.thread_no) == [*(text for _, text in second), "2"]
        rows = await store.threads(collection_id=None, limit=10)
        assert {row["id"] for row in rows} == {one.thread_id, other.thread_id}

    async def test_conversations_that_differ_keep_apart_although_all_that_follows_is_equal(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H1 (headroom#1808): nothing was cut, so a long equal run is no sign of one."""
        start: list[Said] = [("user", "Hello"), ("assistant", "Hi!")]
        one: list[Said] = [*start, ("user", "one"), ("assistant", "1")]
        two: list[Said] = [*start, ("user", "two"), ("assistant", "2")]
        common = conversation("common", 10)
        await client.record([*one, *common, ("user", "next")])
        await client.record([*two, ("user", "next")])
        recorded = await client.record([*two, *common, ("user", "next")])
        texts = [text for _, text in [*two, *common, ("user", "next")]]
        assert await texts_on(store, recorded) == texts

    @pytest.mark.parametrize("shared_count", [1, 2, 3])
    @pytest.mark.parametrize("earlier_count", [0, 3])
    async def test_conversations_that_share_some_words_are_two(
        self, store: SqliteStore, client: Client, shared_count: int, earlier_count: int
    ) -> None:
        """CASES H1: a script that asks the same of every document."""
        shared: list[Said] = [
            ("assistant", "Understood."),
            ("user", "Summarise it."),
            ("assistant", "Which part?"),
        ]
        earlier = conversation("earlier", earlier_count)
        one: list[Said] = [*earlier, ("user", "document one"), *shared[:shared_count]]
        first = await client.ask([*one, ("user", "the end")], "one ends well")
        second = await client.ask(
            [("user", "document two"), *shared[:shared_count], ("user", "the end")], "badly"
        )
        assert second.thread_id != first.thread_id
        assert second.matched_by == "new"

    async def test_changing_system_text_does_not_split_a_conversation(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H2 (billion-context#61)."""
        monday = Client(store, system_texts=("Today is Monday.",), name="m")
        tuesday = Client(store, system_texts=("Today is Tuesday.", "Be brief."), name="t")
        first = await monday.ask([("user", "a")], "b")
        second = await tuesday.record([("user", "a"), ("assistant", "b"), ("user", "c")])
        assert first.thread_id == second.thread_id

    async def test_an_edited_message_opens_a_branch_and_the_dead_one_is_off_the_path(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H5."""
        said = conversation("a", 3)
        await replay(client, said)
        edited = await client.record([*said[:2], ("user", "edited")])
        assert edited.has_forked
        assert await texts_on(store, edited) == [*(text for _, text in said[:2]), "edited"]
        assert await live_texts(store, edited.thread_no) == await texts_on(store, edited)

    async def test_a_regenerated_answer_opens_a_branch(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H5."""
        said = conversation("a", 2)
        recorded = await replay(client, said)
        again = await client.record(said[:-1])
        [event] = await client.finish(again, reply("better"))
        assert event.branch_id != recorded.path[-1].branch_id
        texts = await live_texts(store, recorded.thread_no)
        assert texts == [*(text for _, text in said[:-1]), "better"]

    async def test_an_edit_in_the_middle_of_a_kept_transcript_is_a_branch(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H5: the edited words are live, and the words they replaced are not."""
        said = conversation("a", 6)
        await replay(client, said)
        edited: list[Said] = [*said[:4], ("user", "edited"), *said[5:], ("user", "next")]
        recorded = await client.record(edited)
        assert recorded.has_forked
        assert recorded.matched_by == "content"
        assert await texts_on(store, recorded) == [text for _, text in edited]

    async def test_a_client_that_shortens_old_tool_results_stays_on_its_path(
        self, store: SqliteStore, client: Client
    ) -> None:
        said: list[Said] = []
        for number in range(8):
            said += [("assistant", f"call {number}"), ("tool", f"long result {number}")]
        said.insert(0, ("user", "task"))
        await client.record(said)
        shortened = [
            (role, "[cleared]" + text if role == "tool" and int(text[-1]) < 4 else text)
            for role, text in said
        ]
        recorded = await client.record([*shortened, ("user", "next")])
        assert not recorded.has_forked
        assert (recorded.matched_by, recorded.new_count) == ("overlap", 1)
        assert recorded.positions == tuple(range(18))
        assert await texts_on(store, recorded) == [*(text for _, text in said), "next"]

    async def test_deleting_the_last_messages_goes_back_on_the_path(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H5."""
        said = conversation("a", 3)
        await replay(client, said)
        recorded = await client.record(said[:3])
        assert (recorded.new_count, recorded.has_forked) == (0, False)
        assert await live_texts(store, recorded.thread_no) == [text for _, text in said[:3]]

    @pytest.mark.parametrize("known_count", [1, 2, 3, 4, 9, 10, 63, 64, 65, 100, 199])
    async def test_any_length_of_known_start_is_found(
        self, store: SqliteStore, client: Client, known_count: int
    ) -> None:
        said = conversation("a", 100)
        await client.record(said)
        new: list[Said] = [("user", "new")]
        recorded = await client.record([*said[:known_count], *new])
        assert recorded.new_count == 1
        assert await texts_on(store, recorded) == [text for _, text in [*said[:known_count], *new]]

    async def test_a_transcript_without_a_session_prefers_a_thread_without_one(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 2)
        free = await replay(client, said)
        await replay(client.with_session("s"), said)
        assert (await client.record([*said, ("user", "c")])).thread_id == free.thread_id


class TestBySession:
    async def test_equal_transcripts_of_two_sessions_are_two_threads(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 2)
        one = await replay(client.with_session("one"), said)
        two = await replay(client.with_session("two"), said)
        assert one.thread_id != two.thread_id
        assert set(one.event_seqs).isdisjoint(two.event_seqs)

    async def test_a_session_counts_only_inside_its_collection(self, store: SqliteStore) -> None:
        """CASES H3 (claude-code-hub PR#793)."""
        one = Client(store, "one", "s", name="x")
        two = Client(store, "two", "s", name="y")
        await one.ask([("user", "mine")], "a")
        theirs = await two.record([("user", "hello")])
        assert theirs.matched_by == "new"
        assert await texts_on(store, theirs) == ["hello"]

    async def test_a_threads_own_id_is_taken_for_its_session(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await client.ask([("user", "a")], "b")
        following = await client.with_session(first.thread_id).record([("user", "c")])
        assert following.thread_id == first.thread_id
        assert await texts_on(store, following) == ["a", "b", "c"]

    async def test_an_unknown_transcript_in_a_whole_transcript_session_is_a_new_root(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        await replay(session, conversation("a", 3))
        fresh = await session.record([("user", "after a reset")])
        assert (fresh.has_forked, fresh.matched_by) == (True, "session")
        assert await texts_on(store, fresh) == ["after a reset"]

    async def test_a_summary_in_place_of_all_that_was_said_keeps_a_sessions_past(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", 3)
        await replay(session, said)
        cut: list[Said] = [("user", "SUMMARY"), ("assistant", "I see."), ("user", "next")]
        first = await session.ask(cut, "reply")
        assert (first.has_forked, first.positions, first.new_count) == (False, (-1, -1, 6), 3)
        second = await session.record([*cut, ("assistant", "reply"), ("user", "on")])
        assert (second.positions, second.new_count) == ((-1, -1, 6, 7, 8), 1)
        texts = [*(text for _, text in said), "next", "reply", "on"]
        assert await texts_on(store, second) == texts
        edited = await session.record([*cut[:-1], ("user", "something else")])
        assert (edited.positions, edited.new_count) == ((-1, -1, 6), 1)
        assert await texts_on(store, edited) == [*(text for _, text in said), "something else"]

    @pytest.mark.parametrize("kept", [slice(0, 1), slice(0, None, 2)], ids=["first", "users"])
    async def test_a_summary_behind_what_its_user_said_keeps_a_sessions_past(
        self, store: SqliteStore, client: Client, kept: slice
    ) -> None:
        """Codex keeps all messages of the user, and its summary is one more of them."""
        session = client.with_session("s")
        said = conversation("a", 3)
        await replay(session, said)
        cut: list[Said] = [*said[kept], ("user", "SUMMARY"), ("user", "next")]
        first = await session.ask(cut, "reply")
        assert (first.has_forked, first.positions[0], first.positions[-1]) == (False, 0, 6)
        assert (await session.record(cut)).event_seqs == first.event_seqs
        second = await session.ask([*cut, ("assistant", "reply"), ("user", "on")], "and on")
        assert (second.positions[-3:], second.new_count) == ((6, 7, 8), 1)
        again: list[Said] = [*cut[:-2], ("user", "next"), ("user", "SUMMARY 2"), ("user", "still?")]
        third = await session.record(again)
        texts = [*(text for _, text in said), "next", "reply", "on", "and on", "still?"]
        assert await texts_on(store, third) == texts

    async def test_an_edit_of_a_sessions_second_message_is_no_summary(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        said: list[Said] = [("user", "context"), *conversation("a", 3)]
        for end in (2, 4, 6):
            await session.ask(said[:end], said[end][1])
        edited = await session.record([said[0], ("user", "something else")])
        assert edited.has_forked
        assert await texts_on(store, edited) == ["context", "something else"]

    @pytest.mark.parametrize(
        "form", [("You are helpful.", "{}"), ("You are helpful.\n\n{}",)], ids=["two", "one"]
    )
    async def test_a_summary_in_a_system_message_keeps_a_sessions_past(
        self, store: SqliteStore, client: Client, form: tuple[str, ...]
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", 3)
        await replay(session, said)

        def summed_up(summary: str) -> Client:
            texts = tuple(text.format(summary) for text in form)
            return replace(session, system_texts=texts)

        cut = summed_up("SUMMARY")
        first = await cut.ask([("user", "next")], "reply")
        assert (first.has_forked, first.positions, first.new_count) == (False, (6,), 1)
        assert (await cut.record([("user", "next")])).event_seqs == first.event_seqs
        more: list[Said] = [("user", "next"), ("assistant", "reply"), ("user", "on")]
        second = await cut.ask(more, "and on")
        assert (second.positions, second.new_count) == ((6, 7, 8), 1)
        third = await summed_up("another SUMMARY").record([("user", "still there?")])
        texts_now = [*(text for _, text in said), "next", "reply", "on", "and on", "still there?"]
        assert await texts_on(store, third) == texts_now

    async def test_a_system_text_that_is_only_another_one_is_no_summary(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES H2: today's date in it."""
        session = replace(client.with_session("s"), system_texts=("Today is the 3rd.",))
        await replay(session, conversation("a", 3))
        fresh = await replace(session, system_texts=("Today is the 4th.",)).record([("user", "hi")])
        assert await texts_on(store, fresh) == ["hi"]

    async def test_a_summary_without_a_session_is_a_conversation_of_its_own(
        self, store: SqliteStore, client: Client
    ) -> None:
        first = await replay(client, conversation("a", 3))
        other = await client.record([("user", "SUMMARY"), ("assistant", "I see."), ("user", "on")])
        assert other.thread_id != first.thread_id


class TestNewestOnly:
    async def test_single_messages_of_a_session_follow_one_another(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        for text in ("one", "two", "three"):
            recorded = await session.ask([("user", text)], f"answer to {text}")
        assert recorded.matched_by == "newest-only"
        assert recorded.positions == (4,)
        assert await live_texts(store, recorded.thread_no) == [
            "one", "answer to one", "two", "answer to two", "three", "answer to three",
        ]  # fmt: skip

    async def test_a_message_equal_to_an_earlier_one_is_appended(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        for number, text in enumerate(("go", "stop", "go", "go")):
            recorded = await session.ask([("user", text)], f"answer {number}")
        assert (await live_texts(store, recorded.thread_no))[::2] == [
            "go", "stop", "go", "go",
        ]  # fmt: skip

    async def test_a_first_message_that_is_said_again_under_another_name_is_another_one(
        self, store: SqliteStore, client: Client
    ) -> None:
        """Without names it cannot be told from a first answer that is asked for anew."""
        session = client.with_session("s")
        for number in range(3):
            said = [message("user", "go", event_id=f"m{number}")]
            recorded = await session.record(said)
            assert (await session.record(said)).event_seqs == recorded.event_seqs
            await session.finish(recorded, reply(f"answer {number}"))
        assert await live_texts(store, recorded.thread_no) == [
            "go", "answer 0", "go", "answer 1", "go", "answer 2",
        ]  # fmt: skip

    @pytest.mark.parametrize("state", [None, TurnState.FAILED, TurnState.ABANDONED])
    async def test_a_retry_before_a_finished_reply_is_the_same_message(
        self, store: SqliteStore, client: Client, state: TurnState | None
    ) -> None:
        session = client.with_session("s")
        await session.ask([("user", "one")], "1")
        first = await session.record([("user", "two")])
        if state is not None:
            partial = [reply("par", is_partial=True)] if state is TurnState.ABANDONED else []
            await session.finish(first, *partial, state=state)
        again = await session.record([("user", "two")])
        assert (again.event_seqs, again.new_count) == (first.event_seqs, 0)
        await session.finish(again, reply("2"))
        assert await live_texts(store, first.thread_no) == ["one", "1", "two", "2"]

    async def test_a_tool_result_sent_alone_follows_its_call(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        await session.ask([("user", "one")], "1")
        await session.ask([("user", "two")], "call")
        recorded = await session.record([("tool", "result")])
        assert await texts_on(store, recorded) == ["one", "1", "two", "call", "result"]


class TestTrimmed:
    async def test_a_client_that_cut_its_own_history_is_recognised(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 20)
        await replay(client, said)
        cut = said[25:]
        recorded = await client.record([*cut, ("user", "next")])
        assert (recorded.matched_by, recorded.new_count) == ("overlap", 1)
        assert recorded.positions == tuple(range(25, 41))
        assert await texts_on(store, recorded) == [*(text for _, text in said), "next"]

    async def test_the_next_request_of_a_trimming_client_finds_the_anchor(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 20)
        await replay(client, said)
        transcript = [("user", "SUMMARY"), *said[30:]]
        for number in range(5):
            transcript.append(("user", f"more {number}"))
            recorded = await client.ask(transcript, f"reply {number}")
            transcript.append(("assistant", f"reply {number}"))
            assert recorded.new_count == (2 if number == 0 else 1)
            assert not recorded.has_forked
            assert recorded.positions == (-1, *range(30, 41 + 2 * number))
        again = await client.record(transcript[:-1])
        assert (again.new_count, again.event_seqs) == (0, recorded.event_seqs)
        texts = await all_texts(store, recorded.thread_id)
        assert len(texts) == len(set(texts)) == 51

    async def test_what_a_whole_transcript_said_before_is_not_said_again_by_a_trimmed_one(
        self, store: SqliteStore, client: Client
    ) -> None:
        """CASES E3, H: the same question, once by a client that trims and once by one that does
        not; and once more from further back."""
        said = conversation("a", 20)
        await replay(client, said)
        trimmed: list[Said] = [("user", "SUMMARY"), *said[30:], ("user", "next")]
        await client.ask(trimmed, "reply")
        after: list[Said] = [("user", "next"), ("assistant", "reply"), ("user", "on")]
        whole = await client.record([*said, *after])
        again = await client.record([*trimmed[:-1], *after])
        assert (again.new_count, again.event_seqs[-1]) == (0, whole.event_seqs[-1])

    async def test_a_summary_after_going_back_repeats_nothing(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", 3)
        await replay(session, said)
        await session.record(said[:4])
        cut: list[Said] = [("user", "SUMMARY"), ("assistant", "I see."), said[4]]
        recorded = await session.record(cut)
        assert (recorded.new_count, recorded.positions) == (2, (-1, -1, 4))

    async def test_a_kept_first_message_stands_at_its_place_before_a_summary(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 20)
        await replay(client, said)
        recorded = await client.record([said[0], ("user", "SUMMARY"), *said[30:], ("user", "next")])
        assert recorded.positions == (0, -1, *range(30, 41))
        assert recorded.new_count == 2
        assert "SUMMARY" not in await texts_on(store, recorded)

    async def test_a_summary_that_grows_keeps_the_path(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 20)
        await replay(client, said)
        for number in range(5):
            start = 20 + 2 * number
            recorded = await client.ask(
                [("user", f"SUMMARY {number}"), *said[start:], ("user", f"more {number}")],
                f"reply {number}",
            )
            said += [("user", f"more {number}"), ("assistant", f"reply {number}")]
            assert not recorded.has_forked
        assert await live_texts(store, recorded.thread_no) == [text for _, text in said]

    async def test_one_unique_answer_is_enough_and_one_short_question_is_not(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 5)
        first = await replay(client, said)
        by_answer = await client.record([said[-1], ("user", "and then")])
        assert by_answer.thread_id == first.thread_id
        by_question = await client.record([said[4], ("user", "and then")])
        assert by_question.matched_by == "new"

    async def test_a_trimmed_session_stays_in_its_thread(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", 20)
        first = await replay(session, said)
        await replay(client.with_session("other"), said)
        recorded = await session.record([("user", "SUMMARY"), *said[30:], ("user", "next")])
        assert (recorded.thread_id, recorded.matched_by) == (first.thread_id, "overlap")
        assert len(await path_of(store, recorded)) == 41

    async def test_a_trimmed_transcript_that_goes_elsewhere_forks_there(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 20)
        await replay(client, said)
        recorded = await client.record([*said[20:31], ("assistant", "other"), ("user", "on")])
        assert recorded.has_forked
        texts = await texts_on(store, recorded)
        assert texts == [*(text for _, text in said[:31]), "other", "on"]


class TestEditedStart:
    """CASES H5: nothing was cut where the rest stands at its place, so the start was edited."""

    @pytest.mark.parametrize("edited_count", [1, 2, 3, 4])
    @pytest.mark.parametrize("turn_count", [7, 15])
    async def test_an_edit_of_the_first_messages_is_a_branch_of_its_thread(
        self, store: SqliteStore, client: Client, edited_count: int, turn_count: int
    ) -> None:
        said = conversation("a", turn_count)
        first = await replay(client, said)
        edited = [(role, f"edited {text}") for role, text in said[:edited_count]]
        now = [*edited, *said[edited_count:], ("user", "next")]
        recorded = await client.ask(now, "reply")
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, True)
        assert (recorded.matched_by, recorded.positions) == ("content", tuple(range(len(now))))
        texts = [text for _, text in now]
        assert await texts_on(store, recorded) == texts
        assert await live_texts(store, first.thread_no) == [*texts, "reply"]
        on = await client.record([*now, ("assistant", "reply"), ("user", "on")])
        assert (on.thread_id, on.new_count, on.has_forked) == (first.thread_id, 1, False)
        back = await client.record([*said, ("user", "back")])
        assert (back.thread_id, back.new_count) == (first.thread_id, 1)
        assert await texts_on(store, back) == [*(text for _, text in said), "back"]

    @pytest.mark.parametrize("turn_count", [2, 4, 15])
    async def test_an_edit_of_a_sessions_first_message_is_a_branch_however_little_follows(
        self, store: SqliteStore, client: Client, turn_count: int
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", turn_count)
        first = await replay(session, said)
        now: list[Said] = [("user", "edited"), *said[1:], ("user", "next")]
        recorded = await session.record(now)
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, True)
        assert await texts_on(store, recorded) == [text for _, text in now]
        assert await live_texts(store, first.thread_no) == [text for _, text in now]

    async def test_an_edit_of_the_first_message_and_a_later_one_is_one_branch(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = conversation("a", 15)
        first = await replay(client, said)
        now: list[Said] = [("user", "edited"), *said[1:21], ("user", "too"), *said[22:]]
        recorded = await client.record([*now, ("user", "next")])
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, True)
        assert await texts_on(store, recorded) == [*(text for _, text in now), "next"]

    async def test_first_results_that_a_client_shortened_are_no_edit(
        self, store: SqliteStore, client: Client
    ) -> None:
        said: list[Said] = [("tool", "long result"), *conversation("a", 8)]
        first = await client.record(said)
        recorded = await client.record([("tool", "[cleared]"), *said[1:], ("user", "next")])
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, False)
        assert await texts_on(store, recorded) == [*(text for _, text in said), "next"]

    async def test_a_text_whose_first_piece_lost_its_beginning_was_cut_and_not_edited(
        self, store: SqliteStore, client: Client
    ) -> None:
        """DESIGN 4.2: a client that drops the oldest lines of a text; all pieces are the user's."""
        pieces: list[Said] = [("user", f"line {n}. line {n} and a half.") for n in range(12)]
        first = await client.record(pieces)
        cut: list[Said] = [("user", "line 0 and a half."), *pieces[1:], ("user", "next")]
        recorded = await client.record(cut)
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, False)
        assert await texts_on(store, recorded) == [*(text for _, text in pieces), "next"]
        edited = await client.record([("user", "line 0 and a third."), *pieces[1:]])
        assert (edited.thread_id, edited.has_forked) == (first.thread_id, True)

    async def test_a_deletion_inside_the_first_message_of_a_chat_is_an_edit(
        self, store: SqliteStore, client: Client
    ) -> None:
        said = [("user", "The code is 1101. Keep it."), *conversation("a", 6)[1:]]
        first = await replay(client, said)
        now: list[Said] = [("user", "Keep it."), *said[1:], ("user", "next")]
        recorded = await client.record(now)
        assert (recorded.thread_id, recorded.has_forked) == (first.thread_id, True)
        assert await texts_on(store, recorded) == [text for _, text in now]

    async def test_another_summary_before_what_stood_behind_the_first_one_is_no_edit(
        self, store: SqliteStore, client: Client
    ) -> None:
        session = client.with_session("s")
        said = conversation("a", 6)
        await replay(session, said)
        rest = conversation("kept", 5)
        await session.record([("user", "SUMMARY"), *rest, ("user", "next")])
        recorded = await session.record([("user", "SUMMARY 2"), *rest, ("user", "on")])
        assert not recorded.has_forked
        assert await texts_on(store, recorded) == [*(text for _, text in said), "next", "on"]
