"""Prompts as the prefix bench compares them, and what peers make of the same conversation. Pure.

A provider's cache serves what a prompt has in common with the one before it, from its first token.
So a prompt is a list of texts with their tokens, and of the first text that differs the common
start counts too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from gateway.wire.chat.message import message_of, written
from governor.desk.rendering import SEPARATOR
from governor.message import Message
from governor.turn import Counter, PlannedMessage


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a prompt."""

    text: str
    tokens: int
    digest: bytes
    """Of the client's message in it; b"" for none."""


Prompt = list[Piece]
Peer = Callable[[Sequence[Message], Counter, int], Prompt]


def piece(counter: Counter, planned: PlannedMessage) -> Piece:
    message = written(planned)
    tokens, raw = counter.message(message), dict(message.raw)
    words = raw.pop("content", None)
    text = f"{raw.pop('role')}\0{words if isinstance(words, str) else orjson.dumps(words).decode()}"
    if raw:
        text += orjson.dumps(raw).decode()
    return Piece(text, tokens, planned.message.digest)


def pieces(counter: Counter, messages: Sequence[Message]) -> Prompt:
    return [piece(counter, PlannedMessage(one)) for one in messages]


def tokens_of(prompt: Prompt) -> int:
    return sum(one.tokens for one in prompt)


def shared_tokens(before: Prompt, now: Prompt, counter: Counter) -> int:
    """Return how many tokens both prompts begin with."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old.text == new.text:
            shared += new.tokens
            continue
        least = min(len(old.text), len(new.text))
        ends = (at for at in range(least) if old.text[at] != new.text[at])
        common = new.text[: next(ends, least)]
        return shared + min(counter.count(common), new.tokens)
    return shared


# -- peers ---------------------------------------------------------------------------------------
SLIDING_MESSAGES = 20
"""As many as chat front ends keep by default, or fewer where they do not fit."""


def sliding_window(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> Prompt:
    """The newest twenty messages."""
    head, rest = _split(messages)
    return _newest(head, rest[-SLIDING_MESSAGES:], counter, budget_tokens)


def drop_oldest(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> Prompt:
    """All but the oldest messages, as many as fit."""
    return _newest(*_split(messages), counter, budget_tokens)


def middle_out(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> Prompt:
    """The first and the last messages; messages go from the middle until the rest fits."""
    head, rest = _split(messages)
    kept = pieces(counter, rest)
    left = budget_tokens - counter.prompt_overhead_tokens - tokens_of(pieces(counter, head))
    used = tokens_of(kept)
    while used > left and len(kept) > 1:
        used -= kept.pop((len(kept) - 1) // 2).tokens
    return [*pieces(counter, head), *kept]


def whole(messages: Sequence[Message], counter: Counter, budget_tokens: int) -> Prompt:
    """Everything, as it came, whatever it costs."""
    del budget_tokens
    return pieces(counter, messages)


PEERS: dict[str, Peer] = {
    "whole history": whole,
    "sliding window": sliding_window,
    "drop the oldest": drop_oldest,
    "middle-out": middle_out,
}


def desk_in_system(plan: Sequence[PlannedMessage], counter: Counter) -> Prompt:
    """Return a prompt of ours with its desk at the end of the system text instead."""
    desk = next((one.before for one in reversed(plan) if one.before), "")
    moved = [PlannedMessage(one.message, replaced=one.replaced) for one in plan]
    if not desk:
        return [piece(counter, one) for one in moved]
    head, rest = _split([one.message for one in moved])
    system = message_of(
        {"role": "system", "content": SEPARATOR.join([*(one.text for one in head), desk])}
    )
    return [piece(counter, PlannedMessage(one)) for one in (system, *rest)]


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    count = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    return list(messages[:count]), list(messages[count:])


def _newest(
    head: Sequence[Message], rest: Sequence[Message], counter: Counter, budget_tokens: int
) -> Prompt:
    """Return the longest run of newest messages that fits and does not begin amid a tool call."""
    start = pieces(counter, head)
    left = budget_tokens - counter.prompt_overhead_tokens - tokens_of(start)
    kept: Prompt = []
    for message in reversed(rest):
        one = piece(counter, PlannedMessage(message))
        left -= one.tokens
        if left < 0:
            break
        kept.append(one)
    while len(kept) > 1 and kept[-1].text.startswith(("tool", "assistant")):
        kept.pop()
    return [*start, *reversed(kept)]
