"""One stream out of those of several rounds: what it shows, and that no cut of it matters."""

import itertools
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.lookups.blocks import Blocks, EventTooLong
from gateway.wire.lookups.rounds import ROUNDS
from gateway.wire.sse import SseEvent
from gateway.wire.wires import WIRES
from tests.e2e.responses_answers import Events, calling, reasoned, spoken

NAMES = frozenset({"library_search", "library_open"})
CUTS = st.lists(st.integers(0, 20_000), max_size=30)
WIRES_BY_NAME = {wire.name: wire for wire in WIRES if wire.name in ROUNDS}
LIMIT = 1_000_000
WIRE_NAMES = [*WIRES_BY_NAME]
Part = tuple[str, str]
"""(kind, text): `words`, `thought`, `ours` or `theirs`."""


NAMINGS = ("at once", "late", "in pieces", "behind the arguments", "at the end")
"""Where a chat's stream tells the name of a call."""


def chat(parts: Sequence[Part], naming: str = "at once") -> bytes:
    out, index = [_chunk({"role": "assistant", "content": None})], 0
    for kind, text in parts:
        if kind == "words":
            out += [_chunk({"content": piece}) for piece in text]
        elif kind == "thought":
            out.append(_chunk({"reasoning_content": text}))
        else:
            name = "library_search" if kind == "ours" else "look"
            fragments = _fragments(index, name, json.dumps({"query": text}), naming)
            out += [_chunk({"tool_calls": [one]}) for one in fragments]
            index += 1
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    end = {"id": "c", "choices": [], "usage": usage}
    return b"".join([*out, _chunk({}, "tool_calls" if index else "stop"), _event(end), _DONE])


def _fragments(index: int, name: str, arguments: str, naming: str) -> list[dict[str, Any]]:
    """Return a call in fragments, as one server or another writes it."""
    opened: dict[str, Any] = {"id": f"c{index}", "type": "function"}
    told: dict[str, list[dict[str, Any]]] = {
        "at once": [{"name": name, "arguments": ""}, {"arguments": arguments}],
        "late": [{"arguments": ""}, {"name": name}, {"arguments": arguments}],
        "in pieces": [{"name": name[:3]}, {"name": name[3:]}, {"arguments": arguments}],
        "behind the arguments": [{"arguments": arguments[:4]}, {"arguments": arguments[4:]},
                                 {"name": name}],
        "at the end": [{}, {"arguments": arguments, "name": name}],
    }  # fmt: skip
    rows = [{"index": index, "function": function} for function in told[naming]]
    return [{**opened, **rows[0]}, *rows[1:]]


_DONE = b"data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"id": "c", "choices": [choice], "usage": None})


