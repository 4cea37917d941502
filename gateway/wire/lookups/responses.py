"""Rounds in the Responses protocol. Pure.

An answer is a list of items. Those of all rounds follow each other, less our calls, and less the
reasoning in front of such a call: an upstream refuses reasoning without what it led to. So in a
stream reasoning waits for the item behind it. A response also repeats the request's tools; ours
are taken out there.

Source: OpenAI API reference, "Streaming events" and "The Response object"; openai/codex#5990,
that reasoning "was provided without its required following item".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.wire.lenient import dicts, loaded
from gateway.wire.lookups.blocks import Block, rewritten
from gateway.wire.lookups.seam import Call, Names, RoundShapes, Tool, added, usage_of
from gateway.wire.reading import string_of
from gateway.wire.responses.items import is_call
from gateway.wire.responses.message import ITEMS, REASONING
from gateway.wire.responses.request import by_value

_CALL = "function_call"
_ARGUMENTS = frozenset(
    {"response.function_call_arguments.delta", "response.function_call_arguments.done"}
)
_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_COMPLETED = "response.completed"


def tool(told: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": told.name,
        "description": told.description,
        "parameters": dict(told.parameters),
        "strict": False,
    }


def calls(reply: Mapping[str, Any]) -> list[Call]:
    """Return the calls of functions among the items of a reply."""
    return [
        Call(
            string_of(item.get("call_id")),
            string_of(item.get("name")),
            string_of(item.get("arguments")),
        )
        for item in dicts(reply.get(ITEMS))
        if item.get("type") == _CALL
    ]


def again(fields: Mapping[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply without ids that mean nothing to an upstream that was told to keep none."""
    if fields.get("store") is not False:
        return reply
    return {ITEMS: list(by_value(dicts(reply.get(ITEMS))))}


def merged(bodies: Sequence[dict[str, Any]], names: Names) -> dict[str, Any]:
    """Return the last body, with the items of those before it in front of its own, without calls of
    ours and without our tools."""
    last = _without_tools(bodies[-1], names)
    output = [item for body in bodies for item in _kept(dicts(body.get("output")), names)]
    if len(bodies) == 1 and len(output) == len(dicts(last.get("output"))):
        return last
    usage = usage_of(bodies)
    return {**last, "output": output, **({} if usage is None else {"usage": usage})}


def _kept(items: Iterable[dict[str, Any]], names: Names) -> list[dict[str, Any]]:
    """Return the items of one round that are the client's."""
    kept: list[dict[str, Any]] = []
    reasoning: list[dict[str, Any]] = []
    has_ours = False
    for item in items:
        if _is_ours(item, names):
            has_ours = True
            reasoning.clear()
        elif item.get("type") == REASONING:
            reasoning.append(item)
        else:
            kept += [*reasoning, item]
            reasoning.clear()
    return kept if has_ours else kept + reasoning


def _is_ours(item: Any, names: Names) -> bool:
    return isinstance(item, dict) and item.get("type") == _CALL and item.get("name") in names


def _without_tools(response: dict[str, Any], names: Names) -> dict[str, Any]:
    tools = response.get("tools")
    if not isinstance(tools, list):
        return response
    kept = [one for one in tools if not (isinstance(one, dict) and one.get("name") in names)]
    return response if len(kept) == len(tools) else {**response, "tools": kept}


