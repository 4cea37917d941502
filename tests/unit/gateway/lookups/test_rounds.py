"""Every body of every round is within the budget, whatever a model says and looks up."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.lookups import rounds
from gateway.lookups.offer import NAMES, schemas
from gateway.lookups.reading import Looked, Shelf
from gateway.lookups.rounds import Rounds
from gateway.upstream.protocol import UpstreamRequest
from gateway.wire.crossing.bodies import AnyStored
from gateway.wire.lookups.rounds import ROUNDS
from gateway.wire.lookups.seam import Call
from gateway.wire.protocol import ClientRequest, Wire
from gateway.wire.wires import WIRES as ALL_WIRES
from governor.counting import Counters
from governor.turn import Counter, PlannedMessage, PreparedTurn, SwapReport

COUNTER: Counter = Counters().counter_for("gpt-4o-mini")
WIRES = [wire for wire in ALL_WIRES if wire.name in ROUNDS]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@dataclass
class Posts:
    """Makes requests, and keeps their bodies."""

    wire: Wire
    request: ClientRequest

    def __call__(self, prepared: PreparedTurn) -> UpstreamRequest:
        return self.encoded(prepared, self.request, prepared.plan)

    def encoded(
        self,
        prepared: PreparedTurn,
        request: ClientRequest,
        plan: Sequence[PlannedMessage] | None,
    ) -> UpstreamRequest:
        return UpstreamRequest("POST", self.wire.path, {}, self.wire.encode(request, plan))


@dataclass
class Pages:
    """A shelf whose every record is one text, shortened to its room."""

    text: str

    async def look(self, call: Call, fits: Any) -> Looked:
        size = len(self.text)
        while size and not fits(self.text[:size]):
            size //= 2
        return Looked(self.text[:size], {"tool": call.name, "found": []})


def reply_of(wire: Wire, words: str, names: Sequence[str]) -> bytes:
    """Return a whole answer with some words and calls; ids may be empty or the same."""
    arguments = json.dumps({"query": words[:50]})
    if wire.name == "chat":
        calls = [
            {"id": "", "type": "function", "function": {"name": one, "arguments": arguments}}
            for one in names
        ]
        message = {"role": "assistant", "content": words or None, "tool_calls": calls}
        return orjson.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    if wire.name == "messages":
        uses = [
            {"type": "tool_use", "id": "u", "name": one, "input": {"query": words}} for one in names
        ]
        content = [*([{"type": "text", "text": words}] if words else []), *uses]
        return orjson.dumps({"type": "message", "content": content, "stop_reason": "tool_use"})
    items: list[dict[str, Any]] = [
        {"type": "function_call", "call_id": "c", "name": one, "arguments": arguments}
        for one in names
    ]
    if words:
        part = {"type": "output_text", "text": words}
        items.insert(0, {"type": "message", "role": "assistant", "content": [part]})
    return orjson.dumps({"status": "completed", "output": items})


def tokens_of(wire: Wire, body: bytes) -> int:
    request = wire.decode(body, None)
    priced = sum(map(COUNTER.message, request.messages))
    return priced + COUNTER.schemas(request.schemas) + COUNTER.prompt_overhead_tokens


async def bodies_of(
    wire: Wire, question: str, said: Sequence[tuple[str, list[str]]], *, page: str, spare: int
) -> tuple[list[bytes], PreparedTurn]:
    """Return the bodies of an answer over rounds in which the model says so much."""
    field = "input" if wire.name == "responses" else "messages"
    item = {"role": "user", "content": question or "?"}
    request = wire.decode(orjson.dumps({"model": "m", field: [item]}), None)
    own = sum(map(COUNTER.message, request.messages)) + COUNTER.prompt_overhead_tokens
    prompt = own + COUNTER.schemas(schemas(wire))
    report = SwapReport("t", prompt_tokens=prompt, budget_tokens=prompt + spare)
    prepared = PreparedTurn("t", None, None, report, None, COUNTER, has_lookups=True)
    posts = Posts(wire, request)
    rounds = Rounds(
        prepared,
        wire=wire,
        request=request,
        dialect=AnyStored(wire),
        posting=posts,
        shelf=cast(Shelf, Pages(page)),
        most=3,
    )
    bodies = [rounds.first().body]
    for words, names in said:
        reply = wire.read_body(reply_of(wire, words, names))
        assert rounds.is_waiting(reply)
        asked = await rounds.next(reply)
        if asked is None:
            break
        bodies.append(asked.body)
    return bodies, prepared


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@settings(deadline=None, max_examples=40)
@given(
    question=WORDS,
    said=st.lists(
        st.tuples(WORDS, st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=3)),
        max_size=5,
    ),
    page=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    spare=st.integers(0, 600),
)
def test_the_ceiling_holds_for_every_body_that_goes_out(
    wire: Wire, question: str, said: list[tuple[str, list[str]]], page: str, spare: int
) -> None:
    """DESIGN 1.1 and 1.13: the tools, the model's own words and the results are counted; and what
    is reported of the last prompt is what it counts."""
    bodies, prepared = asyncio.run(bodies_of(wire, question, said, page=page, spare=spare))
    report = prepared.report
    assert len(bodies) <= 4
    for body in bodies:
        assert tokens_of(wire, body) <= report.budget_tokens
    if report.lookups:
        assert report.lookups[-1]["prompt_tokens"] >= tokens_of(wire, bodies[-1])
    for before, after in itertools.pairwise(bodies):
        own = wire.decode(before, None).messages
        assert [one.raw for one in wire.decode(after, None).messages[: len(own)]] == [
            one.raw for one in own
        ], "a later round extends what the provider has cached"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_calls_without_ids_of_their_own_are_told_apart(wire: Wire) -> None:
    """CASES A9 (hermes-agent PR#18650)."""
    said = [("", ["library_search", "library_open"])]
    bodies, _ = await bodies_of(wire, "q", said, page="page", spare=1_000)
    last = wire.decode(bodies[-1], None).messages
    asked = [call_id for message in last for call_id in message.call_ids]
    answered = [message.answers for message in last if message.answers is not None]
    assert asked == answered
    assert len({*asked}) == 2


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_reply_that_leaves_no_room_ends_the_rounds(wire: Wire) -> None:
    said = [("word " * 500, ["library_search"])]
    bodies, prepared = await bodies_of(wire, "q", said, page="page", spare=100)
    assert len(bodies) == 1
    assert prepared.report.lookups == []


@given(st.lists(st.sampled_from(["", "a", "call_0", "call_1"]), max_size=5))
@example(["call_1", "call_1"])
def test_calls_are_told_apart_by_ids_of_which_no_two_are_the_same(ids: list[str]) -> None:
    """A second "call_1" at the second place was called "call_1" again."""
    told = rounds._told_apart(ids)
    assert all(told) and len({*told}) == len(ids)
    assert {*ids} - {""} <= {*told}
    assert told == ids or len({*ids} - {""}) < len(ids)
