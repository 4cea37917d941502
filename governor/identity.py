"""When two messages are the same message. Pure.

Clients re-send the whole transcript with every request, and seldom byte for byte: SDKs add null
fields, move `cache_control` markers, re-serialise tool arguments, trim the ends of replies and
leave reasoning out; agents put the date and reminders into messages (governor/surroundings.py). So
identity is a digest over what was said - role, words, calls, the call that is answered,
attachments - and not over the JSON. Everything else is stored, but decides
nothing. The rejected alternative, hashing the canonical JSON whole, forked a thread whenever a
client re-rendered an old message.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import orjson

from governor.surroundings import without_surroundings
from library.records import DIGEST_BYTES

_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def identity_digest(
    *,
    role: str,
    text: str,
    calls: Sequence[tuple[str, str, str]] = (),
    answers: str | None = None,
    media: Iterable[str] = (),
) -> bytes:
    """Return the 16-byte identity of a message.

    `calls` are (id, name, arguments); `media` the attachments as the client sent them (data URLs,
    links, file ids), in order.
    """
    if role == "assistant" and text.lstrip().startswith("<think>"):
        # Only at its start: a search would go through a thought without an end again and again.
        thought = _THINKING.match(text)
        text = text[thought.end() :] if thought else text
    elif role != "assistant":
        text = without_surroundings(text)
    fields = [role, text.strip(), answers or "", *_call_fields(calls), *media]
    # All lengths stand in front, so that no two lists of fields run together alike.
    lengths = ",".join([str(len(field)) for field in fields])
    data = f"{lengths}:{''.join(fields)}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _call_fields(calls: Sequence[tuple[str, str, str]]) -> Iterable[str]:
    for call_id, name, arguments in calls:
        yield call_id
        yield name
        yield canonical_arguments(arguments)


def canonical_arguments(arguments: str) -> str:
    """Return tool arguments with one spelling for equal JSON; anything else as it is."""
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return arguments
