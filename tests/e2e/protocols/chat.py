"""Chat completions, in whose shapes the tests are written. Pure."""

from tests.e2e import legality
from tests.e2e.answers import DONE, ROLE, Json, chunk, event
from tests.e2e.protocols.protocol import Protocol


def _message(body: Json) -> Json:
    message: Json = body["choices"][0]["message"]
    return message


def fragment(index: int, call_id: str, name: str, arguments: str) -> bytes:
    """Return a chunk with a piece of a call."""
    function: Json = {"arguments": arguments} | ({"name": name} if name else {})
    call: Json = {"index": index, "function": function}
    return chunk({"tool_calls": [call | ({"id": call_id, "type": "function"} if call_id else {})]})


def _is_refusal(body: Json) -> bool:
    error = body.get("error")
    return isinstance(error, dict) and error.keys() >= {"message", "type", "param", "code"}


CHAT = Protocol(
    name="chat",
    path="/chat/completions",
    items="messages",
    reply_limit="max_tokens",
    request=lambda body: body,
    read=lambda body: body,
    reply=lambda body: body,
    message=_message,
    stored=lambda body: body,
    is_refusal=_is_refusal,
    code=lambda body: body["error"]["code"],
    violations=lambda body, budget: legality.violations(body, budget_tokens=budget),
    begin=ROLE,
    piece=lambda text: chunk({"content": text}),
    thought=lambda text: chunk({"reasoning_content": text}),
    fragment=fragment,
    end=(chunk({}, finish="stop"), DONE),
    broken=lambda text: event({"error": {"message": text, "code": 500}}),
)
