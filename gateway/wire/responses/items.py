"""One item of a Responses transcript: whose it is, and what a model reads in it. Pure.

Where chat completions has messages, this protocol has items: a message, a call, a call's result, a
piece of reasoning, and a few dozen kinds more, some of which are younger than this file. A kind
that is not known here is told by its form: what has a role is a message of it, what is named
`..._output` and says which call it answers is that call's result, and anything else is the
assistant's. Nothing is refused for being new; it is kept, and priced by its size.

Source: OpenAI API reference, "Create a model response"; the types of openai-python 3.57,
`types/responses/response_input_item_param.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from governor.counting.images import image_of
from governor.message import Image, Opaque, Role

Call = tuple[str, str, str]
"""(id, name, arguments)."""

_CLIENT_ROLES: Mapping[str, Role] = {"user": "user", "system": "system", "developer": "system"}
_RESULT = "_output"
APPROVAL, APPROVAL_ASKED = "mcp_approval_response", "mcp_approval_request"
_NAMED_CALLS = frozenset({"function_call", "custom_tool_call"})
_NAMED_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""The client's always, also with an empty id: it has to be left out then, or given its call's."""
_CALL_KINDS = _NAMED_CALLS | {
    *("computer_call", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call"),
    APPROVAL_ASKED,
}
_ARGUMENTS = ("arguments", "input", "action", "operation")
"""Where the kinds of calls have what they are called with."""
_WORDS = ("text", "refusal")
_UNREAD = frozenset({"id", "type", "role", "status", "annotations", "logprobs", "phase"})
"""Keys that no model reads; every other unknown key is counted, to be on the safe side."""
_MEDIA = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot"})
BASE64_CHARS, BASE64_BYTES = 4, 3


def side_of(kind: Any, role: Any, call_id: Any) -> Role:
    """Return whose an item is, by its `type`, its `role` and what names its call."""
    if isinstance(role, str):
        return _CLIENT_ROLES.get(role, "assistant")
    if not isinstance(kind, str):
        return "assistant"
    if kind == APPROVAL or kind in _NAMED_RESULTS:
        return "tool"
    return "tool" if kind.endswith(_RESULT) and isinstance(call_id, str) else "assistant"


@dataclass(slots=True)
class Parts:
    """What some items hold, kind by kind, for the governor."""

    texts: list[str] = field(default_factory=list)
    """Words that were said."""
    others: list[str] = field(default_factory=list)
    """What a model reads beside them: names, ids, arguments, reasoning."""
    images: list[Image] = field(default_factory=list)
    opaque: list[Opaque] = field(default_factory=list)
    media: list[str] = field(default_factory=list)
    """Attachments as the client sent them, for identity."""
    calls: list[Call] = field(default_factory=list)
    _pieces: int = 0

    @property
    def item_count(self) -> int:
        """So many pieces, calls aside, that a template may put something around."""
        return max(1, self._pieces)

    def add_content(self, content: Any) -> None:
        """Take a message's content, or a result's output."""
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for part in content:
                self.add_part(part)
        elif isinstance(content, dict):
            self.add_part(content)

    def add_part(self, part: Any) -> None:
        """Take one part of a content.

        Raises:
            TypeError, AttributeError: it is no part at all.

        """
        if isinstance(part, str):
            self.texts.append(part)
            return
        kind = part.get("type")
        words = [] if kind in _MEDIA else [part[key] for key in _WORDS if _is_text(part, key)]
        if words:
            self.texts.extend(words)
        elif kind in {"input_image", "computer_screenshot"}:
            self._add_image(part)
        else:
            self._add_opaque(kind, part)

    def _add_image(self, part: Mapping[str, Any]) -> None:
        link = part.get("image_url")
        link = link.get("url") if isinstance(link, dict) else link  # As chat completions has it.
        name = link if isinstance(link, str) else f"file:{string(part.get('file_id'))}"
        self.images.append(image_of(link, part.get("detail")))
        self.media.append(name)

    def _add_opaque(self, kind: Any, part: Any) -> None:
        data = orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
        self.opaque.append(Opaque(kind=str(kind), size_bytes=len(data)))
        self.media.append(data.decode())

    def add_item(self, item: Mapping[str, Any]) -> None:
        """Take an item of the assistant."""
        kind = item.get("type", "message")
        content = item.get("content")
        if not is_call(item):
            self._pieces += len(content) if isinstance(content, list) and content else 1
        if kind == "message":
            self.add_content(content)
            self._add_unknown(item, known=("content",))
        elif kind == "reasoning":
            self._add_reasoning(item)
        elif is_call(item):
            self._add_call(str(kind), item)
        elif kind == "image_generation_call":
            self.images.append(image_of(f"data:image/png;base64,{item.get('result') or ''}"))
        else:
            # Searches and code that the provider runs, its own compactions, what comes next year.
            data = orjson.dumps(item)
            self.opaque.append(Opaque(kind=str(kind), size_bytes=len(data)))

    def _add_call(self, kind: str, item: Mapping[str, Any]) -> None:
        body = next((item[key] for key in _ARGUMENTS if item.get(key) is not None), "")
        call = (call_id_of(item), string(item.get("name")) or kind, string(body))
        self.calls.append(call)
        self.others.extend(text for text in call if text)
        self._add_unknown(item, known=("call_id", "name", *_ARGUMENTS))

    def _add_reasoning(self, item: Mapping[str, Any]) -> None:
        for key in ("summary", "content"):
            for part in item.get(key) or ():
                self.others.append(string(part.get("text")) if isinstance(part, dict) else "")
        sealed = item.get("encrypted_content")
        if isinstance(sealed, str) and sealed:
            size_bytes = len(sealed) * BASE64_BYTES // BASE64_CHARS
            self.opaque.append(Opaque(kind="encrypted reasoning", size_bytes=size_bytes))

    def _add_unknown(self, item: Mapping[str, Any], *, known: Iterable[str]) -> None:
        for key, value in item.items():
            if value and key not in _UNREAD and key not in known:
                self.others.append(string(value))

    def add_result(self, item: Mapping[str, Any]) -> None:
        """Take what answers a call."""
        output = item.get("output")
        if isinstance(output, list) and not all(map(_is_part, output)):
            self.texts.append(string(output))  # A shell's streams and exit codes.
        elif output is not None:
            self.add_content(output)
        self._add_unknown(item, known=("output", "call_id"))
        if self.others and not self.texts:
            self.texts = [*self.others]  # An approval, or the status of a patch.
            self.others.clear()


def call_id_of(item: Mapping[str, Any]) -> str:
    """Return the id by which a call and its result know each other; "": it has none."""
    keys: tuple[str, ...] = ("call_id",)
    kind = item.get("type")
    if kind in {"local_shell_call_output", APPROVAL_ASKED}:
        keys = ("call_id", "id")
    elif kind == APPROVAL:
        keys = ("approval_request_id",)
    found = (item.get(key) for key in keys)
    return next((call_id for call_id in found if isinstance(call_id, str)), "")


def is_call(item: Mapping[str, Any]) -> bool:
    """Tell whether the client has to answer an item; a call that the provider runs itself is of a
    known kind too, but has no id to answer to."""
    kind = item.get("type")
    return kind in _NAMED_CALLS or (kind in _CALL_KINDS and bool(call_id_of(item)))


def open_calls(items: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where the calls stand that no item of the same run answers."""
    answered = {call_id_of(item) for item in items if _is_result(item)}
    return [
        at for at, item in enumerate(items) if is_call(item) and call_id_of(item) not in answered
    ]


def is_blank(item: Mapping[str, Any]) -> bool:
    """Tell whether an item is a message without a word or anything else in it."""
    if item.get("type", "message") != "message":
        return False
    parts = Parts()
    parts.add_content(item.get("content"))
    return not (parts.images or parts.opaque or any(text.strip() for text in parts.texts))


def _is_result(item: Mapping[str, Any]) -> bool:
    return string(item.get("type")).endswith(_RESULT) and bool(call_id_of(item))


def string(value: Any) -> str:
    """Return a string as it is, nothing as "", anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _is_text(part: Mapping[str, Any], key: str) -> bool:
    return isinstance(part.get(key), str)


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)
