"""gateway/wire/crossing: a Responses client on an upstream that has chat completions only."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.crossing.responses_on_chat import ResponsesExchange
from gateway.wire.responses.reply import EventReader, read_body
from gateway.wire.responses.wire import RESPONSES
from gateway.wire.sse import SseEvent, SseReader

Fields = dict[str, Any]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def exchange(**fields: Any) -> ResponsesExchange:
    return ResponsesExchange(orjson.dumps({"model": "m", "input": "x", **fields}), "1")


def asked(**fields: Any) -> Fields:
    found = orjson.loads(exchange(**fields).body)
    assert isinstance(found, dict)
    return found


def function(name: str, **more: Any) -> Fields:
    return {"type": "function", "name": name, "parameters": {"type": "object"}, **more}


# -- requests ------------------------------------------------------------------------------------
def test_a_transcript_becomes_messages() -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA",
         "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"q": 1}'},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "a", "output": "seen"},
        {"type": "custom_tool_call_output", "call_id": "b",
         "output": [{"type": "input_text", "text": "done"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "and this?"},
                                     {"type": "input_image", "image_url": "https://x/y.png"}]},
    ]  # fmt: skip
    sent = asked(input=items, instructions="You are a coder.")
    calls = [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}},
        {"id": "b", "type": "function",
         "function": {"name": "patch", "arguments": '{"input":"*** Begin"}'}},
    ]  # fmt: skip
    assert sent["messages"] == [
        {"role": "system", "content": "You are a coder."},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "Looking.", "reasoning_content": "hm",
         "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "done"},
        {"role": "user", "content": [
            {"type": "text", "text": "and this?"},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
    ]  # fmt: skip


def test_tools_and_forms_and_limits_are_said_as_chat_completions_says_them() -> None:
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    sent = asked(
        tools=[function("look", strict=True), {"type": "custom", "name": "patch",
               "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}],
        tool_choice={"type": "function", "name": "look"}, parallel_tool_calls=False,
        text={"format": schema, "verbosity": "low"}, reasoning={"effort": "low", "summary": "auto"},
        max_output_tokens=50, temperature=0.5, stream=True, store=False, metadata={"a": "b"},
        include=["reasoning.encrypted_content"], truncation="auto", vendor={"x": 1},
    )  # fmt: skip
    look, patch = (tool["function"] for tool in sent["tools"])
    assert look == {"name": "look", "parameters": {"type": "object"}, "strict": True}
    assert "start: X" in patch["description"]
    assert patch["parameters"]["required"] == ["input"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    form = {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": form}
    assert (sent["verbosity"], sent["reasoning_effort"], sent["max_tokens"]) == ("low", "low", 50)
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["vendor"] == {"x": 1}
    assert not {"store", "include", "truncation", "max_output_tokens", "input"} & {*sent}


def test_only_the_tools_that_are_allowed_are_offered() -> None:
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function",
                                                                       "name": "b"}]}  # fmt: skip
    sent = asked(tools=[function("a"), function("b")], tool_choice=allowed)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["b"]
    assert sent["tool_choice"] == "required"
    assert "tools" not in asked(tools=[], tool_choice="auto", parallel_tool_calls=True)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools"),
        ({"tools": [{"type": "namespace", "name": "s", "tools": [{"type": "web_search"}]}]},
         "tools"),
        ({"tools": [function("a")], "tool_choice": {"type": "namespace", "name": "s"}},
         "tool_choice"),
        ({"tool_choice": {"type": "web_search"}, "tools": [function("a")]}, "tool_choice"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"input": [{"type": "web_search_call", "id": "ws"}]}, "input"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input"),
        ({"input": [{"type": "computer_call_output", "call_id": "c", "output": {}}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
         "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}]},
         "input"),
        ({"input": [{"type": "function_call_output", "call_id": "c",
                     "output": [{"type": "input_image", "image_url": "u"}]}]}, "input"),
        ({"input": [{"type": "additional_tools", "role": "developer", "tools": []}]}, "input"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_and_not_dropped(fields: Fields, param: str) -> None:
    with pytest.raises(Untranslatable) as refused:
        exchange(**fields)
    assert refused.value.param == param


def test_a_refused_web_search_is_told_with_the_way_out_also_where_it_is_a_cached_one() -> None:
    """Codex 0.171.0 offers one that does not reach the web; it is the provider's all the same."""
    with pytest.raises(Untranslatable, match='Codex: -c web_search="disabled"'):
        exchange(tools=[{"type": "web_search", "external_web_access": False}])


