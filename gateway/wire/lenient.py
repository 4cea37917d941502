"""JSON of an upstream that is almost JSON, for the record. Pure.

Clients read more than orjson does: cut UTF-8, and the halves of a UTF-16 pair, which servers in
JavaScript or Java stream as two chunks. What a client could read has to be recorded.
"""

import json
from typing import Any

import orjson

NOT_JSON = "the upstream's answer is not a JSON object"
DEEP = '"[nested too deeply]"'


def loaded(data: bytes) -> tuple[Any, bool]:
    """Return the JSON in `data` and whether its text needs `mended`; (None, False): it is none."""
    try:
        return orjson.loads(data), False
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace")), True
    except (ValueError, RecursionError):
        return None, False


def mended(value: Any) -> Any:
    """Return `value` with the halves of a pair made one again, and single ones replaced."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return json.loads(whole)
    except (ValueError, RecursionError):
        return None


def dumped(value: Any) -> str:
    """Return the JSON of what an upstream wrote; it may be nested more deeply than is written."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return DEEP


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def usage_of(value: Any) -> dict[str, Any] | None:
    """Return an upstream's usage, if it is one that a report can hold."""
    return value if isinstance(value, dict) and dumped(value) != DEEP else None


def error_text(fields: Any) -> str | None:
    """Return the message of an upstream's error object, in any of the usual shapes."""
    if not isinstance(fields, dict):
        return None
    error = fields.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error
    if not error and (fields.get("object") == "error" or "detail" in fields):
        error = fields.get("message") or fields.get("detail")
    if not error:
        return None
    return error if isinstance(error, str) else dumped(error)
