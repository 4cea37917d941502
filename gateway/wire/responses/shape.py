"""Errors in the shapes of the Responses protocol. Pure.

An answer that is no stream has OpenAI's usual error body. In a stream an error is an event with its
words at the top, as the reference says, and under `error` as well, as api.openai.com sends it:
OpenAI's own SDKs raise only for the second. A prompt that is too long may also come as a
`response.failed`.

Source: OpenAI API reference, "error" event; openai-python 3.57, `_streaming.py`.
"""

from typing import Any

import orjson

from gateway.wire.chat.shape import error_body
from gateway.wire.overflow import CODE, PHRASE, overflow_in, said_plainly
from gateway.wire.protocol import Refusal

__all__ = ["error_body", "error_event", "rewritten_error"]


def error_event(refusal: Refusal, sequence_number: int = 0) -> bytes:
    """Return what a stream says when it breaks."""
    error = error_body(refusal)["error"]
    event = {
        "type": "error",
        "sequence_number": sequence_number,
        "code": error["code"],
        "message": error["message"],
        "param": error["param"],
        "error": error,
    }
    return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"


def rewritten_error(body: bytes, is_status_right: bool = True) -> bytes | None:
    """Return OpenAI's form of an overflow error, in a body, in an error event or in a failed
    response; None: it is none, or has that form."""
    fields = _fields(body)
    response = fields.get("response") if fields else None
    if fields and isinstance(response, dict):
        error = _rewritten(orjson.dumps({"error": response.get("error")}), is_status_right)
        return _dumped({**fields, "response": {**response, "error": error}}) if error else None
    if fields and fields.get("type") == "error":
        own = fields.get("error") or {key: fields.get(key) for key in ("code", "message", "param")}
        error = _rewritten(orjson.dumps({"error": own}), is_status_right)
        if error is None:
            return None
        told = {key: error[key] for key in ("code", "message", "param")}
        return _dumped({**fields, **told, "error": error})
    error = _rewritten(body, is_status_right)
    return _dumped({"error": error}) if error else None


def _rewritten(body: bytes, is_status_right: bool) -> dict[str, Any] | None:
    overflow = overflow_in(body)
    if overflow is None:
        return None
    own = overflow.error
    if is_status_right and own.get("code") == CODE and PHRASE in overflow.message:
        return None
    return {
        **own,
        "message": said_plainly(overflow.message),
        "type": "invalid_request_error",
        "param": own.get("param") or "input",
        "code": CODE,
    }


def _fields(body: bytes) -> dict[str, Any] | None:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def _dumped(value: Any) -> bytes | None:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # It is nested too deeply to be written again.
        return None
