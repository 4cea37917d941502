"""Markers that tell a provider up to where it should keep a prompt: `cache_control`. Pure.

A client's own stay with their message (CASES G4). Where the upstream is known to want some and the
settings allow it, ours stand in a prompt that was paged, behind what the next prompt will begin
with. Never in one that goes out as it came.

In a prompt that grows until its window moves, these ends are worth a marker, the best first:

- its own end, which the next request reads - or, where the desk leaves with the question that it
  stands in front of, the end of what stands before that question;
- the end of the system text, which outlives a move of the window;
- the end of the last prompt: what stands before the newest message of the assistant. A provider
  looks back only so far from a marker for what it kept, and a step with many results is longer.

Source: Anthropic, "Prompt caching": at most four, thinking and blank text cannot bear one, it looks
back 20 blocks, and one that lives longer must not stand behind one that lives shorter.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from governor.message import Role

MARK = "cache_control"
MARKS_MAX = 4
PLAIN = {"type": "ephemeral"}
"""Lives five minutes, from each time it is read."""
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})

Raw = dict[str, Any]


def marks_in(value: Any) -> list[Any]:
    """Return the markers in a message, a block or a list of them, in order; what tools are given is
    not looked into."""
    if isinstance(value, list):
        return [mark for one in value for mark in marks_in(one)]
    if not isinstance(value, dict):
        return []
    inner = marks_in(value.get("content"))
    return [*inner, value[MARK]] if value.get(MARK) else inner


def with_own_marks(
    messages: Sequence[Raw],
    roles: Sequence[Role],
    *,
    markable: frozenset[Role],
    outside: Sequence[Any],
    automatic: Any,
    stays: bool,
) -> list[Raw]:
    """Return a prompt's messages with as many markers of ours as the client's leave room for.

    `markable` may bear one; `outside` are the client's in front of the messages, `automatic` is one
    that the provider is to set at the end by itself, if any. `stays`: the prompt's end, desk and
    all, will be the start of the next prompt.
    """
    marked = list(messages)
    left = MARKS_MAX - len(outside) - bool(automatic) - len(marks_in(marked))
    for end in _ends(roles, stays=stays):
        if left <= 0:
            break
        if automatic and end == len(marked) - 1:
            continue
        behind = [*marks_in(marked[end + 1 :]), *([automatic] if automatic else [])]
        for at in range(end, -1, -1):
            if roles[at] not in markable:
                continue
            block_at = _markable_block(marked[at])
            if block_at is None:
                continue
            if not marks_in(_blocks(marked[at])[block_at]):
                marked[at] = _marked(marked[at], block_at, behind[0] if behind else PLAIN)
                left -= 1
            break
    return marked


def _ends(roles: Sequence[Role], *, stays: bool) -> Iterator[int]:
    """Yield the ends that are worth a marker, the best first; the same may come twice."""
    last = len(roles) - 1
    is_in_loop = roles[last] != "user"
    yield last if stays or is_in_loop else last - 1
    systems = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
    yield systems - 1
    assistants = [at for at, role in enumerate(roles) if role == "assistant"]
    if assistants:
        yield assistants[-1] - 1


def _blocks(message: Raw) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _markable_block(message: Raw) -> int | None:
    """Return the last block that can bear a marker."""
    blocks = _blocks(message)
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if not isinstance(block, dict) or block.get("type") in _UNMARKABLE:
            continue
        if block.get("type") != "text" or str(block.get("text") or "").strip():
            return at
    return None


def _marked(message: Raw, block_at: int, mark: Any) -> Raw:
    blocks = list(_blocks(message))
    blocks[block_at] = {**blocks[block_at], MARK: mark}
    return {**message, "content": blocks}


def with_newest_marks(messages: list[Raw], *, most: int) -> list[Raw]:
    """Return the messages with the newest `most` markers (CASES G4).

    A client sets no more than are allowed; stored messages of a client that sends only its newest
    one bring those of their own requests.
    """
    surplus = len(marks_in(messages)) - most
    for at, message in enumerate(messages):
        if surplus <= 0:
            break
        count = len(marks_in(message))
        if count:
            messages[at] = _without_marks(message, min(surplus, count))
            surplus -= count
    return messages


def _without_marks(message: Raw, count: int) -> Raw:
    blocks = []
    for block in message["content"]:
        marked = len(marks_in(block))
        if count > 0 and marked:
            blocks.append(_unmarked(block))
            count -= marked
        else:
            blocks.append(block)
    return {**message, "content": blocks}


def _unmarked(block: Raw) -> Raw:
    rest = {key: value for key, value in block.items() if key != MARK}
    if isinstance(rest.get("content"), list):
        rest["content"] = [
            _unmarked(inner) if isinstance(inner, dict) else inner for inner in rest["content"]
        ]
    return rest