def namespaced() -> list[Fields]:
    patch = {"type": "custom", "name": "patch", "description": "Edits."}
    inner = [function("look", description="Looks."), patch]
    return [
        function("look"),
        {"type": "namespace", "name": "s", "description": "Of s.", "tools": inner},
        {"type": "namespace", "name": "t", "description": "Of t.", "tools": [function("look")]},
    ]


def test_the_tools_of_a_namespace_are_functions_under_joined_names() -> None:
    items = [
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "a", "namespace": "s", "name": "look",
         "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "namespace": "s", "name": "patch",
         "input": "*"},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seen", "namespace": "s"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
        {"type": "function_call_output", "call_id": "c", "output": "seen"},
    ]  # fmt: skip
    choice = {"type": "custom", "name": "patch"}
    sent = asked(tools=namespaced(), input=items, tool_choice=choice)
    made = {tool["function"]["name"]: tool["function"] for tool in sent["tools"]}
    assert [*made] == ["look", "s__look", "s__patch", "t__look"]
    assert made["s__look"]["description"] == "Looks.\n\nAbout all tools of 's': Of s."
    assert made["s__look"]["parameters"] == {"type": "object"}
    assert made["s__patch"]["description"] == "Edits."
    assert made["t__look"]["description"] == "About all tools of 't': Of t."
    calls = sent["messages"][1]["tool_calls"]
    assert [one["function"]["name"] for one in calls] == ["s__look", "s__patch", "look"]
    assert "namespace" not in str(sent)
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "s__patch"}}


def test_of_a_namespace_all_tools_may_be_allowed_or_one() -> None:
    for one, left in [
        ({"type": "namespace", "name": "s"}, ["s__look", "s__patch"]),
        ({"type": "function", "name": "look", "namespace": "t"}, ["t__look"]),
        ({"type": "function", "name": "look"}, ["look"]),
    ]:
        choice = {"type": "allowed_tools", "mode": "auto", "tools": [one]}
        sent = asked(tools=namespaced(), tool_choice=choice)
        assert [tool["function"]["name"] for tool in sent["tools"]] == left


# -- answers -------------------------------------------------------------------------------------
def chunk(delta: Fields, *, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    fields = {"id": "c", "created": 5, "model": "real", "choices": [choice], **more}
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def called(index: int, **function: str) -> Fields:
    head = {"id": function.pop("id")} if "id" in function else {}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


STREAM = (
    chunk({"role": "assistant", "content": ""})
    + chunk({"reasoning_content": "let me "})
    + chunk({"reasoning_content": "see"})
    + chunk({"content": "Look"})
    + chunk({"content": "ing."})
    + chunk(called(0, id="a", name="look", arguments=""))
    + chunk(called(1, id="b", name="patch", arguments='{"input":'))
    + chunk(called(0, arguments='{"q": '))
    + chunk(called(1, arguments='"*** x"}'))
    + chunk(called(0, arguments="1}"))
    + chunk({}, finish="tool_calls")
    + b"data: " + orjson.dumps({"choices": [], "usage": USAGE}) + b"\n\n"
    + b"data: [DONE]\n\n"
)  # fmt: skip
TOOLS = [function("look"), {"type": "custom", "name": "patch"}]


def translated(pieces: Iterable[bytes], **fields: Any) -> bytes:
    stream = exchange(stream=True, tools=TOOLS, **fields).stream()
    return b"".join(map(stream.feed, pieces)) + stream.finish()


def events_of(data: bytes) -> list[SseEvent]:
    reader = SseReader(max_event_bytes=1_000_000, marks=RESPONSES.marks)
    return [*reader.feed(data).events, *reader.finish().events]


def test_a_stream_is_the_full_sequence_of_events_as_the_sdk_reads_them() -> None:
    events = events_of(translated([STREAM]))
    read = [EVENT.validate_json(event.data, strict=False) for event in events]
    assert [event.sequence_number for event in read] == list(range(len(read)))
    assert [event.name.decode() for event in events] == [event.type for event in read]
    kinds = [event.type for event in read]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-1] == "response.completed"
    assert (
        kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 4
    )
    response = read[-1].response
    assert isinstance(response, Response)
    assert [item.type for item in response.output] == [
        "reasoning", "message", "function_call", "custom_tool_call"]  # fmt: skip
    _, message, look, patch = orjson.loads(events[-1].data)["response"]["output"]
    assert message["content"][0]["text"] == "Looking."
    assert (look["call_id"], look["name"], look["arguments"]) == ("a", "look", '{"q": 1}')
    assert (patch["call_id"], patch["name"], patch["input"]) == ("b", "patch", "*** x")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
    assert response.model == "real"


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_is_translated_alike_however_it_is_cut(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(STREAM)})
    pieces = [STREAM[start:stop] for start, stop in pairwise(places)]
    assert translated(pieces) == translated([STREAM])


