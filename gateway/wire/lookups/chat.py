"""Rounds in chat completions. Pure.

In a stream a call comes in fragments that name it by its index; those of our calls are left out,
and the client's own are numbered as if ours had never been. Until it is known by its name whose a
call is, its fragments wait: some servers tell the name in a later one, or in pieces. All chunks
have the first one's id.

Source: OpenAI API reference, "The chat completion chunk object".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.wire.chat.reply import CallPieces
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
        self._is_as_it_came = True
        """No call was left out or kept waiting: the client's have the numbers they came with."""
        self._ids: dict[int, str] = {}
        """Of the newest call with an index."""
        self._nameless: dict[int, CallPieces] = {}
        """Calls of this round of which it is not known whose they are."""
        self._has_own_call = self._has_let_go = False
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
        self._forget_calls()
        self._has_own_call = self.is_waiting = self.has_ended = self._is_as_it_came = False
        self._has_let_go = False
        self._has_gap = not self._last_words or self._last_words[-1:].isspace()

    def close(self) -> bytes:
        self.is_waiting = False
        return b"".join(map(self._closing, self._held))

    def let_go(self) -> bytes:
        # Arguments without end, and still no name: whose they are will not be known.
        self._has_let_go = True
        self._numbers |= dict.fromkeys(self._nameless)
        self._nameless.clear()
        return b""

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
        return bool(self._numbers) and not (self._has_own_call or self._nameless)

    def _shown(self, block: Block, chunk: dict[str, Any]) -> bytes:
        choice = next(iter(dicts(chunk["choices"])), None)
        if choice is None:
            whole = self._whole(chunk)
            return block.raw if whole is chunk else rewritten(block, whole).raw
        # As `ChunkReader` has it, some servers end a stream with a whole message.
        key = "delta" if choice.get("delta") or not choice.get("message") else "message"
        delta = choice.get(key)
        said = self._said(delta) if isinstance(delta, dict) else delta
        is_end = choice.get("finish_reason") is not None
        if choice.get("finish_reason") in CUT:
            self._forget_calls()
        elif is_end and self._nameless:
            own = [*dicts((said or {}).get(_CALLS)), *self._never_named()]
            said = {**(said or {}), _CALLS: own}
        if is_end and self._is_ours_alone():
            self.is_waiting = True
            end = {**chunk, "choices": [{**choice, key: {}}]}
            self._held.append(rewritten(block, end))
            if not said:
                return b""
            choice = {**choice, "finish_reason": None}
            chunk = {key: value for key, value in chunk.items() if key != "usage"}
        elif said is delta and self._head is None:
            return block.raw
        elif not said and delta and not is_end and not chunk.get("usage"):
            return b""
        return rewritten(block, self._whole({**chunk, "choices": [{**choice, key: said}]})).raw

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
            known = self._known(index, fragment)
            number = self._numbers.get(index, index)
            if known is not None and number is not None:
                is_as_it_came = known is fragment and number == index
                kept.append(fragment if is_as_it_came else {**known, "index": number})
        if kept and all(one is other for one, other in zip(kept, delta[_CALLS], strict=False)):
            return delta if len(kept) == len(delta[_CALLS]) else {**delta, _CALLS: kept}
        rest = {key: value for key, value in delta.items() if key != _CALLS}
        return {**rest, _CALLS: kept} if kept else rest

    def _known(self, index: int, fragment: dict[str, Any]) -> dict[str, Any] | None:
        """Return a fragment, with those before it that waited; None: it waits, too."""
        waiting = self._nameless.get(index)
        if self._is_new(index, fragment):
            # One that got no name until another took its index can be called by nobody.
            self._has_own_call = self._has_own_call or waiting is not None
            waiting = None
        elif waiting is None:
            return fragment
        self._nameless.pop(index, None)
        pieces = waiting or CallPieces()
        pieces.add(fragment)
        may_be_ours = self._may_be_ours(pieces)
        if may_be_ours and not self._has_let_go:
            self._nameless[index] = pieces
            self._is_as_it_came = False
            return None
        is_named = pieces.is_function and pieces.name in self._names
        self._begin(index, is_ours=is_named or may_be_ours)
        return fragment if waiting is None else pieces.value()

    def _is_new(self, index: int, fragment: dict[str, Any]) -> bool:
        """Tell whether a fragment begins a call: a new id on an old index does (CASES D4), and
        where there are no ids, a name that says that it is no longer ours, or ours now."""
        call_id, name = string_of(fragment.get("id")), _name_of(fragment)
        old = self._ids.get(index)
        self._ids[index] = call_id or old or ""
        if old is None or (call_id and old and call_id != old):
            return True
        is_known = index in self._numbers and index not in self._nameless
        return is_known and bool(name) and (name in self._names) != (self._numbers[index] is None)

    def _may_be_ours(self, pieces: CallPieces) -> bool:
        """Tell whether the rest of a call's name decides whose it is."""
        name = pieces.name
        is_begun = any(one.startswith(name) for one in self._names) and name not in self._names
        # A name is whole when arguments follow; where there is none, it may come behind them.
        return pieces.is_function and is_begun and not (name and pieces.has_arguments)

    def _never_named(self) -> list[dict[str, Any]]:
        """Return the calls that got no name to the end: not ours, as far as anybody knows."""
        found = []
        for index, pieces in self._nameless.items():
            self._begin(index, is_ours=False)
            found.append({**pieces.value(), "index": self._numbers[index]})
        self._nameless.clear()
        return found

    def _begin(self, index: int, *, is_ours: bool) -> None:
        if is_ours:
            self._numbers[index] = None
            self._is_as_it_came = False
            return
        self.has_spoken = self._has_own_call = True
        if self._numbers.get(index) is None:
            number = index if self._is_as_it_came else self._call_count
            self._numbers[index] = number
            self._call_count = max(self._call_count, number + 1)

    def _forget_calls(self) -> None:
        self._numbers.clear()
        self._ids.clear()
        self._nameless.clear()


CHAT_ROUNDS = RoundShapes(
    tool=tool,
    no_calls="none",
    calls=calls,
    again=lambda _, reply: reply,
    splice=ChatSplice,
    merged=merged,
)
