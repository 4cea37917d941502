"""Errors in OpenAI's shape: `{"error": {message, type, param, code}}`. Pure.

Source: OpenAI API reference, "Errors".
"""

from typing import Any

import orjson

from gateway.wire.overflow import CODE, PHRASE, overflow_in, said_plainly
from gateway.wire.protocol import Refusal


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON of a refusal."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def error_event(refusal: Refusal, event_count: int = 0) -> bytes:
    """Return what a stream says when it breaks; its events have no numbers."""
    return b"data: " + orjson.dumps(error_body(refusal)) + b"\n\n"


def rewritten_error(
    body: bytes, is_status_right: bool = True, *, items: str = "messages"
) -> bytes | None:
    """Return OpenAI's form of an overflow error; None: it is none, or has that form. `items` is
    the field that is too long."""
    overflow = overflow_in(body)
    if overflow is None:
        return None
    own = overflow.error
    if is_status_right and own.get("code") == CODE and PHRASE in overflow.message:
        return None
    answer = {
        **own,
        "message": said_plainly(overflow.message),
        "type": "invalid_request_error",
        "param": own.get("param") or items,
        "code": CODE,
    }
    try:
        return orjson.dumps({"error": answer})
    except orjson.JSONEncodeError:  # It is nested too deeply to be written again.
        return None
