"""OpenAI's Responses API for tests that are written as chats. Pure."""

from collections.abc import Iterator
from typing import Any

from tests.e2e import legality, responses_answers
from tests.e2e.answers import Json
from tests.e2e.protocols.chat import CHAT
from tests.e2e.protocols.protocol import Protocol, named_event, vendor_keys

SEALED = "gAAAAsealed"


def _request(body: Json) -> Json:
    own = {"messages", "tools", "tool_choice", "response_format", "max_tokens"}
    out: Json = {key: value for key, value in body.items() if key not in own}
    if "max_tokens" in body:
        out["max_output_tokens"] = body["max_tokens"]
    spoken = list(body["messages"])
    if spoken and spoken[0]["role"] == "system":
        out["instructions"] = spoken.pop(0)["content"]
    out["input"] = [item for message in spoken for item in _items_of(message)]
    if body.get("tools"):
        out["tools"] = [{"type": "function", **tool["function"]} for tool in body["tools"]]
    choice = body.get("tool_choice")
    if choice is not None:
        name = choice if choice == "auto" else {"type": "function", **choice["function"]}
        out["tool_choice"] = name
    if "response_format" in body:
        out["text"] = {"format": {"type": "json_schema", **body["response_format"]["json_schema"]}}
    return out


def _items_of(message: Json) -> Iterator[Json]:
    role, content, more = message["role"], message.get("content"), vendor_keys(message)
    if isinstance(content, list):
        content = [_part_of(part, is_said=role == "assistant") for part in content]
    if role == "tool":
        call_id = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": call_id, "output": content, **more}
        return
    calls = message.get("tool_calls") or ()
    if "reasoning_content" in message:
        summary = [{"type": "summary_text", "text": message["reasoning_content"]}]
        sealed = {"id": f"rs_{len(str(message))}", "encrypted_content": SEALED}
        yield {"type": "reasoning", "summary": summary, **sealed}
    if content or not (calls or "reasoning_content" in message):
        yield {"role": role, "content": content if content is not None else "", **more}
    for call in calls:
        function = call["function"]
        item = responses_answers.calling(call["id"], function["name"], function["arguments"])
        yield item | more


def _part_of(part: Json, *, is_said: bool) -> Json:
    match part.get("type"):
        case "text":
            return part | {"type": "output_text" if is_said else "input_text"}
        case "image_url" if isinstance(part["image_url"], dict):
            url, detail = part["image_url"]["url"], part["image_url"].get("detail", "auto")
            return {"type": "input_image", "image_url": url, "detail": detail}
        case "file":
            return {"type": "input_file", **part["file"]}
        case _:
            return part


def _read(body: Json) -> Json:
    chat = responses_answers.as_chat(body)
    for message in chat["messages"]:
        message.setdefault("content", None)
    return {**body, **chat}


def _reply(body: Json) -> Json:
    if "choices" not in body:
        return body
    message = body["choices"][0]["message"]
    items = [] if message["content"] is None else [responses_answers.spoken(message["content"])]
    items += [
        responses_answers.calling(
            call["id"], call["function"]["name"], call["function"]["arguments"]
        )
        for call in message.get("tool_calls") or ()
    ]
    items[-1] |= vendor_keys(message)
    return responses_answers.response(*items, name=responses_answers.new_name())


def _stored(body: Json) -> Json:
    [message] = responses_answers.as_chat({"input": body.get("items", [body])})["messages"]
    return {"content": None, **message} if message["role"] == "assistant" else message


def _event(kind: str, **fields: Any) -> bytes:
    return named_event(kind, sequence_number=0, **fields)


_AT: Json = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
_OPENED = {**responses_answers.spoken(""), "status": "in_progress", "content": []}
_BEGUN = responses_answers.response(status="in_progress")


def fragment(index: int, call_id: str, name: str, arguments: str) -> bytes:
    """Return the events with a piece of a call; index 0 of a stream is a message."""
    item = {**responses_answers.calling(call_id, name, ""), "status": "in_progress"}
    opened = _event("response.output_item.added", output_index=index + 1, item=item)
    at = {"output_index": index + 1, "item_id": "fc"}
    more = _event("response.function_call_arguments.delta", delta=arguments, **at)
    return (opened if call_id else b"") + more


def _thought(text: str) -> bytes:
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    at = {"output_index": 1, "item_id": "rs_1", "summary_index": 0}
    return _event("response.output_item.added", output_index=1, item=item) + _event(
        "response.reasoning_summary_text.delta", delta=text, **at
    )


RESPONSES = Protocol(
    name="responses",
    path="/responses",
    items="input",
    reply_limit="max_output_tokens",
    request=_request,
    read=_read,
    reply=_reply,
    message=lambda body: _stored({"items": body["output"]}),
    stored=_stored,
    is_refusal=CHAT.is_refusal,
    code=lambda body: body["error"]["code"],
    violations=lambda body, budget: legality.violations(_read(body), budget_tokens=budget),
    begin=_event("response.created", response=_BEGUN)
    + _event("response.output_item.added", output_index=0, item=_OPENED),
    piece=lambda text: _event("response.output_text.delta", **_AT, delta=text),
    thought=_thought,
    fragment=fragment,
    end=(
        _event("response.output_text.done", **_AT),
        _event("response.completed", response=responses_answers.response()),
    ),
    broken=lambda text: _event("error", code="server_error", message=text, param=None),
)
