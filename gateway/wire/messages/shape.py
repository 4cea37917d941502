"""Errors in Anthropic's shape: `{"type": "error", "error": {type, message}}`. Pure.

What programs branch on stands where its clients look for it, in `error.details.error_code`.

Source: Anthropic, "Errors" (which type goes with which status, and within a stream); PyPI's
anthropic 2.14, _exceptions.py.
"""

from typing import Any

import orjson

from gateway.wire.overflow import CODE, overflow_in, said_plainly
from gateway.wire.protocol import Refusal

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_TOO_LONG = "prompt is too long"
"""Claude Code and others shorten their history on these words."""
_OWN_WORDS = (_TOO_LONG, "exceed context limit")
"""How Anthropic itself says it, with the numbers that its clients read."""


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON of a refusal."""
    message = refusal.message
    if refusal.needed_tokens is not None and refusal.budget_tokens is not None:
        numbers = f"{refusal.needed_tokens} tokens > {refusal.budget_tokens} maximum"
        message = f"{_TOO_LONG}: {numbers}. {message}"
    details = {"error_code": refusal.code}
    if refusal.param is not None:
        details["param"] = refusal.param
    kind = error_type(refusal.status)
    return {"type": "error", "error": {"type": kind, "message": message, "details": details}}


def error_type(status: int) -> str:
    """Return the type of the errors that a status has."""
    return _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def error_event(refusal: Refusal, _: int = 0) -> bytes:
    """Return what a stream says when it breaks."""
    return b"event: error\ndata: " + orjson.dumps(error_body(refusal)) + b"\n\n"


def rewritten_error(body: bytes, is_status_right: bool = True) -> bytes | None:
    """Return Anthropic's form of an overflow error; None: it is none, or has that form."""
    overflow = overflow_in(body)
    if overflow is None:
        return None
    is_own_shape = (
        isinstance(overflow.fields, dict)
        and overflow.fields.get("type") == "error"
        and overflow.error.get("type") == "invalid_request_error"
    )
    if is_status_right and is_own_shape and any(word in overflow.message for word in _OWN_WORDS):
        return None
    message = overflow.message
    if _TOO_LONG not in message:
        message = f"{_TOO_LONG}: {said_plainly(message)}"
    rest = overflow.fields if is_own_shape else {}
    said = {"type": "invalid_request_error", "message": message}
    error = {**overflow.error, **said, "details": {"error_code": CODE}}
    try:
        return orjson.dumps({**rest, "type": "error", "error": error})
    except orjson.JSONEncodeError:  # It is nested too deeply to be written again.
        return None
