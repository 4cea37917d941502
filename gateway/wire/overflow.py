"""Recognise an upstream's "your prompt is too long", however it is worded. Pure.

Clients that compact their history do so on code `context_length_exceeded` or on the words "maximum
context length"; each wire says it as its protocol does. Servers word it in some forty ways, so the
client would see a plain 400, or a 500, and give up or retry for ever. Any other error is relayed
byte for byte.

A limit on tokens per minute also speaks of tokens and "too large"; it must not be taken for this,
or a client would throw away its history because it was fast.

Source: CASES B5 (litellm#28063, ik_llama.cpp PR#2051); wordings from the servers' own sources and
from public reports, one or more a line in tests/unit/gateway/wire/test_overflow.py.
"""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.wire.lenient import error_text

CODE = "context_length_exceeded"
PHRASE = "maximum context length"
STATUS = 400
_NEVER_STATUSES = frozenset({401, 402, 403, 404, 429})
_SCAN_BYTES = 65_536
"""An error body is short; what is longer is none, or hides its message in its first part."""

_RATE = re.compile(
    r"per (minute|min|hour|day)|\b[rt]p[md]\b|rate.?limit|quota|too many requests", re.IGNORECASE
)
_OVERFLOW = re.compile(
    "|".join(
        (
            r"context[_ -]?(length|window|size)[_ ](is |was |has been |limit )?exceed",
            r"exceed(s|ed|ing)?[_ ](the |this |its |your )?(model'?s? )?"
            r"((available|maximum|max|configured|total|allowed)[_ ])*context",
            r"exceed\w* th(e|is) model'?s? (maximum |max )?(context|prompt|input|token)",
            r"exceed(s|ed) (the )?(model )?(token|input token|input length) limit",
            r"(maximum|max|model'?s?) context (length|window|size)",
            r"context (length|window|size) (of )?(only )?[\d,]+ tokens",
            r"maximum prompt length is",
            r"(longer|greater|larger|more) than (the )?(model'?s? |maximum |max )*"
            r"(context|model length|max_seq_len|max_model_len|sequence length|input length)",
            r"(prompt|input|request|message|conversation)s?( \(.{1,40}\))? (is|are|was) too long",
            r"(prompt|input) too long",
            r"prompt exceeds max",
            r"input is too long for",
            r"(input|prompt) token count.{0,40}exceeds",
            r"prompt length.{0,40}exceeds",
            r"input length.{0,60}exceeds?",
            r"exceeds the maximum (allowed )?(number of )?(input |allowed |prompt )*"
            r"(tokens|token count|input length|sequence length)",
            r"(too many|number of) (input |prompt )?tokens.{0,60}(exceed|cannot|max|limit|than)",
            r"prompt contains.{0,60}too large for model",
            r"too many (input |prompt )?tokens",
            r"`?inputs`? (tokens \+|must have less than)",
            r"reduce the length of the (messages|prompt|input)",
            r"exceed_context_size",
            r"context (the )?overflow|context_window_exceeded|ContextWindowExceeded",
            r"exceeded max context length",
            r"model_max_prompt_tokens_exceeded",
            r"range of input length should be",
            r"exceeded model token limit",
            r"context window exceeds limit",
            r"input tokens exceed",
            r"cannot exceed the total tokens limit",
            r"current length is \d+ while limit is",
        )
    ),
    re.IGNORECASE,
)


def is_overflow(text: str) -> bool:
    """Tell whether an error's words mean that the prompt is longer than the model's window."""
    text = text[:_SCAN_BYTES]
    return bool(_OVERFLOW.search(text)) and not _RATE.search(text)


def may_be_overflow(status: int) -> bool:
    """Tell whether an error answer of this status can say that the prompt is too long."""
    return status >= STATUS and status not in _NEVER_STATUSES


@dataclass(frozen=True, slots=True)
class Overflow:
    """An upstream's error that says that the prompt is too long."""

    message: str
    """Its words, whatever shape they came in."""
    error: dict[str, Any]
    """Its error object; empty where it has none."""
    fields: Any
    """The whole of its JSON; None: it is none."""


def overflow_in(body: bytes) -> Overflow | None:
    """Return what an error's body says, if it is that the prompt is too long."""
    fields = _fields(body)
    error = fields.get("error") if isinstance(fields, dict) else None
    own = error if isinstance(error, dict) else {}
    if isinstance(fields, dict):
        message = error_text(fields) or ""
    else:
        message = body[:_SCAN_BYTES].decode(errors="replace").strip()
    clues = (message, own.get("code"), own.get("type"))
    if not is_overflow(" ".join(str(clue) for clue in clues if clue)):
        return None
    return Overflow(message, own, fields)


def said_plainly(message: str) -> str:
    """Return the message with the words that clients look for."""
    if PHRASE in message:
        return message
    return f"This request exceeds the model's {PHRASE}. The upstream says: {message}"


def _fields(body: bytes) -> Any:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    # Gemini's compatible endpoint wraps its error object in a list.
    if isinstance(fields, list) and len(fields) == 1:
        return fields[0]
    return fields
