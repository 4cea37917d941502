"""gateway/wire/responses/shape.py: errors as clients of this protocol read them."""

import orjson
import pytest

from gateway.wire.protocol import Refusal
from gateway.wire.responses.shape import error_body, error_event, rewritten_error

REFUSAL = Refusal(502, "it broke", "upstream_error", "upstream_broken")


def test_an_error_event_is_read_by_both_kinds_of_clients() -> None:
    """CASES D9: OpenAI's SDKs raise for `error`, others read what stands at the top."""
    name, data = error_event(REFUSAL, 7).split(b"\n")[:2]
    assert name == b"event: error"
    event = orjson.loads(data.removeprefix(b"data: "))
    assert (event["type"], event["sequence_number"]) == ("error", 7)
    assert event["message"] == event["error"]["message"] == "it broke"
    assert event["error"] == error_body(REFUSAL)["error"]


@pytest.mark.parametrize("words", ["prompt is too long: 9 tokens", "input exceeds the context"])
def test_an_overflow_is_said_as_openai_says_it(words: str) -> None:
    """CASES B5, in a body, in an error event and in a failed response."""
    error = {"message": "the request exceeds the available context size, " + words, "code": "x"}
    body = orjson.loads(rewritten_error(orjson.dumps({"error": error}), False) or b"")
    event = {"type": "error", "sequence_number": 3, **error, "param": None}
    told = orjson.loads(rewritten_error(orjson.dumps(event), True) or b"")
    failed = {"type": "response.failed", "response": {"id": "resp_1", "error": error}}
    response = orjson.loads(rewritten_error(orjson.dumps(failed), True) or b"")["response"]
    for one in (body["error"], told, told["error"], response["error"]):
        assert one["code"] == "context_length_exceeded"
        assert "maximum context length" in one["message"]
    assert told["sequence_number"] == 3
    assert response["id"] == "resp_1"


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b'{"error": {"message": "no such model"}}',
     b'{"type": "error", "message": "rate limit: too many tokens per minute"}',
     b'{"type": "response.failed", "response": {"error": {"message": "no"}}}',
     b'{"type": "response.failed", "response": {}}'],
)  # fmt: skip
def test_any_other_error_is_left_as_it_is(body: bytes) -> None:
    assert rewritten_error(body, True) is None
