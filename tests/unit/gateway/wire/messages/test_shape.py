"""gateway/wire/messages/shape.py: errors as Anthropic's clients read them."""

import json
from typing import Any

import pytest

from gateway.wire.messages.shape import error_body, error_event, rewritten_error
from gateway.wire.protocol import Refusal
from tests.unit.gateway.wire.test_overflow import OVERFLOWS


def own(message: str) -> dict[str, Any]:
    error = {"type": "invalid_request_error", "message": message}
    return {"type": "error", "error": error, "request_id": "req_1"}


@pytest.mark.parametrize("wording", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_an_overflow_however_it_is_worded_is_said_as_anthropic_says_it(wording: str) -> None:
    """CASES B5 (litellm#28063, ik_llama.cpp PR#2051)."""
    changed = rewritten_error(json.dumps({"error": {"message": wording}}).encode(), True)
    assert changed is not None
    said = json.loads(changed)
    assert (said["type"], said["error"]["type"]) == ("error", "invalid_request_error")
    assert said["error"]["details"] == {"error_code": "context_length_exceeded"}
    assert "prompt is too long" in said["error"]["message"]
    assert wording in said["error"]["message"]


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 209000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
    ],
)
def test_what_anthropic_itself_says_stays_byte_for_byte(message: str) -> None:
    assert rewritten_error(json.dumps(own(message)).encode(), True) is None
    mended = rewritten_error(json.dumps(own(message)).encode(), False)
    assert mended is not None
    assert json.loads(mended)["request_id"] == "req_1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (409, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
    ],
)
def test_a_status_has_its_type(status: int, kind: str) -> None:
    refusal = Refusal(status, "no", type="server_error", code="a_code", param="x")
    assert error_body(refusal) == {
        "type": "error",
        "error": {
            "type": kind,
            "message": "no",
            "details": {"error_code": "a_code", "param": "x"},
        },
    }
    assert error_event(refusal).startswith(b"event: error\ndata: {")
