"""Rounds in Anthropic's Messages API. Pure.

An answer is a list of blocks. Those of all rounds follow each other, less our calls: thinking with
its signature too, since a client that has to answer a call of its own must bring back the thinking
that led there, and a model does not think again after a tool's result.

Source: PyPI's anthropic 2.14, RawMessageStreamEvent; Anthropic, "Extended thinking with tool use".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.wire.lenient import dicts, dumped, loaded
from gateway.wire.lookups.blocks import Block, rewritten
from gateway.wire.lookups.seam import CUT, Call, Names, RoundShapes, Tool, added, usage_of
from gateway.wire.reading import string_of

_CALL, _CALLED, _ENDED = "tool_use", "tool_use", "end_turn"


def tool(told: Tool) -> dict[str, Any]:
    return {
        "name": told.name,
        "description": told.description,
        "input_schema": dict(told.parameters),
    }


def calls(reply: Mapping[str, Any]) -> list[Call]:
    """Return the calls that a message makes."""
    return [
        Call(string_of(block.get("id")), string_of(block.get("name")), dumped(block.get("input")))
        for block in dicts(reply.get("content"))
        if block.get("type") == _CALL
    ]


def merged(bodies: Sequence[dict[str, Any]], names: Names) -> dict[str, Any]:
    """Return the last body, with the blocks of those before it in front of its own, and without
    calls of ours."""
    last = bodies[-1]
    blocks = [block for body in bodies for block in dicts(body.get("content"))]
    kept = [block for block in blocks if not _is_ours(block, names)]
    if len(bodies) == 1 and len(kept) == len(blocks):
        return last
    ended = {}
    if last.get("stop_reason") == _CALLED and not any(one.get("type") == _CALL for one in kept):
        ended = {"stop_reason": _ENDED}
    usage = usage_of(bodies)
    return {**last, "content": kept, **ended, **({} if usage is None else {"usage": usage})}


def _is_ours(block: Any, names: Names) -> bool:
    return isinstance(block, dict) and block.get("type") == _CALL and block.get("name") in names


class MessagesSplice:
    """One stream of the events of several rounds."""

    def __init__(self, names: Names) -> None:
        self.is_waiting = self.has_ended = self.has_spoken = False
        self._names = names
        self._is_first = True
        self._numbers: dict[int, int | None] = {}
        """Index of a block in this round -> the client's; None: it is a call of ours."""
        self._block_count = 0
        """The client's blocks have numbers below this."""
        self._has_own_call = False
        self._usage: dict[str, Any] = {}
        self._carried: Any = None
        """What the rounds before used."""
        self._held: list[Block] = []

    def take(self, block: Block) -> bytes:
        fields, _ = loaded(block.data) if block.data is not None else (None, False)
        if not isinstance(fields, dict):
            return b"" if self.is_waiting else block.raw
        match fields.get("type"):
            case "message_start":
                message = fields.get("message")
                self._use(message.get("usage") if isinstance(message, dict) else None)
                return block.raw if self._is_first else b""
            case "content_block_start":
                return self._begun(block, fields)
            case "content_block_delta" | "content_block_stop":
                return self._numbered(block, fields)
            case "message_delta":
                return self._changed(block, fields)
            case "message_stop":
                return self._stopped(block)
            case _:
                pass
        return b"" if self.is_waiting else block.raw

    def go_on(self) -> None:
        self._carried = added(self._carried, self._usage)
        self._usage = {}
        self._is_first = False
        self._numbers.clear()
        self._held.clear()
        self._has_own_call = self.is_waiting = self.has_ended = False

    def close(self) -> bytes:
        self.is_waiting = False
        return b"".join(map(self._closing, self._held))

    def let_go(self) -> bytes:
        return b""  # Whose a block is stands in its first event.

    def _closing(self, block: Block) -> bytes:
        fields, _ = loaded(block.data or b"")
        delta = fields.get("delta") if isinstance(fields, dict) else None
        if isinstance(delta, dict) and delta.get("stop_reason") == _CALLED:
            return rewritten(block, {**fields, "delta": {**delta, "stop_reason": _ENDED}}).raw
        return block.raw

    def _begun(self, block: Block, fields: dict[str, Any]) -> bytes:
        content = fields.get("content_block")
        index = fields.get("index")
        if isinstance(index, int) and _is_ours(content, self._names):
            self._numbers[index] = None
            return b""
        if isinstance(content, dict) and content.get("type") == _CALL:
            self.has_spoken = self._has_own_call = True
        return self._numbered(block, fields)

    def _numbered(self, block: Block, fields: dict[str, Any]) -> bytes:
        index, delta = fields.get("index"), fields.get("delta")
        if not isinstance(index, int):
            return block.raw
        if index not in self._numbers:
            is_as_it_came = self._is_first and None not in self._numbers.values()
            self._numbers[index] = index if is_as_it_came else self._block_count
            self._block_count = max(self._block_count, (self._numbers[index] or 0) + 1)
        number = self._numbers[index]
        if number is None:
            return b""
        if isinstance(delta, dict) and delta.get("type") == "text_delta":
            self.has_spoken = self.has_spoken or bool(str(delta.get("text") or "").strip())
        return block.raw if number == index else rewritten(block, {**fields, "index": number}).raw

    def _changed(self, block: Block, fields: dict[str, Any]) -> bytes:
        self._use(fields.get("usage"))
        delta = fields.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason") in CUT:
            self._numbers.clear()
        if not self._is_first:
            fields = {**fields, "usage": added(self._carried, self._usage)}
            block = rewritten(block, fields)
        if not self._is_ours_alone():
            return block.raw
        self.is_waiting = True
        self._held.append(block)
        return b""

    def _stopped(self, block: Block) -> bytes:
        self.has_ended = True
        self.is_waiting = self.is_waiting or self._is_ours_alone()
        if not self.is_waiting:
            return block.raw
        self._held.append(block)
        return b""

    def _is_ours_alone(self) -> bool:
        return None in self._numbers.values() and not self._has_own_call

    def _use(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if value is not None}


MESSAGES_ROUNDS = RoundShapes(
    tool=tool,
    no_calls={"type": "none"},
    calls=calls,
    again=lambda _, reply: reply,
    splice=MessagesSplice,
    merged=merged,
)
