"""CASES H: which conversation a request belongs to, with and without a header."""

from typing import Any

import pytest

from tests.e2e.answers import Json, said
from tests.e2e.conftest import Ask
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import CHAT, MESSAGES, Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import (
    MODEL,
    Client,
    assistant,
    filler,
    small_talk,
    system,
    texts,
    tool_steps,
    user,
)


@in_each_protocol
def test_two_conversations_with_one_start_are_two_from_where_they_differ(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES H1 (headroom#1808)."""
    start = [system("Be brief."), user(f"{topic} hello")]
    reply, _ = ask(start)
    again, _ = ask(start)
    assert reply.text == again.text
    common = [*start, assistant(reply.text)]
    one = [*common, user(f"{topic} the heron vault opens with 5521"), assistant("I see.")]
    two = [*common, user(f"{topic} nothing special today"), assistant("I see.")]
    ask([*one, user("ok")])
    ask([*two, user("ok")])
    gateway.wait_indexed()
    tails = [*small_talk(topic, turns=12), user("What opens the heron vault?")]
    _, knows = ask([*one, user("ok"), assistant("k"), *tails], budget=1_200)
    _, does_not = ask([*two, user("ok"), assistant("k"), *tails], budget=1_200)
    assert "5521" in texts(knows.messages)
    assert "5521" not in texts(does_not.messages)


@in_each_protocol
def test_a_conversation_that_began_alike_is_recalled_from_the_project_and_an_edit_is_not(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES H1 (headroom#1808), H5: a live conversation is one, whatever its first words were."""
    start = [user(f"{topic} hello")]
    reply, _ = ask(start)
    talk = [*start, assistant(reply.text), user(f"{topic} the plover lamp was 9941")]
    edited_away, _ = ask(talk)
    talk[-1] = user(f"{topic} the heron vault opens with 5521")
    first, _ = ask(talk)
    again, _ = ask(start)
    assert first.thread_id == edited_away.thread_id != again.thread_id
    gateway.wait_indexed()
    talk = [*start, assistant(again.text), *small_talk(topic, turns=12)]
    question = user("What opens the heron vault, and what was the plover lamp?")
    second, seen = ask([*talk, question], budget=1_200, headers={"x-library-recall": "project"})
    assert second.thread_id == again.thread_id
    assert "5521" in texts(seen.messages)
    assert "9941" not in texts(seen.messages)


@in_each_protocol
def test_a_conversation_that_is_run_again_word_for_word_is_the_older_one_as_the_readme_says(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES H1 (two from where they differ), DESIGN 4.2 (the longest stored run)."""

    def run(**more: Any) -> list[tuple[str, int]]:
        talk: list[Json] = []
        went = []
        for words in ("hello", "where is the heron?", "and the plover?"):
            talk.append(user(f"{topic} {words}"))
            reply, _ = ask(talk, **more)
            talk.append(assistant(reply.text))
            went.append((reply.thread_id, gateway.report(reply.turn_id)["events_new"]))
        return went

    [(older, _), *_] = run()
    [(own, _), *rest] = run()
    assert own != older
    assert rest == [(older, 0)] * 2
    [(apart, _), *rest] = run(session=f"{topic}-apart")
    assert apart not in (own, older)
    assert rest == [(apart, 1)] * 2


@in_each_protocol
def test_two_equal_starts_with_their_own_sessions_share_nothing(ask: Ask, topic: str) -> None:
    """CASES H1 (headroom#1808)."""
    start = [user(f"{topic} hello")]
    one, _ = ask(start, session=f"{topic}-1")
    two, _ = ask(start, session=f"{topic}-2")
    assert one.thread_id != two.thread_id


@in_each_protocol
def test_a_volatile_system_text_does_not_split_a_conversation(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES H2 (billion-context#61)."""
    talk: list[Json] = []
    threads: set[str] = set()
    for day in range(1, 5):
        talk.append(user(f"{topic} day {day}"))
        reply, seen = ask([system(f"Today is 2026-11-{day:02}."), *talk])
        assert seen.messages[0]["content"] == f"Today is 2026-11-{day:02}."
        talk.append(assistant(reply.text))
        threads.add(reply.thread_id)
        assert gateway.report(reply.turn_id)["events_new"] == 1
    assert len(threads) == 1


@in_each_protocol
@pytest.mark.parametrize("tag", ["environment_context", "system-reminder"])
def test_a_volatile_block_in_the_first_message_does_not_split_a_conversation(
    ask: Ask, gateway: GatewayProcess, topic: str, tag: str
) -> None:
    """CASES H2 (billion-context#61): agents put the date into the user's own words."""
    later: list[Json] = []
    threads: set[str] = set()
    for day in range(1, 5):
        first = user(f"<{tag}>Today is 2026-11-{day:02}.</{tag}>\n{topic} {tag} begin")
        reply, seen = ask([first, *later])
        assert seen.messages[0] == first
        later += [assistant(reply.text), user(f"{topic} {tag} day {day}")]
        threads.add(reply.thread_id)
        assert gateway.report(reply.turn_id)["events_new"] == 1
    assert len(threads) == 1


@in_each_protocol
def test_a_first_message_of_surroundings_alone_neither_splits_nor_joins(
    ask: Ask, topic: str
) -> None:
    """CASES H1 and H2: all of an agent's conversations in one folder begin alike."""

    def began(day: int) -> Json:
        return user(f"<environment_context><date>{day}</date></environment_context>")

    one, _ = ask([began(1), user(f"{topic} mend the parser")])
    two, _ = ask([began(1), user(f"{topic} write the readme")])
    assert one.thread_id != two.thread_id
    talk = [user(f"{topic} mend the parser"), assistant(one.text), user(f"{topic} go on")]
    again, seen = ask([began(2), *talk])
    assert again.thread_id == one.thread_id
    assert seen.messages[0] == began(2)


@in_each_protocol
def test_the_very_next_request_sees_the_turn_before(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES H4 (litellm#12364): on a new connection, with no pause, forty times."""
    secrets = [f"{topic} fact {n}" for n in range(40)]
    for number, secret in enumerate(secrets):
        other = Client(gateway.url)
        reply = other.chat([user(secret)], session=topic)
        assert reply.status == 200
        known = texts(upstream.last.messages)
        assert all(earlier in known for earlier in secrets[max(0, number - 5) : number])


@in_each_protocol
def test_a_client_that_sends_only_its_newest_message_chats_on(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """Issue 2, reconciliation: with X-Library-Session."""
    first, _ = ask([system("s"), user(f"{topic} one")], session=topic)
    second, seen = ask([system("s"), user(f"{topic} two")], session=topic)
    assert second.thread_id == first.thread_id
    assert gateway.report(second.turn_id)["matched_by"] == "newest-only"
    assert seen.messages == [
        system("s"),
        user(f"{topic} one"),
        assistant(first.text),
        user(f"{topic} two"),
    ]
    third, _ = ask(
        [
            system("s"),
            user(f"{topic} one"),
            assistant(first.text),
            user(f"{topic} two"),
            assistant(second.text),
            user(f"{topic} three"),
        ],
        session=topic,
    )
    rows = [row for row in gateway.events() if row["thread_id"] == third.thread_id]
    assert len(rows) == 6


@in_each_protocol
@pytest.mark.parametrize("kept", [1, 3, 9])
def test_a_client_that_trims_its_own_history_stays_in_its_thread(
    ask: Ask, gateway: GatewayProcess, topic: str, kept: int
) -> None:
    """DESIGN 4.2: matched by overlap with a stored chain."""
    talk = [*small_talk(topic, turns=10), user(f"{topic} so?")]
    first, _ = ask(talk, budget=4_000)
    talk += [assistant(first.text), user("and then?")]
    trimmed = [system("s"), *talk[-(kept * 2 + 1) :]]
    second, _ = ask(trimmed)
    assert second.thread_id == first.thread_id
    report = gateway.report(second.turn_id)
    assert report["matched_by"] == "overlap"
    assert report["events_new"] == 1


@in_each_protocol
def test_a_client_that_puts_its_own_summary_first_stays_in_its_thread(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 4.2: compaction by the client."""
    talk = [*small_talk(topic, turns=10), user("so?")]
    first, _ = ask(talk)
    summary = user(f"{topic}: summary of the talk so far")
    after = [summary, *talk[-5:], assistant(first.text), user("and then?")]
    second, _ = ask(after)
    assert second.thread_id == first.thread_id


@in_each_protocol
def test_a_session_whose_client_summarised_everything_keeps_its_past(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 4.2: compaction with nothing left of what was said, as coding agents do it."""
    talk = [user(f"{topic} the attic hatch opens with 6612"), assistant("Saved.")]
    ask([*talk, *small_talk(topic, turns=12), user("ok?")], session=topic, budget=1_000)
    gateway.wait_indexed()
    cut = [user(f"{topic}: summary of all so far"), assistant("Understood.")]
    for question in ("what opens the attic hatch?", "and once more, the attic hatch?"):
        cut.append(user(question))
        reply, seen = ask(cut, session=topic, budget=1_000)
        assert "6612" in texts(seen.messages)
        assert not gateway.report(reply.turn_id)["has_forked"]
        cut.append(assistant(reply.text))
    assert gateway.cli("verify").stdout.startswith("OK")


@in_each_protocol
def test_a_client_that_sends_its_last_messages_only_keeps_one_thread(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 4.2: a sliding window of the client's own; each message is stored once."""
    talk = [user(f"{topic} the bicycle lock is 9931"), assistant("Saved.")]
    threads: set[str] = set()
    for turn in range(25):
        talk.append(user(f"{topic} {turn}: {filler(f'{topic}{turn}', words=20)}"))
        reply, _ = ask(talk[-7:], budget=1_000)
        threads.add(reply.thread_id)
        talk.append(assistant(reply.text))
    gateway.wait_indexed()
    reply, seen = ask([*talk[-6:], user("which number has the bicycle lock?")], budget=1_000)
    assert {reply.thread_id} == threads
    assert "9931" in texts(seen.messages)
    rows = [row for row in gateway.events() if row["thread_id"] == reply.thread_id]
    assert [reply.protocol.stored(row["body"]) for row in rows][: len(talk)] == talk


def edited(talk: list[Json]) -> list[Json]:
    return [*talk[:2], user("the otter gate opens with 7702"), assistant("noted, new"), user("ok?")]


def regenerated(talk: list[Json]) -> list[Json]:
    return [*talk[:3], assistant("noted, once more"), user("ok?")]


def deleted(talk: list[Json]) -> list[Json]:
    return [*talk[:2], user("forget it, something else"), assistant("fine"), user("ok?")]


@in_each_protocol
@pytest.mark.parametrize("change", [edited, regenerated, deleted], ids=lambda f: f.__name__)
def test_an_edit_a_regeneration_and_a_deletion_make_a_branch_and_the_dead_one_is_not_recalled(
    ask: Ask, gateway: GatewayProcess, upstream: StubUpstream, topic: str, change: object
) -> None:
    """CASES H5."""
    assert callable(change)
    dead_word = f"{topic} kestrel"
    upstream.script(said(f"the old gate code is 1101 {dead_word}"))
    talk = [user(topic), assistant("hi"), user("the otter gate opens with 1101")]
    first, _ = ask(talk)
    talk += [assistant(first.text), user("ok?")]
    ask(talk)
    gateway.wait_indexed()
    changed = change(talk)
    second, _ = ask(changed)
    report = gateway.report(second.turn_id)
    assert second.thread_id == first.thread_id
    assert report["has_forked"]
    gateway.wait_indexed()
    tail = [assistant(second.text), *small_talk(topic, turns=12)]
    question = user("what opens the otter gate, was there a kestrel?")
    _, seen = ask([*changed, *tail, question], budget=1_200)
    known = texts(seen.messages)
    assert dead_word not in known
    assert ("7702" in known) == (change is edited)
    assert ("opens with 1101" in known) == (change is regenerated)


@in_each_protocol
@pytest.mark.parametrize("named", [False, True], ids=["by content", "session"])
@pytest.mark.parametrize("edited_count", [1, 2])
def test_an_edit_of_the_first_messages_makes_a_branch_and_the_dead_one_is_not_recalled(
    ask: Ask, gateway: GatewayProcess, topic: str, edited_count: int, named: bool
) -> None:
    """CASES H5: all that stands behind them is as it was, and no history was cut."""
    more: Json = {"session": f"{topic}-s"} if named else {}
    start = [user(f"{topic}: the spare fuse is in the red tin."), assistant("Noted.")]
    talk = [*start, *small_talk(topic, turns=14)]
    question = user("Where is the spare fuse?")
    first, _ = ask([*talk, question], budget=1_200, **more)
    gateway.wait_indexed()
    talk[0] = user(f"{topic}: the spare fuse is in the glove box.")
    if edited_count == 2:
        talk[1] = assistant("Noted, the glove box.")
    second, _ = ask([*talk, question], budget=1_200, **more)
    assert second.thread_id == first.thread_id
    assert gateway.report(second.turn_id)["has_forked"]
    gateway.wait_indexed()
    _, seen = ask([*talk, question], budget=1_200, **more)
    known = texts(seen.messages)
    assert "glove box" in known
    assert "red tin" not in known


@in_each_protocol
def test_going_back_to_an_old_branch_makes_it_the_live_one(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES H5."""
    base = [user(topic), assistant("hi")]
    left, _ = ask([*base, user("left")])
    right, _ = ask([*base, user("right")])
    back, _ = ask([*base, user("left"), assistant(left.text), user("on")])
    assert left.thread_id == right.thread_id == back.thread_id
    assert gateway.report(back.turn_id)["events_new"] == 1
    branches = {gateway.report(r.turn_id)["branch_id"] for r in (left, right, back)}
    assert len(branches) == 2


def spelled(protocol: Protocol, text: str, *, is_reply: bool) -> Json:
    """Return a message as a client that is not the first one might write it."""
    role = "assistant" if is_reply else "user"
    if protocol is CHAT:
        more = {"refusal": None, "tool_calls": None} if is_reply else {}
        return {"content": text, "role": role, **more}
    part: Json = {"text": text, "type": "text"}
    if protocol is MESSAGES:
        return {"content": [part], "role": role}
    kind = "output_text" if is_reply else "input_text"
    return {"type": "message", "content": [part | {"type": kind}], "role": role}


@in_each_protocol
def test_another_spelling_of_a_known_message_is_not_a_new_one(
    ask: Ask, client: Client, gateway: GatewayProcess, topic: str, protocol: Protocol
) -> None:
    """DESIGN 4.2: the digest is of canonical JSON."""
    first, _ = ask([user(topic)])
    talk = [
        spelled(protocol, topic, is_reply=False),
        spelled(protocol, first.text, is_reply=True),
        *protocol.own([user("next")]),
    ]
    body = protocol.request({"model": MODEL, "messages": [user("x")]}) | {protocol.items: talk}
    second = client.http.post(protocol.path, json=body)
    assert second.headers["x-library-session"] == first.thread_id
    assert gateway.report(second.headers["x-library-turn"])["events_new"] == 1


@in_each_protocol
def test_the_same_words_said_again_are_a_new_event(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 1.6: once means once a place, not once a text."""
    talk: list[Json] = []
    for _ in range(3):
        talk.append(user(f"{topic} yes"))
        reply, _ = ask(talk)
        talk.append(assistant(reply.text))
    rows = [row for row in gateway.events() if row["thread_id"] == reply.thread_id]
    assert [reply.protocol.stored(row["body"]) for row in rows] == talk


@in_each_protocol
@pytest.mark.parametrize(
    ("kind", "headers", "fields"),
    [
        ("x-claude-code-session-id", {"x-claude-code-session-id": "S"}, {}),
        ("x-session-affinity", {"x-session-affinity": "S"}, {}),
        ("x-session-id", {"x-session-id": "S"}, {}),
        ("x-opencode-session", {"x-opencode-session": "S"}, {}),
        ("session_id", {"session_id": "S"}, {}),
        ("metadata.session_id", {}, {"metadata": {"session_id": "S"}}),
        ("metadata.conversation_id", {}, {"metadata": {"conversation_id": "S"}}),
        ("metadata.thread_id", {}, {"metadata": {"thread_id": "S"}}),
        ("prompt_cache_key", {}, {"prompt_cache_key": "S"}),
    ],
)
def test_what_known_clients_send_names_the_thread(
    ask: Ask, gateway: GatewayProcess, topic: str, kind: str, headers: Json, fields: Json
) -> None:
    """DESIGN 4.2: headers, then body fields; the report says which."""

    def named(value: object, name: str) -> object:
        if isinstance(value, dict):
            return {key: named(inner, name) for key, inner in value.items()}
        return name

    replies = []
    for session, text in [("a", "one"), ("b", "one"), ("a", "two")]:
        name = f"{topic}-{kind}-{session}"
        sent_headers, sent_fields = named(headers, name), named(fields, name)
        assert isinstance(sent_headers, dict)
        assert isinstance(sent_fields, dict)
        reply, _ = ask([user(f"{topic} {kind} {text}")], headers=sent_headers, **sent_fields)
        replies.append(reply)
    assert replies[0].thread_id == replies[2].thread_id != replies[1].thread_id
    assert gateway.report(replies[0].turn_id)["identified_by"] == kind


@in_each_protocol
@pytest.mark.parametrize("name", ["x" * 257, "a\tb", ""])
def test_a_session_name_that_cannot_be_one_is_not_used(
    client: Client, topic: str, name: str, upstream: StubUpstream
) -> None:
    """DESIGN 4.2: at most 256 printable characters."""
    reply = client.chat([user(f"{topic} {name[:3]}")], session=name)
    assert reply.status in {200, 400}
    if reply.status == 200:
        assert reply.thread_id != name


@in_each_protocol
def test_an_agent_session_of_hundreds_of_steps_is_stored_once(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """DESIGN 1.6: every step re-sends all; each step adds what is new."""
    steps = tool_steps(topic, steps=40, words=30)
    talk = [system("agent"), user(f"{topic} task {filler(topic)}")]
    for at in range(0, len(steps), 2):
        reply, _ = ask([*talk, *steps[: at + 2]], budget=1_500)
    rows = [row for row in gateway.events() if row["thread_id"] == reply.thread_id]
    assert len([row for row in rows if row["role"] == "tool"]) == 40
    assert len([row for row in rows if row["role"] == "user"]) == 1
