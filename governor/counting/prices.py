"""What a prompt costs around its texts: templates, schemas, images and other parts. Pure.

OpenAI says what its own models take. For every other model the chat template decides, and we do
not have it: a declared bound over the common ones stands in.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from governor.message import Image, Message, Opaque


@dataclass(frozen=True, slots=True)
class Template:
    """Tokens that a chat template puts around what it is given."""

    name: str
    prompt_tokens: int
    """Once a prompt: the start of the reply, a default system text."""
    message_tokens: int
    result_tokens: int
    """A tool message, in place of `message_tokens`."""
    name_tokens: int
    call_tokens: int
    """A tool call, beside its name, id and arguments."""
    schemas_tokens: int
    """Once a prompt that has tools: how to call them."""
    schema_tokens: int
    """Each schema, beside its JSON."""
    is_pasted: bool
    """Schemas and calls may be written out with spaces and line breaks."""


OPENAI = Template(
    name="openai",
    prompt_tokens=3,
    message_tokens=4,
    result_tokens=4,
    name_tokens=1,
    call_tokens=12,
    schemas_tokens=16,
    schema_tokens=12,
    is_pasted=False,
)
"""3 a message and 1 for its role, 1 a name, 3 for the reply; tools: 7 a function, 3 for its
properties, 12 at the end. What a call costs beside its text is not published.
Source: OpenAI cookbook, "How to count tokens with tiktoken": num_tokens_from_messages and
num_tokens_for_tools for gpt-4o (10 a function for gpt-4); 12 a call is our own margin."""

CHAT = Template(
    name="chat",
    prompt_tokens=64,
    message_tokens=8,
    result_tokens=24,
    name_tokens=4,
    call_tokens=32,
    schemas_tokens=256,
    schema_tokens=16,
    is_pasted=True,
)
"""A bound over the common templates whose marks are single tokens of their tokenizer.

A message: 5 in ChatML, Llama 3 and Gemma, fewer in Phi and Mistral, 6 in "### Instruction:".
A prompt: the reply's header, and 20-26 for the default system text of Qwen 2.5 or the dates of
Llama 3.1. A call in Hermes form (`<tool_call>` with JSON): 17 beside name and arguments; a result
in `<tool_response>`: 13. Tools: 86 for Qwen's instructions, 51 for Llama 3.1's; the rest is room.
A tokenizer that reads the marks as ordinary text takes up to 16 a message: that is not covered,
and left to calibration.
Source: those texts counted with quicktok's qwen3 and llama3 encodings, 2026-11-30; whole chats of
SmolLM 2 under llama.cpp are held to it by tests/e2e/test_small_model_counting.py."""

HARMONY = Template(
    name="harmony",
    prompt_tokens=160,
    message_tokens=8,
    result_tokens=24,
    name_tokens=4,
    call_tokens=32,
    schemas_tokens=256,
    schema_tokens=16,
    is_pasted=True,
)
"""gpt-oss: its template always writes a system message, 75 tokens with today's date and channels.
Source: openai/harmony, docs/format.md, counted with o200k."""

CLAUDE = Template(
    name="claude",
    prompt_tokens=64,
    message_tokens=8,
    result_tokens=32,
    name_tokens=4,
    call_tokens=48,
    schemas_tokens=640,
    schema_tokens=32,
    is_pasted=True,
)
"""Anthropic's own models. With tools comes a system text of theirs of up to 530 tokens (346 for
Claude 4); the rest is not published and room. Source: Anthropic, "Tool use: pricing and tokens"."""

TEXT = Template(
    name="text",
    prompt_tokens=1,
    message_tokens=1,
    result_tokens=1,
    name_tokens=0,
    call_tokens=0,
    schemas_tokens=0,
    schema_tokens=0,
    is_pasted=False,
)
"""A prompt that is one text, in pieces: no template stands around it. 1 for the mark at its start
that many tokenizers add, and 1 a piece for what its border may cost where a tokenizer joins two."""

PROVIDED_TOOL_TOKENS = 1_024
"""A tool that the provider defines is named in the request and described by the provider: text
editor 700, computer use 735, bash 245 tokens. Source: Anthropic's pages of these tools."""

