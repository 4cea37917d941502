"""What one turn leaves for the next: where the window began, what lay on the desk, what was sent.

Pure. It is stored with the thread, so that another worker, or this one after a restart, goes on
as if nothing had happened: equal store, equal request, equal bytes.
"""

from collections.abc import Sequence

import msgspec

from governor.message import KEY_BYTES, key_of
from governor.turn import PlannedMessage

TRACE_MESSAGES_MAX = 1_024
"""Messages of the last prompt that are remembered to measure the shared prefix: about 25 kB."""

Trace = tuple[tuple[int, int], ...]
"""(key, tokens) of each message of a prompt, from the start; the first stands for the schemas."""


EXCERPT = "excerpt"


class DeskEntry(msgspec.Struct, frozen=True, array_like=True):
    """Passages `first..last` of event `seq`, `event.text[start:stop]`, on the desk."""

    seq: int
    first: int
    last: int
    part_count: int
    start: int
    stop: int
    is_cut: bool = False
    """It ends in the midst of passage `last`."""
    replaces: tuple[str, ...] = ()
    """Ids of the events on the same desk that no longer hold since this one."""

    @property
    def part(self) -> str:
        if self.is_cut:
            return EXCERPT
        if self.part_count == 1 or (self.first == 0 and self.last == self.part_count - 1):
            return ""
        span = (
            str(self.first + 1) if self.first == self.last else f"{self.first + 1}-{self.last + 1}"
        )
        return f"part {span} of {self.part_count}"


class LaidDesk(msgspec.Struct, frozen=True, array_like=True):
    """What was laid in front of one message of the user."""

    message_seq: int | None
    """None: there is no message of the user."""
    entries: tuple[DeskEntry, ...]


class PromptState(msgspec.Struct, frozen=True, kw_only=True):
    """The last prompt of a thread."""

    anchor_seq: int | None = None
    """Event at which the window started; None when nothing was paged."""
    question_seq: int | None = None
    newest_seq: int | None = None
    """The last message that it answers: a request that ends with it is the same one again."""
    plan_seq: int | None = None
    """The agent's plan that was held beside the window, or had no room there."""
    desks: tuple[LaidDesk, ...] = ()
    """Oldest first; that of the last question is the last one."""
    laid_at_s: float | None = None
    """When records were last looked for, in seconds since 1970; None: never, or they are to be
    looked for again."""
    sent_at_s: float = 0.0
    """When the prompt went out."""
    desk_ids: tuple[str, ...] = ()
    trace: Trace = ()

    @property
    def entries(self) -> tuple[DeskEntry, ...]:
        """All that lies there."""
        return tuple(entry for desk in self.desks for entry in desk.entries)


_DECODER = msgspec.json.Decoder(PromptState)


def dumped(state: PromptState) -> bytes:
    return msgspec.json.encode(state)


def refreshed(data: bytes | None) -> bytes | None:
    """Return the state after which the next prompt lays all of it out afresh."""
    state = loaded(data)
    if state is None:
        return None
    return dumped(
        msgspec.structs.replace(
            state,
            anchor_seq=None,
            question_seq=None,
            newest_seq=None,
            plan_seq=None,
            desks=(),
            laid_at_s=None,
        )
    )


def loaded(data: bytes | None) -> PromptState | None:
    """Return the state in `data`; None when there is none, or it was left by another version."""
    if data is None:
        return None
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError:
        return None


def traced(
    keys: Sequence[int], costs: Sequence[int], *, schemas: tuple[str, ...], schema_tokens: int
) -> Trace:
    """Return the trace of a prompt, of at most `TRACE_MESSAGES_MAX` messages."""
    first = (key_of("".join(schemas).encode("utf-8", "surrogatepass")), schema_tokens)
    return (first, *zip(keys[:TRACE_MESSAGES_MAX], costs, strict=False))


def prefix_share(before: Trace, now: Trace, *, prompt_tokens: int) -> float:
    """Return the share of the prompt's tokens that its start has in common with the last one."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old[0] != new[0]:
            break
        shared += new[1]
    return round(min(1.0, shared / prompt_tokens), 4) if prompt_tokens else 0.0


def planned_key(planned: PlannedMessage) -> int:
    """Return what tells an outgoing message from any other of its thread."""
    if not planned.before and planned.replaced is None:
        return planned.message.key
    changed = f"{planned.before}\0{planned.replaced}".encode("utf-8", "surrogatepass")
    return key_of(planned.message.key.to_bytes(KEY_BYTES, "big") + changed)
