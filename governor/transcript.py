"""Split a transcript into the smallest runs that may be kept or dropped as one, and mend it.

Pure: no I/O, no clock, no tokenizer.

Providers answer 400 to a request that holds one half of a tool exchange, so the atom of trimming
is not the message but the *unit*: an assistant message that calls tools, together with every
`tool` message that answers it; any other message is a unit of its own. System messages that open
the transcript stand outside; a later one belongs to the unit that follows it, since clients put
reminders in front of what they are about.

A transcript that arrives broken (an interrupted call, a result whose call was cut off) is mended
for the upstream in one way, `repaired`, or its thread would be answered 400 for ever.

Source: OpenAI chat completions, `messages[].tool_call_id`; Anthropic, `tool_use`/`tool_result`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from governor.message import Message
from governor.turn import Dialect

LEGACY_CALL = "function_call:"
"""Prefix of the ids made for OpenAI's old `function_call`, which has a name and no id."""
INTERRUPTED = "[no result: the call was interrupted]"
EMPTY = {"assistant": "[empty reply]", "user": "[empty message]"}
"""What stands instead of nothing. A message is replaced and not removed, because strict chat
templates want user and assistant to alternate; a system message has no such place and is left out.
A tool's result may be empty: a command may print nothing, and every provider takes it."""


class Unit(NamedTuple):
    """`messages[start:stop]` of the transcript; never empty. A tuple, since there are many."""

    start: int
    stop: int
    is_user: bool
    """It holds a message of the user: a prompt may begin with it."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A valid transcript, cut into units."""

    messages: tuple[Message, ...]
    origins: tuple[int, ...]
    """For each message its index in what the client sent; -1 for one that a repair made."""
    system_count: int
    """So many messages at the start are system messages."""
    units: tuple[Unit, ...]
    """They tile `messages[system_count:]`."""
    question: int
    """Index of the unit with the last message of the user; -1: there is none."""
    repairs: tuple[str, ...]

    @property
    def has_results(self) -> bool:
        """Tools have been called: it is an agent's."""
        return any(message.role == "tool" for message in self.messages)

    def unit_messages(self, index: int) -> tuple[Message, ...]:
        unit = self.units[index]
        return self.messages[unit.start : unit.stop]


def read(messages: Sequence[Message], dialect: Dialect) -> Transcript:
    """Return the transcript of `messages`, mended where no provider would accept it; `dialect`
    writes what is mended."""
    whole, origins = tuple(messages), tuple(range(len(messages)))
    repairs: list[str] = []
    if any(message.is_blank for message in messages) or not _is_paired(messages):
        paired = _without_blank_system(_repaired_pairs(messages, dialect, repairs), repairs)
        whole = tuple(_filled(origin, message, dialect, repairs) for origin, message in paired)
        origins = tuple(origin for origin, _ in paired)
    system_count = next(
        (index for index, message in enumerate(whole) if message.role != "system"), len(whole)
    )
    units = _units(whole, system_count)
    question = next((at for at in range(len(units) - 1, -1, -1) if units[at].is_user), -1)
    return Transcript(whole, origins, system_count, units, question, tuple(repairs))


def _units(messages: tuple[Message, ...], start: int) -> tuple[Unit, ...]:
    """Tile `messages[start:]`, whose calls and results are known to be paired."""
    found: list[Unit] = []
    is_open = False
    """The last unit still takes results."""
    pending = start
    """Where the next unit begins: system messages before it are its own."""
    for index in range(start, len(messages)):
        role = messages[index].role
        if role == "system":
            continue
        if role == "tool" and is_open:
            found[-1] = found[-1]._replace(stop=index + 1)
        else:
            found.append(Unit(pending, index + 1, role == "user"))
            is_open = role == "assistant" and bool(messages[index].call_ids)
        pending = index + 1
    if pending < len(messages):
        if found:
            found[-1] = found[-1]._replace(stop=len(messages))
        else:
            found.append(Unit(pending, len(messages), is_user=False))
    return tuple(found)


