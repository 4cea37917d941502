"""Going on from a reply by its name: it is placed, not guessed (CASES H4, H5)."""

from dataclasses import replace

import pytest

from library.errors import UnknownRecord
from library.records import HEAD, Follows, IncomingTurn, RecordedTurn, TurnState
from library.store.sqlite import SqliteStore
from tests.contract.conversation import START, Client, Said, reply


async def follow(client: Client, follows: Follows, *said: Said) -> RecordedTurn:
    turn: IncomingTurn = replace(client.turn(said), follows=follows)
    return await client.store.record_turn(turn)


async def end(client: Client, turn: RecordedTurn, answer: str | None, *names: str) -> None:
    await client.store.finish_turn(
        turn.turn_id,
        state=TurnState.DONE,
        replies=[reply(answer)] if answer else [],
        report=b"{}",
        prompt_state=None,
        ended_at=START,
        names=names,
    )


async def ids(client: Client) -> int:
    return await client.store.collection_id(client.collection)


async def texts(client: Client, name: str) -> list[str]:
    found = await client.store.names.reply(name, collection_id=await ids(client))
    events = await client.store.path_events(found.path, before_position=1_000, limit=1_000)
    return [event.text for event in events]


async def test_a_reply_is_found_by_its_name_as_soon_as_it_is_stored(client: Client) -> None:
    """CASES H4."""
    first = await client.record([("user", "one")])
    await end(client, first, "1", "resp_1", "msg_1")
    assert await texts(client, "resp_1") == ["one", "1"]
    found = await client.store.names.reply("resp_1", collection_id=await ids(client))
    assert (found.turn_id, found.is_reply) == (first.turn_id, True)
    assert await texts(client, first.turn_id) == ["one", "1"]
    seqs = await client.store.names.seqs(["msg_1", "nobody"], collection_id=await ids(client))
    assert seqs == {"msg_1": found.seq}


async def test_messages_go_behind_the_reply_that_they_name(client: Client) -> None:
    first = await client.record([("user", "one")])
    await end(client, first, "1", "resp_1")
    named = await client.store.names.reply("resp_1", collection_id=await ids(client))
    second = await follow(client, named.seq, ("user", "two"))
    await end(client, second, "2", "resp_2")
    assert second.thread_no == first.thread_no
    assert second.matched_by == "newest-only"
    assert await texts(client, "resp_2") == ["one", "1", "two", "2"]


async def test_going_on_twice_from_one_reply_makes_a_branch(client: Client) -> None:
    """CASES H5."""
    first = await client.record([("user", "one")])
    await end(client, first, "1", "resp_1")
    named = await client.store.names.reply("resp_1", collection_id=await ids(client))
    await end(client, await follow(client, named.seq, ("user", "left")), "l", "resp_left")
    right = await follow(client, named.seq, ("user", "right"))
    await end(client, right, "r", "resp_right")
    assert right.has_forked
    assert await texts(client, "resp_left") == ["one", "1", "left", "l"]
    assert await texts(client, "resp_right") == ["one", "1", "right", "r"]
    live = await client.store.live_path(first.thread_no)
    assert [event.text for event in await client.store.path_events(
        live, before_position=1_000, limit=9
    )] == ["one", "1", "right", "r"]  # fmt: skip


async def test_a_retry_behind_a_named_reply_is_recorded_once(client: Client) -> None:
    """CASES E3."""
    await end(client, await client.record([("user", "one")]), "1", "resp_1")
    named = await client.store.names.reply("resp_1", collection_id=await ids(client))
    first = await follow(client, named.seq, ("user", "two"))
    again = await follow(client, named.seq, ("user", "two"))
    assert (first.new_count, again.new_count) == (1, 0)
    assert first.event_seqs == again.event_seqs


async def test_the_words_of_an_earlier_reply_are_no_reason_to_go_elsewhere(client: Client) -> None:
    """CASES H1: what its client names is not found by content."""
    await end(client, await client.record([("user", "hello")]), "hi", "resp_1")
    named = await client.store.names.reply("resp_1", collection_id=await ids(client))
    second = await follow(client, named.seq, ("user", "hello"))
    await end(client, second, "hi", "resp_2")
    assert await texts(client, "resp_2") == ["hello", "hi", "hello", "hi"]


async def test_a_session_goes_on_at_its_head_though_the_words_were_said_before(
    client: Client,
) -> None:
    named = client.with_session("conv_1")
    await end(named, await follow(named, HEAD, ("user", "go on")), "first", "resp_1")
    await end(named, await follow(named, HEAD, ("user", "go on")), "second", "resp_2")
    assert await texts(named, "resp_2") == ["go on", "first", "go on", "second"]


async def test_a_reply_without_words_is_named_all_the_same(client: Client) -> None:
    turn = await client.record([("user", "one")])
    await end(client, turn, None, "resp_1")
    found = await client.store.names.reply("resp_1", collection_id=await ids(client))
    assert not found.is_reply
    assert await texts(client, "resp_1") == ["one"]


async def test_a_request_may_follow_a_reply_with_system_text_alone(client: Client) -> None:
    await end(client, await client.record([("user", "one")]), "1", "resp_1")
    named = await client.store.names.reply("resp_1", collection_id=await ids(client))
    turn = await follow(client, named.seq)
    await end(client, turn, "again", "resp_2")
    assert await texts(client, "resp_2") == ["one", "1", "again"]


async def test_what_held_for_one_request_alone_is_not_handed_on(client: Client) -> None:
    turn = replace(
        client.turn([("user", "one")]),
        system_texts=("Only now.", "Always."),
        instruction_count=1,
    )
    await end(client, await client.store.record_turn(turn), "1", "resp_1")
    found = await client.store.names.reply("resp_1", collection_id=await ids(client))
    assert found.system_texts == ("Always.",)


async def test_a_name_is_known_in_its_own_collection_only(client: Client) -> None:
    """CASES H3."""
    await end(client, await client.record([("user", "one")]), "1", "resp_1")
    other = await client.store.collection_id("other")
    with pytest.raises(UnknownRecord, match="resp_1"):
        await client.store.names.reply("resp_1", collection_id=other)
    assert await client.store.names.seqs(["resp_1"], collection_id=other) == {}


async def test_a_name_can_be_taken_away_and_the_words_stay(
    client: Client, store: SqliteStore
) -> None:
    turn = await client.record([("user", "one")])
    await end(client, turn, "1", "resp_1")
    collection_id = await ids(client)
    assert await store.names.remove("resp_1", collection_id=collection_id)
    assert not await store.names.remove("resp_1", collection_id=collection_id)
    with pytest.raises(UnknownRecord):
        await store.names.reply("resp_1", collection_id=collection_id)
    assert await texts(client, turn.turn_id) == ["one", "1"]


async def test_a_name_goes_with_its_thread(client: Client, store: SqliteStore) -> None:
    turn = await client.record([("user", "one")])
    await end(client, turn, "1", "resp_1")
    named = await store.names.reply("resp_1", collection_id=await ids(client))
    await store.forget_thread(turn.thread_id, collection_id=None)
    with pytest.raises(UnknownRecord):
        await store.names.reply("resp_1", collection_id=await ids(client))
    with pytest.raises(UnknownRecord):
        await follow(client, named.seq, ("user", "two"))
