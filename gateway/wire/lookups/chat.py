"""Rounds in chat completions. Pure.

In a stream a call comes in fragments that name it by its index; those of our calls are left out,
and the client's own are numbered as if ours had never been. All chunks have the first one's id.

Source: OpenAI API reference, "The chat completion chunk object".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.wire.lenient import dicts, loaded
from gateway.wire.lookups.blocks import Block, rewritten
from gateway.wire.lookups.seam import CUT, Call, Names, RoundShapes, Tool, added, usage_of
from gateway.wire.reading import string_of

GAP = "\n\n"
"""Between the words that came with a call of ours and those of the answer."""
_CALLS, _STOP = "tool_calls", "stop"
_DONE = b"[DONE]"


def tool(told: Tool) -> dict[str, Any]:
    function = {
        "name": told.name,
        "description": told.description,
        "parameters": dict(told.parameters),
    }
    return {"type": "function", "function": function}


def calls(reply: Mapping[str, Any]) -> list[Call]:
    """Return the calls of functions that a message makes."""
    found = []
    for call in dicts(reply.get(_CALLS)):
        function = call.get("function")
        if isinstance(function, dict):
            arguments = string_of(function.get("arguments"))
            found.append(
                Call(string_of(call.get("id")), string_of(function.get("name")), arguments)
            )
    return found


def merged(bodies: Sequence[dict[str, Any]], names: Names) -> dict[str, Any]:
    """Return the last body, with the words that came with calls of ours in front of its own, and
    without such calls."""
    last = bodies[-1]
    choice = next(iter(dicts(last.get("choices"))), None)
    message = choice.get("message") if choice else None
    if not choice or not isinstance(message, dict):
        return last
    kept = [call for call in dicts(message.get(_CALLS)) if _name_of(call) not in names]
    is_whole = len(kept) == len(dicts(message.get(_CALLS)))
    if len(bodies) == 1 and is_whole:
        return last
    said = {key: value for key, value in message.items() if key != _CALLS or kept}
    if kept:
        said[_CALLS] = kept
    elif not is_whole and choice.get("finish_reason") == _CALLS:
        choice = {**choice, "finish_reason": _STOP}
    content = message.get("content")
    before = [text for text in map(_words, bodies[:-1]) if text]
    if before and isinstance(content, str | None):
        said["content"] = GAP.join([*before, content] if content else before)
    usage = usage_of(bodies)
    return {
        **last,
        "choices": [{**choice, "message": said}],
        **({} if usage is None else {"usage": usage}),
    }


def _words(body: Mapping[str, Any]) -> str:
    choice = next(iter(dicts(body.get("choices"))), {})
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content.strip() if isinstance(content, str) else ""


def _name_of(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else None


class ChatSplice:
    """One stream of the chunks of several rounds."""

    def __init__(self, names: Names) -> None:
        self.is_waiting = self.has_ended = self.has_spoken = False
        self._names = names
        self._head: dict[str, Any] | None = None
        """What the first chunk says of the whole answer, in rounds after it."""
        self._first: dict[str, Any] = {}
        self._numbers: dict[int, int | None] = {}
        """Index of a call in this round -> the client's; None: it is ours."""
        self._call_count = 0
        """The client's calls have numbers below this."""
        self._has_own_call = False
        self._usage: Any = None
        self._carried: Any = None
        """What the rounds before used."""
        self._held: list[Block] = []
        self._last_words = ""
        self._has_gap = True

    def take(self, block: Block) -> bytes:
        if block.data is None:
            return b"" if self.is_waiting else block.raw
        if block.data.strip() == _DONE:
            self.has_ended = True
            self.is_waiting = self.is_waiting or self._is_ours_alone()
            return self._held_back(block) if self.is_waiting else block.raw
        chunk, _ = loaded(block.data)
        if not isinstance(chunk, dict) or "choices" not in chunk:
            return block.raw
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        if self.is_waiting:
            return self._held_back(block)
        self._first = self._first or chunk
        return self._shown(block, chunk)

    def go_on(self) -> None:
        self._carried = added(self._carried, self._usage)
        self._usage = None
        self._head = {key: self._first[key] for key in ("id", "created") if key in self._first}
        self._held.clear()
        self._numbers.clear()
        self._has_own_call = self.is_waiting = self.has_ended = False
        self._has_gap = not self._last_words or self._last_words[-1:].isspace()

    def close(self) -> bytes:
        self.is_waiting = False
        return b"".join(map(self._closing, self._held))

    def _closing(self, block: Block) -> bytes:
        chunk, _ = loaded(block.data or b"")
        if not isinstance(chunk, dict):
            return block.raw
        choices = [
            {**choice, "finish_reason": _STOP} if choice.get("finish_reason") == _CALLS else choice
            for choice in dicts(chunk.get("choices"))
        ]
        return rewritten(block, self._whole({**chunk, "choices": choices})).raw

    def _held_back(self, block: Block) -> bytes:
        self._held.append(block)
        return b""

    def _is_ours_alone(self) -> bool:
        return bool(self._numbers) and not self._has_own_call

    def _shown(self, block: Block, chunk: dict[str, Any]) -> bytes:
        choice = next(iter(dicts(chunk["choices"])), None)
        if choice is None:
            whole = self._whole(chunk)
            return block.raw if whole is chunk else rewritten(block, whole).raw
        delta = choice.get("delta")
        said = self._said(delta) if isinstance(delta, dict) else delta
        is_end = choice.get("finish_reason") is not None
        if choice.get("finish_reason") in CUT:
            self._numbers.clear()
        if is_end and self._is_ours_alone():
            self.is_waiting = True
            end = {**chunk, "choices": [{**choice, "delta": {}}]}
            self._held.append(rewritten(block, end))
            if not said:
                return b""
            choice = {**choice, "finish_reason": None}
            chunk = {key: value for key, value in chunk.items() if key != "usage"}
        elif said is delta and self._head is None:
            return block.raw
        elif not said and delta and not is_end and not chunk.get("usage"):
            return b""
        return rewritten(block, self._whole({**chunk, "choices": [{**choice, "delta": said}]})).raw

    def _whole(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk as one of the whole answer."""
        if self._head is None:
            return chunk
        usage = chunk.get("usage")
        summed = {"usage": added(self._carried, usage)} if isinstance(usage, dict) else {}
        return {**chunk, **self._head, **summed}

    def _said(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return what the client is shown of a delta; itself where that is all of it."""
        said = delta
        if delta.get(_CALLS):
            said = self._without_ours(delta)
        if self._head is not None and "role" in said:  # The answer began in an earlier round.
            said = {key: value for key, value in said.items() if key != "role"}
            if not said.get("content"):
                said.pop("content", None)
        words = said.get("content")
        if isinstance(words, str) and words:
            if not self._has_gap:
                said, self._has_gap = {**said, "content": GAP + words}, True
            self._last_words = words
            self.has_spoken = self.has_spoken or bool(words.strip())
        return said

    def _without_ours(self, delta: dict[str, Any]) -> dict[str, Any]:
        kept = []
        for position, fragment in enumerate(dicts(delta[_CALLS])):
            index = fragment.get("index")
            index = index if isinstance(index, int) else position
            name = _name_of(fragment)
            if name:  # A call begins; one may take the index of another (CASES D4).
                self._begin(index, is_ours=name in self._names)
            number = self._numbers.get(index, index)
            if number is not None:
                kept.append(fragment if number == index else {**fragment, "index": number})
        if kept and all(one is other for one, other in zip(kept, delta[_CALLS], strict=False)):
            return delta if len(kept) == len(delta[_CALLS]) else {**delta, _CALLS: kept}
        rest = {key: value for key, value in delta.items() if key != _CALLS}
        return {**rest, _CALLS: kept} if kept else rest

    def _begin(self, index: int, *, is_ours: bool) -> None:
        if is_ours:
            self._numbers[index] = None
            return
        self.has_spoken = self._has_own_call = True
        if self._numbers.get(index) is None:
            is_as_it_came = self._head is None and None not in self._numbers.values()
            number = index if is_as_it_came else self._call_count
            self._numbers[index] = number
            self._call_count = max(self._call_count, number + 1)


CHAT_ROUNDS = RoundShapes(
    tool=tool,
    no_calls="none",
    calls=calls,
    again=lambda _, reply: reply,
    splice=ChatSplice,
    merged=merged,
)
