from gateway.wire.chat.message import message_of
from governor.state import (
    TRACE_MESSAGES_MAX,
    DeskEntry,
    LaidDesk,
    PromptState,
    dumped,
    loaded,
    planned_key,
    prefix_share,
    traced,
)
from governor.turn import PlannedMessage


def planned(text: str, before: str = "") -> PlannedMessage:
    return PlannedMessage(message_of({"role": "user", "content": text}), before=before)


def trace(*plan: PlannedMessage, schemas: tuple[str, ...] = ()) -> tuple[tuple[int, int], ...]:
    keys = [planned_key(one) for one in plan]
    return traced(keys, (10,) * len(plan), schemas=schemas, schema_tokens=10)


def test_a_state_survives_being_stored() -> None:
    state = PromptState(
        anchor_seq=3,
        question_seq=9,
        desks=(LaidDesk(9, (DeskEntry(1, 0, 1, 4, 0, 90),)),),
        desk_ids=("e1",),
        trace=((1, 2),),
    )
    assert loaded(dumped(state)) == state


def test_a_state_of_another_version_is_no_state() -> None:
    assert loaded(None) is loaded(b"{") is loaded(b'{"trace": 5}') is None


def test_the_shared_prefix_ends_at_the_first_difference() -> None:
    """CASES G1 (headroom#3379, lean-ctx#448)."""
    first = trace(planned("one"), planned("two"))
    grown = trace(planned("one"), planned("two"), planned("three"))
    assert prefix_share(first, grown, prompt_tokens=40) == 0.75
    laid = trace(planned("one"), planned("two", before="DESK"))
    assert prefix_share(first, laid, prompt_tokens=30) == round(20 / 30, 4)
    retooled = trace(planned("one"), schemas=("tool",))
    assert prefix_share(first, retooled, prompt_tokens=20) == 0


def test_a_trace_is_bounded() -> None:
    many = [planned(str(at)) for at in range(TRACE_MESSAGES_MAX + 5)]
    assert len(trace(*many)) == TRACE_MESSAGES_MAX + 1


def test_the_part_of_a_record_is_named_only_where_it_is_one() -> None:
    assert DeskEntry(1, 0, 0, 1, 0, 9).part == DeskEntry(1, 0, 3, 4, 0, 9).part == ""
    assert DeskEntry(1, 1, 1, 4, 0, 9).part == "part 2 of 4"
    assert DeskEntry(1, 1, 2, 4, 0, 9).part == "part 2-3 of 4"
