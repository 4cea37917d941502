"""gateway/wire/responses/request.py: a body becomes messages, and messages a body again."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.protocol import MalformedRequest, Past
from gateway.wire.responses import message as dialect
from gateway.wire.responses.request import decode, encode, items_of
from gateway.wire.seen import SeenMessages
from governor.errors import MalformedTranscript
from governor.transcript import INTERRUPTED, read
from governor.turn import PlannedMessage

Fields = dict[str, Any]


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "gpt-4o-mini", **fields})


def user(text: str) -> Fields:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def says(text: str) -> Fields:
    return {"type": "message", "id": f"msg_{text}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip


def calls(call_id: str, kind: str = "function_call") -> Fields:
    key = "input" if kind == "custom_tool_call" else "arguments"
    return {"type": kind, "id": f"fc_{call_id}", "call_id": call_id, "name": "look", key: "{}"}


def output(call_id: str, kind: str = "function_call_output") -> Fields:
    return {"type": kind, "call_id": call_id, "output": f"of {call_id}"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def test_a_text_is_one_message_of_the_user() -> None:
    request = decode(body(input="hello", instructions="Be brief."))
    assert [(one.role, one.text) for one in request.messages] == [
        ("system", "Be brief."),
        ("user", "hello"),
    ]
    assert request.instruction_count == 1
    assert request.messages[1].digest == decode(body(input=[user("hello")])).messages[0].digest


def test_runs_of_the_assistants_items_are_one_message_each() -> None:
    items = [
        *({"role": "developer", "content": "d"}, user("u"), REASONING, says("a"), calls("c1")),
        *(calls("c2"), output("c1"), output("c2"), REASONING, says("b"), user("v")),
    ]
    request = decode(body(input=items))
    roles = [one.role for one in request.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert request.messages[2].call_ids == ("c1", "c2")
    assert list(items_of(request.messages)) == items


def test_everything_but_the_items_goes_out_as_the_client_wrote_it() -> None:
    """CASES E5, G2."""
    sent = (
        b'{"model":"m","store":false,"temperature":1.00,"input":[{"role":"user","content":"x"}],'
        b'"include":["reasoning.encrypted_content"],"vendor":{"n":12345678901234567890123}}'
    )
    request = decode(sent)
    assert encode(request, [PlannedMessage(one) for one in request.messages]) == sent


def test_the_planned_items_stand_in_place_of_the_clients() -> None:
    request = decode(body(input=[user("a"), says("b"), user("c")], instructions="i"))
    plan = [PlannedMessage(request.messages[0]), PlannedMessage(request.messages[3], before="DESK")]
    sent = orjson.loads(encode(request, plan, "other"))
    assert sent["model"] == "other"
    assert sent["instructions"] == "i"
    content = [{"type": "input_text", "text": "DESK"}, {"type": "input_text", "text": "c"}]
    assert sent["input"] == [{"type": "message", "role": "user", "content": content}]


def test_instructions_that_the_plan_makes_longer_go_out_so() -> None:
    request = decode(body(input="x", instructions="i"))
    longer = dialect.with_text_behind(request.messages[0], "MORE")
    sent = encode(request, [PlannedMessage(longer), PlannedMessage(request.messages[1])])
    assert orjson.loads(sent)["instructions"] == "i\n\nMORE"


@pytest.mark.parametrize("name", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_what_names_a_past_does_not_go_out(name: Fields) -> None:
    request = decode(body(input="x", **name))
    assert request.past is not None
    for plan in (None, [PlannedMessage(one) for one in request.messages]):
        assert not {*name} & {*orjson.loads(encode(request, plan))}


def test_the_past_goes_by_value_to_an_upstream_that_keeps_nothing() -> None:
    """An id that only a store could resolve would be answered 404."""
    bare = {"type": "reasoning", "id": "rs_0", "summary": []}
    said = dialect.message_of({"items": [bare, REASONING, says("a"), calls("c1")]})
    for store, kept in ((False, ["reasoning", "message", "function_call"]), (True, None)):
        request = decode(body(input=[output("c1")], previous_response_id="resp_1", store=store))
        plan = [PlannedMessage(said), PlannedMessage(request.messages[0])]
        sent = orjson.loads(encode(request, plan))["input"]
        if kept is None:
            assert sent[:-1] == said.raw["items"]
        else:
            assert [item["type"] for item in sent[:-1]] == kept
            assert [item.get("id") for item in sent[:-1]] == ["rs_1", None, None]


def test_what_a_request_names_of_its_past_is_told() -> None:
    request = decode(body(input="x", previous_response_id="resp_1"))
    assert request.past is not None
    assert (request.past.reply, request.past.is_session, request.past.items) == (
        "resp_1",
        False,
        (),
    )
    request = decode(body(input="x", conversation={"id": "conv_1"}))
    assert request.past is not None
    assert request.past == Past(is_session=True)
    items = [user("a"), {"type": "item_reference", "id": "msg_1"}, {"id": "rs_1", "type": None}]
    with pytest.raises(MalformedTranscript):
        decode(body(input=[*items, {"type": 5}]))
    request = decode(body(input=items[:2]))
    assert request.past is not None
    assert request.past.items == ("msg_1",)
    assert decode(body(input="x")).past is None


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("custom_tool_call", "custom_tool_call_output"),
        ("apply_patch_call", "apply_patch_call_output"),
        ("shell_call", "shell_call_output"),
        ("function_call", "function_call_output"),
    ],
)
def test_an_interrupted_call_is_answered_in_its_own_form(call: str, result: str) -> None:
    """CASES A4, A9."""
    request = decode(body(input=[user("a"), calls("c1", call), user("b")]))
    mended = read(request.messages, dialect)
    sent = orjson.loads(encode(request, [PlannedMessage(one) for one in mended.messages]))
    assert [item["type"] for item in sent["input"]] == ["message", call, result, "message"]
    assert INTERRUPTED in orjson.dumps(sent["input"][2]).decode()


def test_tools_and_forms_of_answers_count() -> None:
    """CASES B2."""
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    request = decode(
        body(input="x", tools=[tool, {"type": "web_search"}], text={"format": form},
             tool_choice={"type": "function", "name": "look"})
    )  # fmt: skip
    assert len(request.schemas) == 4
    assert decode(body(input="x", text={"format": {"type": "text"}})).schemas == ()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": {"role": "user"}}, "input"),
        ({"input": None}, "input"),
        ({"input": "x", "model": None}, "model"),
        ({"input": "x", "instructions": ["a"]}, "instructions"),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"input": "x", "previous_response_id": 5}, "previous_response_id"),
        ({"input": "x", "conversation": 5}, "conversation"),
        ({"input": "x", "conversation": "c", "previous_response_id": "r"}, "conversation"),
    ],
)
def test_what_cannot_be_governed_is_refused_by_its_name(fields: Fields, param: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        decode(body(**fields))
    assert refused.value.param == param


@pytest.mark.parametrize("bad", [b"", b"[]", b"null", b'{"model": "m", "input": "', b"\xff"])
def test_what_is_no_json_object_is_refused(bad: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode(bad)


def test_the_item_that_is_wrong_is_named_by_its_place() -> None:
    with pytest.raises(MalformedTranscript) as refused:
        decode(body(input=[user("a"), says("b"), calls("c"), {"type": "reasoning", "role": 5}]))
    assert refused.value.index == 3


# -- properties ----------------------------------------------------------------------------------
ITEMS = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=20)),
        st.builds(says, st.text(min_size=1, max_size=20)),
        st.builds(lambda text: {"role": "developer", "content": text}, st.text(max_size=9)),
        st.builds(calls, st.sampled_from(["a", "b", "c"]),
                  st.sampled_from(["function_call", "custom_tool_call"])),
        st.builds(output, st.sampled_from(["a", "b", "c"])),
        st.just(REASONING),
        st.builds(lambda kind: {"type": kind, "x": [1]}, st.sampled_from(["new_call", "thing"])),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


@given(ITEMS)
def test_reading_and_writing_items_is_the_identity(items: list[Fields]) -> None:
    """DESIGN 1.2."""
    request = decode(body(input=items))
    plan = [PlannedMessage(one) for one in request.messages]
    assert orjson.loads(encode(request, plan))["input"] == items


@given(ITEMS)
def test_items_that_were_seen_before_are_read_alike(items: list[Fields]) -> None:
    seen = SeenMessages()
    sent = body(input=items)
    assert decode(sent).messages == decode(sent, seen).messages == decode(sent, seen).messages


@given(ITEMS)
def test_mending_a_mended_transcript_changes_nothing(items: list[Fields]) -> None:
    """CASES A10."""
    request = decode(body(input=items))
    once = read(request.messages, dialect)
    sent = encode(request, [PlannedMessage(one) for one in once.messages])
    again = decode(sent) if orjson.loads(sent)["input"] else None
    if again is not None:
        assert read(again.messages, dialect).repairs == ()


@given(ITEMS)
def test_nothing_that_is_read_is_changed(items: list[Fields]) -> None:
    before = copy.deepcopy(items)
    request = decode(body(input=items))
    read(request.messages, dialect)
    assert items == before
    assert all(one.digest or one.role == "system" for one in request.messages)
