"""A text completions request: which are read as a text that goes on, and what goes out."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.completions.request import FILLING_IN, decode, encode
from gateway.wire.protocol import MalformedRequest
from gateway.wire.seen import SeenMessages
from governor.turn import PlannedMessage
from tests.unit.gateway.wire.completions.test_cutting import TEXTS, prose


def body(prompt: Any, **more: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": prompt, **more}).encode()


@given(TEXTS, st.booleans())
def test_all_pieces_planned_are_the_prompt_as_it_came(text: str, is_list: bool) -> None:
    if not text.strip():
        return
    prompt = [text] if is_list else text
    request = decode(orjson.dumps({"model": "m", "prompt": prompt, "x": 1}))
    planned = [PlannedMessage(message) for message in request.messages]
    assert orjson.loads(encode(request, planned)) == {"model": "m", "prompt": prompt, "x": 1}


def test_the_head_of_a_long_text_is_its_system_text_and_a_short_one_has_none() -> None:
    roles = [message.role for message in decode(body(prose(1, 60))).messages]
    assert len(roles) > 3
    assert roles == ["system"] + ["user"] * (len(roles) - 1)
    (only,) = decode(body("short")).messages
    assert only.role == "user"


def test_what_was_read_before_is_not_read_again() -> None:
    seen, text = SeenMessages(), prose(1, 60)
    first = decode(body(text), seen).messages
    again = decode(body(text + " more"), seen).messages
    assert all(one is other for one, other in zip(first[:-1], again, strict=False))


@pytest.mark.parametrize("byte", [b"\xff", b"\xed\xa0\x80"])
def test_a_prompt_that_is_no_utf8_is_left_to_the_upstream(byte: bytes) -> None:
    """It ended with a 500; what cannot be read here, another parser may read."""
    with pytest.raises(MalformedRequest):
        decode(b'{"model": "m", "prompt": "a ' + byte + b' b"}')


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ["one", "two"]},
        {"prompt": [1, 2, 3]},
        {"prompt": [[1, 2], [3]]},
        {"prompt": {"prompt_string": "x"}},
        {"prompt": None},
        {"prompt": " \n"},
        {"suffix": " end"},
        {"echo": True},
        {"prompt_logprobs": 0},
        {"model": 7},
        *({"prompt": f"def f():{mark}return 1"} for mark in FILLING_IN),
    ],
    ids=str,
)
def test_a_prompt_of_which_nothing_may_be_left_out_is_not_read(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        decode(orjson.dumps({"model": "m", "prompt": "text", **fields}))


@pytest.mark.parametrize("more", [{"suffix": None}, {"suffix": ""}, {"echo": False}, {"n": 2}])
def test_fields_that_ask_for_nothing_of_the_kind_change_nothing(more: dict[str, Any]) -> None:
    assert decode(body("text", best_of=3, logprobs=2, **more)).messages[0].text == "text"


def test_a_request_may_name_no_model() -> None:
    """llama.cpp serves one, and needs no name of it."""
    request = decode(b'{"prompt": "text", "max_tokens": 12, "stream": true}')
    assert (request.model, request.reply_tokens, request.is_stream) == ("", 12, True)
