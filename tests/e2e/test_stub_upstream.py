"""The tester tested: the scripted upstream alone, with the real client and with broken requests."""

import openai
import pytest

from tests.e2e.answers import DONE, Answer, Cut, Gate, Json, call, chunk, stream
from tests.e2e.legality import encoding, request_tokens, violations
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, RawConnection, asks, assistant, result, system, user

LEGAL = [
    system("s"),
    user("u"),
    asks(call("a", "f", "{}"), call("b", "f", "{}")),
    result("b", "2"),
    result("a", ""),
    assistant("ok"),
    user("u"),
]


def test_a_legal_transcript_has_no_violations() -> None:
    assert violations({"messages": LEGAL}, budget_tokens=200) == []


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "no messages"),
        ([system("s")], "only system text"),
        (LEGAL[2:], "begins with assistant"),
        ([user("u"), *LEGAL[3:]], "answers no open call"),
        ([*LEGAL[:4], *LEGAL[5:]], "comes before the results"),
        (LEGAL[:4], "have no result"),
        ([user("u"), assistant(" "), user("u")], "is empty"),
        ([user([]), user("u")], "is empty"),
        ([user("u"), asks(call("a", "f", ""), call("a", "f", ""))], "has call ids"),
        ([user("word " * 300)], "the budget is 200"),
    ],
)
def test_each_breach_is_found(messages: list[Json], words: str) -> None:
    assert words in str(violations({"messages": messages}, budget_tokens=200))


def test_counting_agrees_with_the_cookbooks_own_example() -> None:
    """Source: OpenAI cookbook, How to count tokens with tiktoken: 124 for gpt-4o there."""
    lines = [
        (
            "system",
            None,
            "You are a helpful, pattern-following assistant that translates corporate "
            "jargon into plain English.",
        ),
        ("system", "example_user", "New synergies will help drive top-line growth."),
        ("system", "example_assistant", "Things working well together will increase revenue."),
        (
            "system",
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on "
            "opportunities for increased leverage.",
        ),
        (
            "system",
            "example_assistant",
            "Let's talk later when we're less busy about how to do better.",
        ),
        (
            "user",
            None,
            "This late pivot means we don't have time to boil the ocean for the client "
            "deliverable.",
        ),
    ]
    messages = [
        {"role": role, "content": text} | ({"name": name} if name else {})
        for role, name, text in lines
    ]
    assert encoding().name == "o200k_base"
    assert request_tokens({"messages": messages}) == 124


def test_the_real_client_can_talk_to_it(upstream: StubUpstream) -> None:
    with openai.OpenAI(base_url=upstream.url, api_key="x", max_retries=0) as sdk:
        done = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        with sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        ) as chunks:
            text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert done.choices[0].message.content == text == "reply to hi"
    assert len(upstream.chats) == 2


def test_gates_hold_cuts_cut_and_hang_ups_are_seen(upstream: StubUpstream) -> None:
    gate = Gate()
    upstream.script(stream([chunk({"content": "a"}), gate, DONE]), stream([b"x", Cut()]))
    client = Client(upstream.url)
    with client.streaming([user("u")]) as response:
        pieces = response.iter_raw()
        received = next(pieces)
        assert DONE not in received
        gate.open()
        assert b"".join(pieces).endswith(DONE)
    origin = upstream.url.removesuffix("/v1")
    cut = RawConnection(origin, {"messages": [user("u")]})
    cut.read_until(b"1\r\nx\r\n")
    cut.hang_up()
    upstream.script(Answer((Gate(),)))
    left = RawConnection(origin, {"messages": [user("u")]})
    upstream.wait_for_chats(3)
    left.hang_up()
    assert upstream.last.closed.wait(1.0)
