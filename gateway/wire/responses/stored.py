"""Replies in the store as this protocol's clients ask for them: a response, its input. Pure.

A response is put together from what is recorded of it. What only echoes its request - tools,
instructions, sampling - is not recorded with it, and stands as the protocol's defaults.

Source: OpenAI API reference, "Get a model response", "List input items"; what a response must have
is in the schema that PyPI's llm-comply 0.5.0 brings (`ResponseResource`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.wire.responses.items import string
from gateway.wire.responses.message import ITEMS
from library.records import Event

DEFAULTS: Mapping[str, Any] = {
    "error": None,
    "incomplete_details": None,
    "completed_at": None,
    "previous_response_id": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "background": False,
    "store": True,
    "truncation": "disabled",
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "reasoning": {"effort": None, "summary": None},
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "parallel_tool_calls": True,
    "service_tier": "default",
    "safety_identifier": None,
    "prompt_cache_key": None,
    "metadata": {},
    "usage": None,
}
"""What a response says where nothing else is known: each of it must be there."""
_DONE = "done"
_USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}
_DETAILS = {
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
"""Without these OpenAI's SDK takes no usage for one."""


def stored_response(name: str, reply: Event | None, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of an id; `report` is its turn's."""
    status, details = _status(report)
    error = report.get("error")
    return {
        **DEFAULTS,
        "id": name,
        "object": "response",
        "created_at": int(datetime.fromisoformat(report["started_at"]).timestamp()),
        "status": status,
        "error": {"code": "server_error", "message": string(error)} if error else None,
        "incomplete_details": details,
        "model": report.get("model"),
        "output": stored_items([reply]) if reply is not None else [],
        "usage": response_usage(report.get("usage")),
    }


def _status(report: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    if report.get("state") != _DONE:
        return "failed", None
    reason = report.get("finish_reason")
    if reason in {None, "completed"}:
        return "completed", None
    return "incomplete", {"reason": reason}


def response_usage(usage: Any) -> dict[str, Any] | None:
    """Return a report's usage as this protocol has it; None: nothing is known."""
    if not isinstance(usage, dict):
        return None
    counts: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0}
    counts |= {_USAGE.get(str(name), str(name)): value for name, value in usage.items()}
    total = {"total_tokens": counts["input_tokens"] + counts["output_tokens"]}
    for name, known in _DETAILS.items():
        given = counts.get(name)
        counts[name] = {**known, **given} if isinstance(given, dict) else known
    return {**total, **counts}


def stored_items(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the items of events, in order, each with an id."""
    found = []
    for event in events:
        for at, item in enumerate(event.body.get(ITEMS, ())):
            found.append(_listed(item, f"{event.id}_{at}"))
    return found


def _listed(item: Mapping[str, Any], identifier: str) -> dict[str, Any]:
    """Return an item as lists have it: with a type, an id, and a message's content in parts."""
    listed: dict[str, Any] = {"type": "message", "id": identifier, **item}
    content = listed.get("content")
    if listed["type"] != "message":
        return listed
    listed.setdefault("status", "completed")
    if isinstance(content, str):
        is_reply = listed.get("role") == "assistant"
        part: dict[str, Any] = {"type": "input_text", "text": content}
        if is_reply:
            part = {"type": "output_text", "text": content, "annotations": []}
        listed["content"] = [part]
    return listed


def page_of(
    items: Sequence[dict[str, Any]], *, limit: int, is_descending: bool, after: str | None
) -> dict[str, Any]:
    """Return one page of a list of items, given in their order."""
    ordered = list(reversed(items)) if is_descending else list(items)
    start = next((at + 1 for at, item in enumerate(ordered) if item["id"] == after), 0)
    page = ordered[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + limit < len(ordered),
    }