def _event(fields: dict[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


def messages(parts: Sequence[Part]) -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 1}
    out = [_named("message_start", message={"id": "m", "content": [], "usage": usage})]
    for index, (kind, text) in enumerate(parts):
        blocks: dict[str, dict[str, Any]] = {
            "words": {"type": "text", "text": ""},
            "thought": {"type": "thinking", "thinking": "", "signature": ""},
            "ours": {"type": "tool_use", "id": f"u{index}", "name": "library_open", "input": {}},
            "theirs": {"type": "tool_use", "id": f"u{index}", "name": "look", "input": {}},
        }
        deltas: dict[str, dict[str, Any]] = {
            "words": {"type": "text_delta", "text": text},
            "thought": {"type": "thinking_delta", "thinking": text},
        }
        call = {"type": "input_json_delta", "partial_json": json.dumps({"id": text})}
        out.append(_named("content_block_start", index=index, content_block=blocks[kind]))
        out.append(_named("content_block_delta", index=index, delta=deltas.get(kind, call)))
        out.append(_named("content_block_stop", index=index))
    has_calls = any(kind in {"ours", "theirs"} for kind, _ in parts)
    ended = {"stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None}
    out.append(_named("message_delta", delta=ended, usage={"output_tokens": 3}))
    return b"".join([*out, _named("message_stop")])


def _named(kind: str, **fields: Any) -> bytes:
    return _event({"type": kind, **fields}, kind)


def responses(parts: Sequence[Part]) -> bytes:
    events, items = Events(), []
    for number, (kind, text) in enumerate(parts):
        made = {
            "words": spoken(text, number=number),
            "thought": {**reasoned(text), "id": f"rs_{number}"},
            "ours": calling(f"f{number}", "library_search", json.dumps({"query": text})),
            "theirs": calling(f"f{number}", "look", json.dumps({"q": text})),
        }
        items.append(made[kind])
    tools = [{"type": "function", "name": "library_search"}]
    out = events.begun(tools=tools)
    for index, item in enumerate(items):
        out += events.whole(index, item)
    return b"".join([*out, events.ended(*items, tools=tools)])


STREAMS = {"chat": chat, "messages": messages, "responses": responses}


def spliced(name: str, rounds: Sequence[bytes], cuts: Sequence[int] = ()) -> bytes:
    """Return what a client is shown, where as many rounds follow as there are."""
    splice, shown = ROUNDS[name].splice(NAMES), b""
    for number, body in enumerate(rounds):
        blocks = Blocks(LIMIT)
        places = sorted({place % (len(body) + 1) for place in cuts} | {0, len(body)})
        for start, stop in itertools.pairwise(places):
            shown += b"".join(map(splice.take, blocks.feed(body[start:stop])))
        shown += b"".join(map(splice.take, blocks.finish()))
        if splice.is_waiting and number + 1 < len(rounds):
            splice.go_on()
        elif splice.is_waiting:
            shown += splice.close()
    return shown


def read(name: str, stream: bytes) -> tuple[list[Part], dict[str, Any], str | None]:
    """Return what a stream says, by the reader that records it, with usage and finish reason."""
    reader, blocks = WIRES_BY_NAME[name].reader(1_000_000), Blocks(LIMIT)
    for block in [*blocks.feed(stream), *blocks.finish()]:
        if block.data is not None:
            reader.add(SseEvent(block.data, block.name))
    reply = reader.read()
    parts: list[Part] = []
    for message in reply.messages:
        parts += _parts(name, message)
    return parts, reply.usage or {}, reply.finish_reason


def _parts(name: str, message: dict[str, Any]) -> list[Part]:
    if name == "chat":
        said = [("thought", message["reasoning_content"])] if "reasoning_content" in message else []
        said += [("words", message["content"])] if message["content"] else []
        names = [call["function"]["name"] for call in message.get("tool_calls", ())]
        return [*said, *(("call", one) for one in names)]
    found = []
    items: list[dict[str, Any]] = message["items"] if "items" in message else message["content"]
    for one in items:
        if one["type"] in {"text", "message"}:
            found.append(("words", one.get("text") or one["content"][0]["text"]))
        elif one["type"] in {"thinking", "reasoning"}:
            found.append(("thought", one.get("thinking") or one["encrypted_content"]))
        else:
            found.append(("call", one["name"]))
    return found


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_what_calls_nothing_of_ours_goes_on_as_it_was_written(name: str) -> None:
    body = STREAMS[name]([("thought", "hm"), ("words", "Größe, 漢字"), ("theirs", "x")])
    shown = spliced(name, [body])
    if name == "responses":  # It repeats the request's tools.
        assert b"library_" not in shown
        strip = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data:")]
        for event in strip:
            if "response" in event:
                event["response"]["tools"] = []
        kept = [json.loads(line[6:]) for line in shown.splitlines() if line.startswith(b"data:")]
        assert kept == strip
    else:
        assert shown == body


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_rounds_become_one_answer_without_our_calls_and_with_the_usage_of_all(name: str) -> None:
    rounds = [
        STREAMS[name]([("words", "I look."), ("ours", "x"), ("ours", "y")]),
        STREAMS[name]([("ours", "z")]),
        STREAMS[name]([("words", "It is so."), ("theirs", "q")]),
    ]
    shown = spliced(name, rounds)
    assert b"library_" not in shown
    parts, usage, finish = read(name, shown)
    gap = [("words", "I look.\n\nIt is so.")]
    assert parts == [
        *(gap if name == "chat" else [("words", "I look."), ("words", "It is so.")]),
        ("call", "look"),
    ]
    each = (11, 7) if name == "responses" else (5, 3)
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (each[0] * 3, each[1] * 3)
    assert finish == {"chat": "tool_calls", "messages": "tool_use", "responses": "completed"}[name]


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_an_answer_that_ends_in_a_call_of_ours_ends_as_if_there_were_none(name: str) -> None:
    shown = spliced(name, [STREAMS[name]([("words", "So."), ("ours", "x")])])
    parts, _, finish = read(name, shown)
    assert parts == [("words", "So.")]
    assert finish == {"chat": "stop", "messages": "end_turn", "responses": "completed"}[name]


@pytest.mark.parametrize("name", WIRE_NAMES)
def test_a_call_of_ours_beside_one_of_the_clients_is_left_out(name: str) -> None:
    """CASES D4 (litellm#33678): the client's calls keep an order without gaps."""
    body = STREAMS[name]([("ours", "x"), ("theirs", "y"), ("ours", "z"), ("theirs", "w")])
    shown = spliced(name, [body])
    assert b"library_" not in shown
    assert read(name, shown)[0] == [("call", "look"), ("call", "look")]
    key = {"chat": '"index":', "messages": '"index":', "responses": '"output_index":'}[name]
    lines = shown.decode().replace(" ", "").splitlines()
    numbers = {int(line.rpartition(key)[2][0]) for line in lines if key in line}
    assert numbers == {0, 1}


@pytest.mark.parametrize("naming", NAMINGS[1:])
def test_fragments_wait_until_the_name_says_whose_call_they_are(naming: str) -> None:
    """CASES D4 (litellm#33678): no trace of ours, and every argument of the client's."""
    calls = [("ours", "x"), ("theirs", "y"), ("ours", "z"), ("theirs", "w")]
    shown = spliced("chat", [chat([("words", "Both."), *calls], naming)])
    assert b"library_" not in shown and b'"x' not in shown and b'"z' not in shown
    made = made_calls(shown)
    assert [(one["id"], one["function"]["arguments"]) for one in made] == [
        ("c1", '{"query": "y"}'),
        ("c3", '{"query": "w"}'),
    ]
    assert indexes(shown) == [0, 1]
    rounds = [chat([("ours", "x")], naming), chat([("theirs", "y"), ("ours", "z")], naming)]
    assert [one["id"] for one in made_calls(spliced("chat", rounds))] == ["c0"]
    assert read("chat", spliced("chat", [chat([("ours", "x")], naming)]))[0::2] == ([], "stop")


def made_calls(stream: bytes) -> list[dict[str, Any]]:
    """Return the calls that a client puts together of a stream's fragments."""
    reader, blocks = WIRES_BY_NAME["chat"].reader(1_000_000), Blocks(LIMIT)
    for block in [*blocks.feed(stream), *blocks.finish()]:
        reader.add(SseEvent(block.data or b"", block.name))
    calls: list[dict[str, Any]] = reader.read().messages[0].get("tool_calls", [])
    return calls


def indexes(stream: bytes) -> list[int]:
    """Return the indexes of calls, in the order in which they come first."""
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    deltas = [one["choices"][0]["delta"] for one in events if one["choices"]]
    return [*dict.fromkeys(one["index"] for d in deltas for one in d.get("tool_calls", ()))]


def test_a_call_that_never_gets_a_name_reaches_the_client_at_the_end_and_is_not_looked_up() -> None:
    function = {"arguments": "{}"}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    body = b"".join([_chunk({"tool_calls": [call]}), _chunk({}, "tool_calls"), _DONE])
    splice = ROUNDS["chat"].splice(NAMES)
    blocks = [*Blocks(LIMIT).feed(body)]
    assert splice.take(blocks[0]) == b""
    shown = splice.take(blocks[1]) + splice.take(blocks[2])
    assert not splice.is_waiting
    assert [one["id"] for one in made_calls(shown)] == ["c"]
    cut = b"".join([_chunk({"tool_calls": [call]}), _chunk({}, "length"), _DONE])
    assert made_calls(spliced("chat", [cut])) == [], "half a call, and perhaps of ours"


def test_where_there_is_no_room_no_later_call_waits_for_its_name_either() -> None:
    """DESIGN 1.13: its arguments may have no end."""
    splice = ROUNDS["chat"].splice(NAMES)
    fragments = _fragments(0, "look", json.dumps({"query": "held"}), "at the end")
    fragments[1]["function"].pop("name")
    named = {"index": 0, "function": {"name": "look", "arguments": ""}}
    shown = splice.let_go()
    for block in Blocks(LIMIT).feed(
        b"".join(_chunk({"tool_calls": [one]}) for one in [*fragments, named])
    ):
        shown += splice.take(block)
    assert b"look" in shown and b"held" not in shown
    splice.go_on()
    body = chat([("theirs", "held")], "behind the arguments")
    shown = b"".join(map(splice.take, Blocks(LIMIT).feed(body)))
    assert b"held" in shown, "there may be room again"


def retold(body: bytes, naming: str) -> bytes:
    """Return a response's events as servers write them that tell a call's name late or once."""
    out = []
    for line in body.split(b"\n\n"):
        data = line.partition(b"data: ")[2]
        event: dict[str, Any] = json.loads(data) if data else {"type": ""}
        kind, item = event["type"], event.get("item", {})
        if kind == "response.output_item.added" and item.get("type") == "function_call":
            if naming != "late":
                continue
            event["item"] = {**item, "name": ""}
        if "item" in event and naming == "without an index":
            del event["output_index"]
        if kind and (naming != "at the end" or "response" in event):
            out.append(_named(kind, **{key: one for key, one in event.items() if key != "type"}))
    return b"".join(out)


@pytest.mark.parametrize(
    "naming", ["late", "with the whole item", "without an index", "at the end"]
)
def test_a_response_that_names_a_call_late_shows_none_of_ours(naming: str) -> None:
    ours = retold(responses([("ours", "x")]), naming)
    last = retold(responses([("words", "So.")]), naming)
    shown = spliced("responses", [ours, last])
    assert b"library_" not in shown and b'\\"x\\"' not in shown
    assert read("responses", shown)[0] == [("words", "So.")]
    assert b"library_" not in spliced("responses", [ours])
    mixed = responses([("ours", "x"), ("theirs", "y")])
    both = spliced("responses", [retold(mixed, naming)])
    assert b"library_" not in both and b'\\"y\\"' in both
    assert read("responses", both)[0] == [("call", "look")], "it is the client's turn"


def test_a_response_whose_call_never_gets_a_name_shows_it_at_the_end() -> None:
    body = retold(responses([("theirs", "y")]), "late").replace(b'"name": "look"', b'"name": ""')
    assert b'\\"y\\"' in spliced("responses", [body])
    cut = body.replace(b"response.completed", b"response.incomplete")
    begun = cut.partition(b"event: response.output_item.done")[0]
    assert b'\\"y\\"' not in spliced("responses", [begun])


def test_a_name_of_the_clients_that_ours_begin_with_is_its_own() -> None:
    fragments = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "library"}},
        {"index": 0, "function": {"arguments": "{}"}},
        {"index": 1, "id": "b", "type": "custom", "custom": {"name": "library_search"}},
    ]
    chunks = [_chunk({"tool_calls": [one]}) for one in fragments]
    shown = spliced("chat", [b"".join([*chunks, _chunk({}, "tool_calls"), _DONE])])
    assert [one["id"] for one in made_calls(shown)] == ["a", "b"]


