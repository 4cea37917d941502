"""One memory for all protocols: a conversation may be told in one and gone on with in another."""

import itertools
from collections.abc import Sequence

import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import PROTOCOLS, Protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, small_talk, texts, user

ORDERS = [*itertools.permutations(PROTOCOLS)]


@pytest.mark.parametrize(
    "order", ORDERS, ids=["-".join(one.name for one in order) for order in ORDERS]
)
def test_what_was_told_in_one_protocol_is_gone_on_with_and_recalled_in_the_others(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str, order: Sequence[Protocol]
) -> None:
    """Issue 5: the same fixed budget and the same memory, through one governor; DESIGN 1.6, 4.2:
    by content alone, each message stored once."""
    first, second, third = order
    talk = [user(f"{topic} the observatory opens with the word gnomon")]
    told = Client(gateway.url, first).chat(talk)
    assert told.status == 200
    talk += [assistant(told.text), *small_talk(topic, turns=50), user("so far?")]
    gone_on = Client(gateway.url, second).chat(talk)
    assert gone_on.status == 200
    assert gone_on.thread_id == told.thread_id
    gateway.wait_indexed()
    talk += [assistant(gone_on.text), user(f"{topic}: with which word does the observatory open?")]
    asked = Client(gateway.url, third).chat(talk)
    assert asked.status == 200
    assert asked.thread_id == told.thread_id
    assert asked.prompt_tokens <= 4_000
    assert "gnomon" in texts(upstream.last.messages)
    assert len(upstream.last.messages) < len(talk)
    stored = [row for row in gateway.events() if row["thread_id"] == told.thread_id]
    assert len(stored) == len(talk) + 1