def _is_paired(messages: Sequence[Message]) -> bool:
    """Tell whether every call has its result right behind it and every result its call."""
    open_ids: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.answers not in open_ids:
                return False
            open_ids.discard(message.answers)
        elif message.role != "system":
            if open_ids:
                return False
            if message.call_ids:
                open_ids = set(message.call_ids)
                if "" in open_ids or len(open_ids) != len(message.call_ids):
                    return False
    return not open_ids


def _repaired_pairs(
    messages: Sequence[Message], dialect: Dialect, repairs: list[str]
) -> list[tuple[int, Message]]:
    """Put every result behind its call, make the missing ones, leave out those without a call."""
    out: list[tuple[int, Message]] = []
    waiting = _Results(messages)
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        if not message.call_ids:
            out.append((index, message))
            continue
        if "" in message.call_ids or len({*message.call_ids}) < len(message.call_ids):
            repairs.append(f"messages[{index}]: tool calls with empty or repeated ids were renamed")
            message = dialect.renamed(message, _new_ids(message.call_ids, index))
        out.append((index, message))
        for asked, call_id in zip(messages[index].call_ids, message.call_ids, strict=True):
            found = waiting.take(asked, behind=index)
            if found is None:
                repairs.append(f"messages[{index}]: the call {call_id!r} had no result")
                out.append((-1, dialect.interrupted(call_id)))
                continue
            if any(messages[at].role not in {"tool", "system"} for at in range(index + 1, found)):
                repairs.append(f"messages[{found}]: a late tool result was moved behind its call")
            result = messages[found]
            is_its = result.answers == call_id
            out.append((found, result if is_its else dialect.answering(result, call_id)))
    repairs += [
        f"messages[{at}]: a tool result without its call was left out" for at in waiting.left()
    ]
    return out


class _Results:
    """The tool results of a transcript, each taken once; all look-ups together cost one pass."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._results: dict[str, deque[int]] = {}
        self._calls: dict[str, deque[int]] = {}
        self._unclaimed: set[int] = set()
        for index, message in enumerate(messages):
            for call_id in {*message.call_ids}:
                self._calls.setdefault(call_id, deque()).append(index)
            if message.role == "tool":
                self._results.setdefault(message.answers or "", deque()).append(index)
                self._unclaimed.add(index)

    def take(self, call_id: str, *, behind: int) -> int | None:
        """Return where the next result of a call stands: behind it, and before any other message
        that asks by the same id."""
        results, calls = self._results.get(call_id, deque()), self._calls[call_id]
        while results and results[0] < behind:
            results.popleft()
        while calls and calls[0] <= behind:
            calls.popleft()
        if not results or (calls and results[0] > calls[0]):
            return None
        found = results.popleft()
        self._unclaimed.discard(found)
        return found

    def left(self) -> list[int]:
        """Return the results that no call took."""
        return sorted(self._unclaimed)


def _new_ids(call_ids: Sequence[str], index: int) -> list[str]:
    """Return ids of which none is empty or comes twice; OpenAI's old call, which is the last, has
    its name for one and keeps it."""
    kept = call_ids[-1:] if call_ids[-1].startswith(LEGACY_CALL) else []
    seen, new = {*kept}, []
    for place, call_id in enumerate(call_ids[: len(call_ids) - len(kept)]):
        new.append(call_id if call_id and call_id not in seen else f"call_{index}_{place}")
        seen.add(call_id)
    return [*new, *kept]


def is_blank_system(message: Message) -> bool:
    """Tell whether a system message says nothing at all."""
    return message.is_silent and message.role == "system"


def _without_blank_system(
    paired: list[tuple[int, Message]], repairs: list[str]
) -> list[tuple[int, Message]]:
    blank = [origin for origin, message in paired if is_blank_system(message)]
    repairs += [f"messages[{origin}]: an empty system message was left out" for origin in blank]
    return [one for one in paired if one[0] < 0 or one[0] not in blank]


def _filled(index: int, message: Message, dialect: Dialect, repairs: list[str]) -> Message:
    """Return `message`, or one without what is empty in it, which says so where that is all."""
    if message.role not in EMPTY or not message.is_blank:
        return message
    words = EMPTY[message.role]
    filled = dialect.filled(message, words)
    what = "was marked as empty" if filled.text == words else "was left out"
    repairs.append(f"messages[{index}]: empty content {what}")
    return filled
