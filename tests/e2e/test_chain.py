"""A gateway behind a gateway: what the outer one says is nobody's words for the inner one."""

from typing import Any

import pytest

from tests.e2e.answers import Json, call
from tests.e2e.conftest import StartGateway
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, asks, assistant, filler, result, small_talk, system, user

BUDGET_TOKENS = 1_000


@pytest.mark.parametrize("kind", ["interrupted", "empty", "long result", "no user"])
def test_an_inner_gateway_records_no_word_of_the_outer_one(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """DESIGN 1.7: fillers, markers and openings too; CASES J1 (mem0#4573)."""
    inner = start_gateway()
    outer = start_gateway(db=inner.db.parent / "outer.db", url=inner.url)
    talk: list[Json] = [user(f"{topic} look"), asks(call("c1", "look", "{}"))]
    talk += {
        "interrupted": [user("never mind")],
        "empty": [result("c1", "seen"), assistant(""), user(" "), assistant("?"), user("go on")],
        "long result": [result("c1", filler(topic, words=2_000))],
        "no user": [],
    }[kind]
    if kind == "no user":
        talk = [assistant(one["content"]) for one in small_talk(topic, turns=20)]
    headers = {"x-library-recall": "off"}
    reply = Client(outer.url).chat(talk, budget=BUDGET_TOKENS, headers=headers)
    assert reply.status == 200
    sent = str(upstream.last.messages)
    ours = {
        "interrupted": ["[no result: the call was interrupted]"],
        "empty": ["[empty reply]", "[empty message]"],
        "long result": ["characters were left out here by the gateway"],
        "no user": ["Earlier messages of this conversation were left out"],
    }[kind]
    texts = [row["text"] for row in inner.events()]
    assert texts
    for words in ours:
        assert words in sent, "the model reads it"
        assert not any(words in text for text in texts)
    assert upstream.violations == []


def test_what_says_nothing_has_one_place_in_the_record_however_often_it_comes(
    start_gateway: StartGateway, topic: str
) -> None:
    """CASES A10 (hermes-agent PR#18650): a filled message is the empty one it stands for."""
    gateway = start_gateway()
    client = Client(gateway.url)
    client.chat([user(f"{topic} a"), assistant(""), user("b")])
    again = client.chat([user(f"{topic} a"), assistant("[empty reply]"), user("b")])
    report = gateway.report(again.turn_id)
    assert (report["has_forked"], report["events_new"]) == (False, 0)


@pytest.mark.parametrize("blank", ["", " \n\t", None, [], [{"type": "text", "text": " "}]])
def test_a_system_message_that_says_nothing_does_not_go_out(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, blank: Any
) -> None:
    """CASES A11 (litellm PR#2549)."""
    gateway = start_gateway()
    client = Client(gateway.url)
    nothing = system("") | {"content": blank}
    talk = [nothing, user(topic), nothing, assistant("x"), user("y"), nothing]
    reply = client.chat(talk)
    assert upstream.last.messages == [user(topic), assistant("x"), user("y")]
    assert len(gateway.report(reply.turn_id)["repaired"]) == 3
    alone = client.chat([nothing])
    assert (alone.status, alone.json["error"]["code"]) == (400, "invalid_messages")