PART_TOKENS = 2
"""Each content part beyond the first: templates join them with a line break."""


def template_tokens(template: Template, message: Message) -> int:
    """Return what the template adds to a message."""
    tokens = template.result_tokens if message.role == "tool" else template.message_tokens
    tokens *= message.item_count
    raw = message.raw
    if raw.get("name"):
        tokens += template.name_tokens
    content = raw.get("content")
    if isinstance(content, list):
        tokens += PART_TOKENS * len(content)
    if message.call_ids:
        tokens += template.call_tokens * len(message.call_ids)
        if template.is_pasted:
            tokens += sum(_separators(text) for text in message.counted)
    return tokens


def _separators(text: str) -> int:
    """Return the places where a template that re-writes JSON arguments puts a space."""
    return text.count('":') + text.count(',"') if text.startswith("{") else 0


# -- schemas -----------------------------------------------------------------------------------
ENUM_ITEM_TOKENS = 2
"""The cookbook charges 3 an item beside its text, and `","` in compact JSON is 1."""


def schema_texts(template: Template, schema: str) -> tuple[str, ...]:
    """Return the forms in which a schema may be written into the prompt; the dearest counts.

    Hermes templates paste one line with spaces, Llama 3.1 four-space JSON, llama.cpp two-space.
    """
    if not template.is_pasted:
        return (schema,)
    try:
        value = orjson.loads(schema)
    except orjson.JSONDecodeError:
        return (schema,)
    return (
        schema,
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, ensure_ascii=False, indent=4),
    )


def schemas_tokens(template: Template, count: Callable[[str], int], schemas: Sequence[str]) -> int:
    """Return the tokens of tool and response schemas, given as compact JSON texts."""
    if not schemas:
        return 0
    tokens = template.schemas_tokens
    for schema in schemas:
        tokens += template.schema_tokens + max(map(count, schema_texts(template, schema)))
        if '"input_schema"' not in schema and _PROVIDED.search(schema):
            tokens += PROVIDED_TOOL_TOKENS
        if '"enum"' in schema:
            tokens += ENUM_ITEM_TOKENS * _enum_items(_parsed(schema))
    return tokens


_PROVIDED = re.compile(r'"type":"[a-z_]+_20\d{6}"')
"""The type of a tool of Anthropic's own has a date in it."""


def _parsed(schema: str) -> Any:
    try:
        return orjson.loads(schema)
    except orjson.JSONDecodeError:
        return None


def _enum_items(value: Any) -> int:
    found = 0
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            items = one.get("enum")
            found += len(items) if isinstance(items, list) else 0
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
    return found


CLAUDE_BEFORE_4_7 = r"claude-(?:instant|v?[123]|(?:opus|sonnet|haiku)-(?:3|4(?!-[789])))"
"""With Opus 4.7 came another tokenizer and larger images."""


# -- images ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Tiles:
    """Scaled into 2,048 x 2,048, then to a short side of 768, then cut into tiles of 512."""

    base: int
    tile: int

    def tokens(self, image: Image) -> int:
        if image.detail == "low":
            return self.base
        if not image.width or not image.height:
            return self.base + 8 * self.tile
        scale = min(1.0, 2048 / max(image.width, image.height))
        scale *= min(1.0, 768 / (min(image.width, image.height) * scale))
        sides = (math.ceil(side * scale) for side in (image.width, image.height))
        across, down = (math.ceil(max(1, side) / 512) for side in sides)
        return self.base + min(8, across * down) * self.tile


@dataclass(frozen=True, slots=True)
class _Patches:
    """Squares of 32 pixels, at most `most` of them, each `each` tokens; `low` changes nothing."""

    each: float
    most: int = 1536

    def tokens(self, image: Image) -> int:
        patches = self.most
        if image.width and image.height:
            patches = min(patches, math.ceil(image.width / 32) * math.ceil(image.height / 32))
        return math.ceil(patches * self.each)