def test_a_whole_message_in_place_of_the_last_delta_shows_no_call_of_ours() -> None:
    function = {"name": "library_search", "arguments": "{}"}
    call = {"id": "c", "type": "function", "function": function}
    said = {"role": "assistant", "content": "So.", "tool_calls": [call]}
    end = {"id": "c", "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}
    shown = spliced("chat", [_event(end) + _DONE])
    assert b"library_" not in shown
    assert read("chat", shown)[0::2] == ([("words", "So.")], "stop")


def test_where_there_is_no_room_reasoning_waits_for_nothing() -> None:
    """DESIGN 1.13."""
    splice, blocks = ROUNDS["responses"].splice(NAMES), Blocks(LIMIT)
    body = responses([("thought", "first"), ("thought", "then"), ("ours", "x")])
    shown, held = b"", [*blocks.feed(body)]
    for at, block in enumerate(held):
        shown += splice.take(block)
        if at == len(held) // 3:
            assert b"gAAAA" not in shown and b"first" not in shown
            shown += splice.let_go()
            assert b"first" in shown
    shown += splice.close()
    assert b'"library_' not in shown
    assert b"then" in shown


def test_reasoning_that_led_to_a_look_up_only_is_left_out_of_a_response() -> None:
    """openai/codex#5990: reasoning without what it led to is refused when it comes back."""
    rounds = [
        responses([("thought", "first"), ("words", "I look."), ("thought", "then"), ("ours", "x")]),
        responses([("thought", "last"), ("words", "So.")]),
    ]
    parts, _, _ = read("responses", spliced("responses", rounds))
    assert parts == [
        *(("thought", "first"), ("words", "I look.")),
        *(("thought", "last"), ("words", "So.")),
    ]


def test_reasoning_behind_a_look_up_hides_no_item_of_the_next_round() -> None:
    rounds = [
        responses([("words", "I look."), ("ours", "x"), ("thought", "hm")]),
        responses([("words", "So."), ("words", "And so."), ("ours", "y")]),
    ]
    shown = spliced("responses", rounds)
    assert b'"library_' not in shown
    assert read("responses", shown)[0] == [
        ("words", text) for text in ("I look.", "So.", "And so.")
    ]


def test_thinking_stays_in_a_message_with_its_block() -> None:
    """CASES F1: who answers a call brings back the thinking that led there."""
    rounds = [messages([("thought", "t"), ("ours", "x")]), messages([("theirs", "y")])]
    assert read("messages", spliced("messages", rounds))[0] == [("thought", "t"), ("call", "look")]


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["words", "thought", "ours", "theirs"]),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("name", WIRE_NAMES)
@settings(deadline=None)
@given(rounds=st.lists(PARTS, min_size=1, max_size=3), cuts=CUTS, naming=st.sampled_from(NAMINGS))
def test_every_cut_of_the_bytes_shows_the_same(
    name: str, rounds: list[list[Part]], cuts: list[int], naming: str
) -> None:
    """CASES D5 and issue 5: no trace of our tools, however a stream comes."""
    stop = next(
        (at for at, parts in enumerate(rounds) if not _is_ours_alone(parts)), len(rounds) - 1
    )
    written = partial(chat, naming=naming) if name == "chat" else STREAMS[name]
    bodies = [written(parts) for parts in rounds[: stop + 1]]
    whole = spliced(name, bodies)
    assert spliced(name, bodies, cuts) == whole
    assert b'"library_' not in whole
    calls = [text for kind, text in read(name, whole)[0] if kind == "call"]
    assert len(calls) == sum(kind == "theirs" for kind, _ in rounds[stop])