def test_a_stream_says_what_a_whole_answer_says() -> None:
    message = {
        "role": "assistant", "content": "Looking.", "reasoning_content": "let me see",
        "tool_calls": [
            {"id": "a", "function": {"name": "look", "arguments": '{"q": 1}'}},
            {"id": "b", "function": {"name": "patch", "arguments": '{"input": "*** x"}'}},
        ],
    }  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = {"id": "c", "created": 5, "model": "real", "choices": [choice], "usage": USAGE}
    body = exchange(tools=TOOLS).whole(orjson.dumps(whole), 200)
    assert Response.model_validate_json(body).status == "completed"
    reader = EventReader(1_000_000)
    for event in events_of(translated([STREAM])):
        reader.add(event)
    streamed, read = reader.read(), read_body(body)
    assert streamed.messages == read.messages
    assert streamed == read


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [("stop", "completed", None), ("length", "incomplete", "max_output_tokens"),
     ("content_filter", "incomplete", "content_filter")],
)  # fmt: skip
def test_why_an_answer_ended_is_told(finish: str, status: str, reason: str | None) -> None:
    data = chunk({"content": "x"}) + chunk({}, finish=finish) + b"data: [DONE]\n\n"
    last = events_of(translated([data]))[-1]
    response = orjson.loads(last.data)["response"]
    assert (last.name.decode(), response["status"]) == (f"response.{status}", status)
    assert (response["incomplete_details"] or {}).get("reason") == reason


def test_a_stream_that_is_cut_has_no_end() -> None:
    """CASES D9: no false "stop"."""
    names = [event.name for event in events_of(translated([STREAM[: STREAM.find(b"ing.")]]))]
    assert b"response.completed" not in names
    assert names[-1] == b"response.output_text.delta"


def test_an_error_within_a_stream_is_a_failed_response() -> None:
    data = chunk({"content": "x"}) + b'data: {"error": {"message": "no", "code": "c"}}\n\n'
    last = events_of(translated([data]))[-1]
    assert last.name == b"response.failed"
    assert orjson.loads(last.data)["response"]["error"]["message"] == "no"


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"error": {"message": "no"}}', b'{"choices": 5}', b""]
)
def test_a_body_that_is_no_answer_is_left_as_it_is(body: bytes) -> None:
    assert exchange().whole(body, 502) == body


@given(st.binary(max_size=200))
def test_no_bytes_of_an_upstream_break_the_translation(data: bytes) -> None:
    """CASES D5."""
    translated([STREAM[:300], data, STREAM[300:]])
    translated([b"data: " + data + b"\n\n"])


def test_calls_in_a_namespace_come_back_with_it_whole_and_streamed() -> None:
    parts = [("a", "s__look", '{"q": 1}'), ("b", "s__patch", '{"input": "*"}'), ("c", "look", "{}")]
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": said}}
        for one, name, said in parts
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = exchange(tools=namespaced()).whole(orjson.dumps({"id": "x", "choices": [choice]}), 200)
    data = b"".join(
        chunk(called(at, id=one, name=name, arguments=""))
        for at, (one, name, _) in enumerate(parts)
    )
    data += b"".join(chunk(called(at, arguments=said)) for at, (*_, said) in enumerate(parts))
    data += chunk({}, finish="tool_calls") + b"data: [DONE]\n\n"
    stream = exchange(stream=True, tools=namespaced()).stream()
    events = events_of(stream.feed(data) + stream.finish())
    told = [EVENT.validate_json(event.data, strict=False) for event in events]
    added = [event.item for event in told if event.type == "response.output_item.added"]
    done = [event.item for event in told if event.type == "response.output_item.done"]
    whole = Response.model_validate_json(body)
    outputs: list[list[Any]] = [[*whole.output], told[-1].response.output, done, added]
    named = [("s", "look"), ("s", "patch"), (None, "look")]
    for output in outputs:
        assert [(item.namespace, item.name) for item in output] == named
        assert [item.type for item in output] == [
            "function_call", "custom_tool_call", "function_call"]  # fmt: skip
    ends = [event for event in told if event.type == "response.function_call_arguments.done"]
    assert [(end.name, end.arguments) for end in ends] == [("look", '{"q": 1}'), ("look", "{}")]


def test_a_new_id_on_an_old_index_is_a_new_call() -> None:
    """CASES D4."""
    data = (
        chunk(called(0, id="a", name="look", arguments="{}"))
        + chunk(called(0, id="b", name="look", arguments="{}"))
        + chunk({}, finish="tool_calls")
    )
    output = orjson.loads(events_of(translated([data]))[-1].data)["response"]["output"]
    assert [item["call_id"] for item in output] == ["a", "b"]