class ResponsesSplice:
    """One stream of the events of several rounds."""

    def __init__(self, names: Names) -> None:
        self.is_waiting = self.has_ended = self.has_spoken = False
        self._names = names
        self._is_first = True
        self._response_id: Any = None
        self._sequence: int | None = None
        """Number of the next event."""
        self._numbers: dict[int, int | None] = {}
        """Index of an item in this round -> the client's; None: it is a call of ours."""
        self._item_count = 0
        """The client's items have numbers below this."""
        self._has_own_call = False
        self._reasoning: dict[int, list[tuple[Block, dict[str, Any]]]] = {}
        """Events of reasoning whose next item has not come, by index."""
        self._nameless: dict[int, list[tuple[Block, dict[str, Any]]]] = {}
        """Events of calls of which it is not known whose they are, by index."""
        self._done: list[dict[str, Any]] = []
        """Items of this round, as far as events told them whole."""
        self._output: list[dict[str, Any]] = []
        """The client's items of earlier rounds."""
        self._carried: Any = None
        """What those rounds used."""
        self._held: tuple[Block, dict[str, Any]] | None = None
        self._has_let_go = False

    def take(self, block: Block) -> bytes:
        fields, _ = loaded(block.data) if block.data is not None else (None, False)
        if not isinstance(fields, dict):
            return b"" if self.is_waiting else block.raw
        kind = fields.get("type") or block.name.decode("utf-8", "replace")
        if kind in _BEGINS:
            return self._begun(block, fields)
        if kind in _ENDS:
            return self._ended(block, fields, is_completed=kind == _COMPLETED)
        index, item = fields.get("output_index"), fields.get("item")
        if not isinstance(index, int):
            return b"" if _is_ours(item, self._names) else self._counted(block, fields)
        return self._of_item(block, fields, index, item if isinstance(item, dict) else {})

    def go_on(self) -> None:
        assert self._held is not None
        _, fields = self._held
        response = fields["response"]
        self._output = self._whole_output(response)
        self._carried = added(self._carried, response.get("usage"))
        self._is_first = False
        self._held = None
        self._numbers.clear()
        self._reasoning.clear()
        self._nameless.clear()
        self._done.clear()
        self._has_own_call = self.is_waiting = self.has_ended = False

    def close(self) -> bytes:
        assert self._held is not None
        self.is_waiting = False
        return self._end(*self._held)

    def let_go(self) -> bytes:
        self._has_let_go = True
        # Arguments without end, and still no name: whose they are will not be known.
        self._numbers |= dict.fromkeys(self._nameless)
        self._nameless.clear()
        return self._flushed()

    def _begun(self, block: Block, fields: dict[str, Any]) -> bytes:
        response = fields.get("response")
        if not self._is_first:
            return b""
        if not isinstance(response, dict):
            return self._counted(block, fields)
        self._response_id = self._response_id or response.get("id")
        return self._counted(block, fields, response=_without_tools(response, self._names))

    def _ended(self, block: Block, fields: dict[str, Any], *, is_completed: bool) -> bytes:
        self.has_ended = True
        is_readable = isinstance(fields.get("response"), dict)
        has_ours = self._has_ours(fields["response"] if is_readable else {})
        if is_readable and is_completed and has_ours and not self._has_own_call:
            self.is_waiting = True
            self._held = (block, fields)
            return b""
        rest = b"" if has_ours else self._flushed()
        if is_completed:  # Else it is half a call, and perhaps of ours.
            rest += b"".join(map(self._let_pass, [*self._nameless]))
        return rest + (self._end(block, fields) if is_readable else self._counted(block, fields))

    def _end(self, block: Block, fields: dict[str, Any]) -> bytes:
        response = _without_tools(fields["response"], self._names)
        if not self._is_first or self._has_ours(response):
            response = {
                **response,
                "id": self._response_id or response.get("id"),
                "output": self._whole_output(response),
            }
            if isinstance(response.get("usage"), dict):
                response["usage"] = added(self._carried, response["usage"])
        return self._counted(block, fields, response=response)

    def _has_ours(self, response: Mapping[str, Any]) -> bool:
        """Tell whether this round calls tools of ours; some servers tell a call only at the end."""
        items = dicts(response.get("output"))
        self._has_own_call = self._has_own_call or any(
            is_call(item) and not _is_ours(item, self._names) for item in items
        )
        return None in self._numbers.values() or any(_is_ours(one, self._names) for one in items)

    def _whole_output(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        items = dicts(response.get("output")) or self._done
        return [*self._output, *_kept(items, self._names)]

    def _of_item(
        self, block: Block, fields: dict[str, Any], index: int, item: dict[str, Any]
    ) -> bytes:
        is_new = index not in self._numbers and index not in self._reasoning
        if fields.get("type") == "response.output_item.done" and not self._has_let_go:
            self._done.append(item)
        if is_new and item.get("type") == REASONING and not self._has_let_go:
            self._reasoning[index] = []
        if index in self._reasoning:
            self._reasoning[index].append((block, fields))
            return b""
        shown = b""
        if not self._has_let_go and self._is_nameless(fields, item, index, is_new=is_new):
            self._nameless.setdefault(index, []).append((block, fields))
            return b""
        held = self._nameless.pop(index, [])
        if is_new and _is_ours(item, self._names):
            self._numbers |= dict.fromkeys([*self._reasoning, index])
            self._reasoning.clear()
        elif is_new:
            shown = self._flushed()
            self._number(index)
            self.has_spoken = True
            self._has_own_call = self._has_own_call or is_call(item)
        for event in held:
            shown += self._numbered(*event, index)
        return shown + self._numbered(block, fields, index)

    def _is_nameless(
        self, fields: dict[str, Any], item: dict[str, Any], index: int, *, is_new: bool
    ) -> bool:
        """Tell whether an event is of a call that was not named yet."""
        if index in self._nameless:
            return not item.get("name")
        is_nameless = item.get("type") == _CALL and not item.get("name")
        return is_new and (is_nameless or fields.get("type") in _ARGUMENTS)

    def _let_pass(self, index: int) -> bytes:
        """Return the events of a call that got no name to the end: not ours."""
        self._number(index)
        self.has_spoken = self._has_own_call = True
        held = self._nameless.pop(index)
        return b"".join(self._numbered(block, fields, index) for block, fields in held)

    def _flushed(self) -> bytes:
        """Return the events of reasoning that is the client's."""
        shown = b""
        for index, events in self._reasoning.items():
            self._number(index)
            shown += b"".join(self._numbered(block, fields, index) for block, fields in events)
        self._reasoning.clear()
        return shown

    def _number(self, index: int) -> None:
        is_as_it_came = self._is_first and None not in self._numbers.values()
        number = index if is_as_it_came else self._item_count
        self._numbers[index] = number
        self._item_count = max(self._item_count, number + 1)

    def _numbered(self, block: Block, fields: dict[str, Any], index: int) -> bytes:
        number = self._numbers[index]
        if number is None:
            return b""
        return self._counted(block, fields, output_index=number)

    def _counted(self, block: Block, fields: dict[str, Any], **changed: Any) -> bytes:
        """Return an event with its number in the client's stream, and with what changes in it."""
        if isinstance(fields.get("sequence_number"), int):
            if self._sequence is None:
                self._sequence = fields["sequence_number"]
            changed["sequence_number"] = self._sequence
            self._sequence += 1
        if all(fields[key] is value or fields[key] == value for key, value in changed.items()):
            return block.raw
        return rewritten(block, {**fields, **changed}).raw


RESPONSES_ROUNDS = RoundShapes(
    tool=tool,
    no_calls="none",
    calls=calls,
    again=again,
    splice=ResponsesSplice,
    merged=merged,
)
