"""JSON of an upstream that is almost JSON, for the record. Pure.

Clients read more than orjson does: cut UTF-8, and the halves of a UTF-16 pair, which servers in
JavaScript or Java stream as two chunks. What a client could read has to be recorded.
"""

import json
from typing import Any

import orjson

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