def _is_ours_alone(parts: Sequence[Part]) -> bool:
    kinds = {kind for kind, _ in parts}
    return "ours" in kinds and "theirs" not in kinds


@given(body=st.binary(max_size=200), cuts=CUTS)
def test_blocks_are_the_bytes_that_they_were_cut_from(body: bytes, cuts: list[int]) -> None:
    blocks, out = Blocks(LIMIT), b""
    places = sorted({place % (len(body) + 1) for place in cuts} | {0, len(body)})
    for start, stop in itertools.pairwise(places):
        out += b"".join(block.raw for block in blocks.feed(body[start:stop]))
    assert out + b"".join(block.raw for block in blocks.finish()) == body


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n"])
def test_every_blank_line_ends_an_event(end: str) -> None:
    """WHATWG HTML, 9.2.6: lines may end in three ways, each in its own; as SseReader has it."""
    body = f"data: a{end}data: b{end}".encode()
    assert [block.data for block in Blocks(LIMIT).feed(body)] == [b"a", b"b"]


def test_an_event_that_is_too_long_to_be_looked_at_is_an_error_and_those_before_it_are_not() -> (
    None
):
    """DESIGN 1.13; a response's last event repeats all its calls, however long it is."""
    blocks = Blocks(64)
    found = blocks.feed(b"data: a\n\ndata: " + b"x" * 100)
    assert next(found).data == b"a"
    with pytest.raises(EventTooLong):
        next(found)
    with pytest.raises(EventTooLong):
        list(Blocks(64).feed(b"data: " + b"x" * 100 + b"\n\n"))
