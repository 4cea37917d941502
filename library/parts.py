"""Large payloads taken out of a message, to be stored once, and put back byte for byte. Pure.

Clients re-send an image with every request, and edits and branches repeat it, so a long data URL
or base64 string is replaced by `{"$part": "<hex digest>"}` in the stored body. A client's own
object that has a `$part` key is wrapped as `{"$part": {...}}`, which keeps the two apart for any
JSON: a placeholder's value is a string, a wrapped object's an object.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

PART_CHARACTERS_MIN = 8_192
"""Shorter strings stay in the body: a row of their own would cost more than they do."""

PARTS_MAX = 256
"""Of one message; further ones stay in its body."""

MARK = "$part"
MARK_JSON = '"$part"'
"""A body whose JSON does not hold this has neither a placeholder nor a wrapped object."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")


@dataclass(slots=True)
class Split:
    """A body without its large parts."""

    body: Any = None
    parts: dict[bytes, str] = field(default_factory=dict)


def split(body: Mapping[str, Any]) -> Split:
    """Return `body` with its large parts replaced, and these by digest."""
    result = Split()
    result.body = _split(body, result.parts)
    return result


def _split(value: Any, parts: dict[bytes, str]) -> Any:
    if isinstance(value, str):
        if len(value) < PART_CHARACTERS_MIN or len(parts) >= PARTS_MAX or not is_payload(value):
            return value
        digest = blake2b(value.encode(), digest_size=16).digest()
        parts[digest] = value
        return {MARK: digest.hex()}
    if isinstance(value, Mapping):
        inner = {key: _split(item, parts) for key, item in value.items()}
        return {MARK: inner} if MARK in inner else inner
    if isinstance(value, list | tuple):
        return [_split(item, parts) for item in value]
    return value


def is_payload(text: str) -> bool:
    """Tell whether a long string is a data URL or base64, and so nothing that anybody reads."""
    return text.startswith("data:") or _BASE64.fullmatch(text) is not None


def join(value: Any, part: Callable[[bytes], str]) -> Any:
    """Return the body that `split` was given; `part` returns a part by its digest."""
    if isinstance(value, dict):
        marked = value.get(MARK)
        if isinstance(marked, str):
            return part(bytes.fromhex(marked))
        if isinstance(marked, dict):
            value = marked
        return {key: join(item, part) for key, item in value.items()}
    if isinstance(value, list):
        return [join(item, part) for item in value]
    return value
