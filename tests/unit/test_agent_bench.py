"""The agent bench on a short session: what the library is for in a tool loop."""

from typing import Any

from gateway.wire.chat.message import message_of
from governor.counting import Counters
from scripts.bench.agent import MODEL, measured, window
from scripts.bench.agent_sessions import FAR_STEPS, joined, synthetic

BUDGET_TOKENS = 8_000


def test_every_need_of_a_session_is_a_fact_of_an_earlier_message() -> None:
    session = synthetic(steps=300)
    assert len(session.needs) > 30
    assert {need.kind for need in session.needs} == {"file", "symbol", "error", "decision"}
    for need in session.needs:
        holders = [
            at for at, one in enumerate(session.messages) if need.fact in str(one["content"])
        ]
        assert holders[0] < need.at - FAR_STEPS
    assert session == synthetic(steps=300)


async def test_what_a_step_names_is_found_again_deep_within_a_tool_loop() -> None:
    """Issue 5, agent work: the desk follows the step, where a sliding window has nothing left."""
    found = await measured(synthetic(steps=80), BUDGET_TOKENS)
    hits = {
        method: [hit for kind in kinds.values() for hit in kind]
        for method, kinds in found.hits.items()
    }
    assert len(hits["library"]) >= 8
    assert sum(hits["library"]) >= 0.8 * len(hits["library"])
    assert sum(hits["window"]) == 0


def test_a_window_is_filled_from_the_end_behind_the_task() -> None:
    counter = Counters().counter_for(MODEL)
    talk = [message_of({"role": "user", "content": f"note {number}"}) for number in range(50)]
    words = window(talk, counter, 100)
    assert "note 49" in words and "note 3\n" not in words


def test_a_value_that_a_call_passes_on_from_far_back_is_a_need() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"id": "AB12CD"}'},
    }
    talk: list[Any] = [
        {"role": "user", "content": "My booking is AB12CD."},
        *({"role": "user", "content": f"note {number}"} for number in range(20)),
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    [need] = joined("x", [talk], messages_max=99).needs
    assert (need.fact, need.at) == ("AB12CD", 21)