class _AnyModel:
    """A declared bound for all other models: Qwen 2.5 VL's 28-pixel grid up to its own maximum of
    16,384, and never less than Pixtral's 64 x 65, which is above LLaVA-NeXT's 2,880.

    From the models' published pre-processing; not measured here.
    """

    def tokens(self, image: Image) -> int:
        if not image.width or not image.height:
            return 16_384
        grid = (math.ceil(image.width / 28) + 1) * (math.ceil(image.height / 28) + 1)
        return max(4_160, min(16_384, grid))


@dataclass(frozen=True, slots=True)
class _Native:
    """Squares of 28 pixels; an image that takes more than `most` of them is scaled down to that."""

    most: int

    def tokens(self, image: Image) -> int:
        if not image.width or not image.height:
            return self.most
        return min(self.most, math.ceil(image.width / 28) * math.ceil(image.height / 28))


_ANY_MODEL = _AnyModel()
_IMAGE_PRICES: tuple[tuple[re.Pattern[str], _Tiles | _Patches | _Native], ...] = (
    (re.compile(r"gpt-4o-mini"), _Tiles(2833, 5667)),
    (re.compile(r"(gpt-4\.1|gpt-5)-nano"), _Patches(2.46)),
    (re.compile(r"(gpt-4\.1|gpt-5)-mini"), _Patches(1.62)),
    (re.compile(r"o4-mini|codex-mini"), _Patches(1.72)),
    (re.compile(r"gpt-5\.[2-9]"), _Patches(1.2, most=10_000)),
    (re.compile(r"gpt-5"), _Tiles(70, 140)),
    (re.compile(r"(chat)?gpt-4"), _Tiles(85, 170)),
    (re.compile(r"o[13]"), _Tiles(75, 150)),
    (re.compile(r"computer-use"), _Tiles(65, 129)),
    (re.compile(CLAUDE_BEFORE_4_7), _Native(1_640)),
    (re.compile(r"claude"), _Native(4_784)),
)
"""Source: OpenAI, "Images and vision", calculating costs (gpt-5 mini and nano are billed at less
than that page says); gpt-5.2 and later at 1.2, up to 10,000 patches at `original`: measured by
users, community.openai.com/t/1377015. Anthropic, "Vision": patches of 28 pixels, at most some
1,600 of them, and 4,784 since Claude Opus 4.7."""


def image_tokens(model: str, image: Image) -> int:
    """Return the most that an image costs; `model` is the name without its provider."""
    for pattern, price in _IMAGE_PRICES:
        if pattern.match(model):
            return price.tokens(image)
    return _ANY_MODEL.tokens(image)


# -- other parts -------------------------------------------------------------------------------
AUDIO_BYTES_A_TOKEN = 256
"""10 tokens a second (OpenAI) at the 2.5 KB/s of a 20 kbit/s MP3; WAV has far more bytes."""
BYTES_A_TOKEN = 2
"""A file's text, or an unknown part's JSON: prose has 4 bytes a token, code 3, numbers 2."""
OPAQUE_TOKENS = 64
PAGE_TOKENS = 5_000
"""A page of a PDF, as text (1,500 to 3,000 tokens) and as an image of up to 1,600. Source:
Anthropic, "PDF support"; pages of text and tables were measured at up to 2,481."""


def opaque_tokens(opaque: Opaque) -> int:
    """Return an estimate, on the high side, for a part that is neither text nor image."""
    if opaque.page_count:
        return OPAQUE_TOKENS + opaque.page_count * PAGE_TOKENS
    size = AUDIO_BYTES_A_TOKEN if "audio" in opaque.kind else BYTES_A_TOKEN
    return OPAQUE_TOKENS + math.ceil(opaque.size_bytes / size)
