"""The content blocks of Anthropic's Messages API: what they say and what they cost. Pure.

A block that is not known is priced from its size and goes on as it came. Blocks that the upstream's
own tools leave in its answers (`server_tool_use`, `web_search_tool_result`) are such: nobody has to
answer them, and nobody said them.

Thinking is not said either, and no part of a message's identity, since clients drop it. It costs:
within a tool loop the upstream reads what its signature holds, which is at least what it shows.

Source: the types of PyPI's anthropic 2.14, ContentBlockParam and what it is made of.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from gateway.wire.reading import string_of
from governor.counting.images import image_of
from governor.documents import page_count
from governor.message import Image, Opaque

PROVIDED = ("_tool_use", "_tool_result")
"""Ends the kinds of blocks that the upstream's own tools leave."""
_WORDS = ("text", "refusal")
_FOREIGN = frozenset({"image_url", "input_text", "output_text"})
THINKING = frozenset({"thinking", "redacted_thinking"})


class Blocks:
    """What a list of blocks holds, kind by kind."""

    __slots__ = ("calls", "images", "media", "opaque", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[tuple[str, str, str]] = []
        """(id, name, arguments as JSON) of every call that asks for a result."""
        self.images: list[Image] = []
        self.opaque: list[Opaque] = []
        self.media: list[str] = []

    def add_content(self, content: Any) -> None:
        """Add a `content`: a string, a list of blocks, or nothing."""
        if isinstance(content, str):
            self.texts.append(content)
        else:
            for block in content or ():
                self.add(block)

    def add(self, block: Any) -> None:
        if isinstance(block, str):
            self.texts.append(block)
            return
        match block.get("type"):
            case "text":
                self._add_text(block)
            case "thinking":
                self._add_thinking(block)
            case "redacted_thinking":
                self.opaque.append(_encoded("redacted_thinking", block.get("data")))
            case "tool_use":
                arguments = orjson.dumps(block.get("input")).decode()
                names = (string_of(block.get("id")), string_of(block.get("name")))
                self.calls.append((*names, arguments))
            case "image":
                self._add_image(block)
            case "document":
                self._add_document(block)
            case "search_result":
                self.texts += [string_of(block.get(key)) for key in ("title", "source")]
                self.add_content(block.get("content"))
            case _:
                self._add_unknown(block)

    def _add_text(self, block: Mapping[str, Any]) -> None:
        if not isinstance(block["text"], str):
            raise TypeError("the text of a block must be a string")
        self.texts.append(block["text"])
        if block.get("citations"):
            self.opaque.append(Opaque("citations", len(orjson.dumps(block["citations"]))))

    def _add_thinking(self, block: Mapping[str, Any]) -> None:
        self.thoughts.append(string_of(block.get("thinking")))
        if block.get("signature"):
            self.opaque.append(_encoded("signature", block["signature"]))

    def _add_image(self, block: Mapping[str, Any]) -> None:
        address = _address(block.get("source"))
        self.images.append(image_of(address))
        self.media.append(address)

    def _add_document(self, block: Mapping[str, Any]) -> None:
        source = block["source"]
        self.texts += [
            block[key] for key in ("title", "context") if isinstance(block.get(key), str)
        ]
        if source.get("type") == "text":
            self.texts.append(string_of(source.get("data")))
        elif source.get("type") == "content":
            self.add_content(source.get("content"))
        else:
            address = _address(source)
            size_bytes = len(string_of(source.get("data"))) * 3 // 4
            self.opaque.append(Opaque("document", size_bytes, page_count(address)))
            self.media.append(address)

    def _add_unknown(self, block: Mapping[str, Any]) -> None:
        kind = string_of(block.get("type"))
        if kind in _FOREIGN:
            raise ValueError(f"{kind!r} is no block of this protocol")
        data = orjson.dumps(block, option=orjson.OPT_SORT_KEYS)
        self.opaque.append(Opaque(kind, len(data)))
        # The same block may come back with other fields: its id, where it has one, is what it is.
        own_id = block.get("id") or block.get("tool_use_id")
        words = next((block[key] for key in _WORDS if isinstance(block.get(key), str)), None)
        if kind.endswith(PROVIDED) and isinstance(own_id, str):
            self.media.append(f"{kind}:{own_id}")
        elif words is not None:
            self.texts.append(words)
        else:
            self.media.append(data.decode())


def _encoded(kind: str, value: Any) -> Opaque:
    return Opaque(kind, len(string_of(value)) * 3 // 4)


def _address(source: Any) -> str:
    """Return where an attachment is: a data URL, a link or a file's id, as other protocols have it
    (so that the same image is the same in each)."""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{string_of(source.get('data'))}"
    return string_of(source.get("url") or source.get("file_id") or source)


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """Return content as a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def words_in(texts: Iterable[str]) -> str:
    return "\n".join(texts)
