"""The result of a call that was interrupted, in the form that its kind of call is answered with.
Pure.

The governor mends a transcript without knowing protocols: it makes one plain result. A server that
is given a function's output for a patch, or for a tool of free text, refuses the request.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.wire.responses.items import APPROVAL, APPROVAL_ASKED, call_id_of, is_call, string
from governor.transcript import INTERRUPTED

Form = Callable[[str], dict[str, Any]]

_FORMS: Mapping[str, Form] = {
    "custom_tool_call": lambda call_id: {
        "type": "custom_tool_call_output",
        "call_id": call_id,
        "output": INTERRUPTED,
    },
    "local_shell_call": lambda call_id: {
        "type": "local_shell_call_output",
        "id": call_id,
        "output": INTERRUPTED,
    },
    "shell_call": lambda call_id: {
        "type": "shell_call_output",
        "call_id": call_id,
        "output": [{"stdout": "", "stderr": INTERRUPTED, "outcome": {"type": "timeout"}}],
    },
    "apply_patch_call": lambda call_id: {
        "type": "apply_patch_call_output",
        "call_id": call_id,
        "status": "failed",
        "output": INTERRUPTED,
    },
    APPROVAL_ASKED: lambda call_id: {
        "type": APPROVAL,
        "approval_request_id": call_id,
        "approve": False,
    },
}
"""What answers a function's call is what the governor makes already."""


def answered_as_called(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a request with each made result as its call wants it."""
    if not any(item.get("output") == INTERRUPTED for item in items):
        return list(items)
    kinds = {call_id_of(item): string(item.get("type")) for item in items if is_call(item)}
    return [_as_called(item, kinds) for item in items]


def _as_called(item: dict[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    if item.get("output") != INTERRUPTED or item.get("type") != "function_call_output":
        return item
    call_id = call_id_of(item)
    form = _FORMS.get(kinds.get(call_id, ""))
    return item if form is None else form(call_id)
