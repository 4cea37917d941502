"""An answer in Anthropic's Messages API that is made here and not relayed. Pure.

Every field that the API's schema requires stands in it, for clients that take nothing less.

Source: Anthropic's published schema (`Message`, `Usage`, `ResponseTextBlock`,
`ResponseToolUseBlock`), as PyPI's llm-comply 0.5.0 brings it.
"""

from typing import Any


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": None}


def thinking_block(thinking: str) -> dict[str, Any]:
    """Return reasoning that nobody signed."""
    return {"type": "thinking", "thinking": thinking, "signature": ""}


def tool_use(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return a call of the model's own."""
    direct = {"type": "direct"}
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments, "caller": direct}


def usage(*, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> dict[str, Any]:
    """Return the numbers of an answer; what a cache held is not in `input_tokens`."""
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "cache_creation": None,
        "output_tokens": output_tokens,
        "output_tokens_details": None,
        "server_tool_use": None,
        "service_tier": None,
        "inference_geo": None,
    }


def begun(identifier: str, model: str, *, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return a message of which nothing is said yet; `numbers` is its usage."""
    return {
        "id": identifier,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": numbers,
    }
