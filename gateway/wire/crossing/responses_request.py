"""A Responses request as a chat completions request. Pure.

A tool of free text (`custom`) becomes a function with one argument, `input`, and its calls come
back as what they were. A grammar that its text has to follow is told to the model in the tool's
description: a chat server has no way to hold it to one. The tools of a `namespace` go out one by
one under joined names (tool_names.py), the first with what is said of them all. Reasoning that can
be read goes back as `reasoning_content`, where local servers look for it; sealed reasoning is
another provider's, and nobody but that one could open it.

A tool that its provider runs is refused. So is a web search whose `external_web_access` is false:
it reads the provider's own copy of the web in place of the web, and nobody else has that either.

Source: OpenAI, "Migrate to the Responses API" and both references; llama.cpp, server README
(`reasoning_content`); OpenAI, "Web search" guide (`external_web_access`); Codex's option as
0.171.0 takes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.crossing.tool_names import (
    FREE_TEXT_KIND,
    NAMESPACE_KIND,
    ToolName,
    ToolNames,
    name_of,
    tool_names,
)
from gateway.wire.lenient import dicts
from gateway.wire.responses.items import call_id_of, side_of, string

_REASONED = ("content", "summary")
FREE_TEXT = "input"
"""The one argument of a function that stands for a tool of free text."""
_SAME = frozenset(
    {
        *("model", "temperature", "top_p", "stream", "parallel_tool_calls", "user", "metadata"),
        *("service_tier", "prompt_cache_key", "safety_identifier", "seed", "stop", "verbosity"),
        *("presence_penalty", "frequency_penalty", "logit_bias"),
    }
)
_LEFT_OUT = frozenset(
    {
        *("instructions", "input", "tools", "tool_choice", "text", "reasoning", "stream_options"),
        *("max_output_tokens", "include", "store", "truncation", "background", "conversation"),
        *("previous_response_id", "prompt_cache_retention", "prompt_cache_options"),
        *("context_management", "top_logprobs", "prompt", "max_tool_calls"),
    }
)  # fmt: skip
"""Said otherwise below, or asking for no other answer."""
_WEB_SEARCH = "web_search"
_SEARCH_OFF = 'switch it off in the client (Codex: -c web_search="disabled")'


def chat_request(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat completions request that a Responses request is.

    Raises:
        Untranslatable: a part of it has no counterpart.

    """
    chat = {
        name: value
        for name, value in fields.items()
        if name in _SAME or (name not in _LEFT_OUT and value is not None)
    }
    names = tool_names(fields)
    chat["messages"] = [*_instructions(fields), *chat_messages(fields.get("input"), names)]
    tools = list(_tools(fields.get("tools"), names))
    choice, tools = _choice(fields.get("tool_choice"), tools, names)
    if tools:
        chat["tools"] = tools
        if choice is not None:
            chat["tool_choice"] = choice
    else:
        chat.pop("parallel_tool_calls", None)
    text = fields.get("text")
    if isinstance(text, dict):
        if text.get("verbosity"):
            chat["verbosity"] = text["verbosity"]
        form = _form(text.get("format"))
        if form is not None:
            chat["response_format"] = form
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        chat["reasoning_effort"] = reasoning["effort"]
    if fields.get("max_output_tokens") is not None:
        chat["max_tokens"] = fields["max_output_tokens"]
    if fields.get("top_logprobs"):
        chat |= {"logprobs": True, "top_logprobs": fields["top_logprobs"]}
    if fields.get("stream") is True:
        chat["stream_options"] = {"include_usage": True}
    return {name: value for name, value in chat.items() if value is not None}


# -- the transcript ------------------------------------------------------------------------------
def _instructions(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = fields.get("instructions")
    return [{"role": "system", "content": text}] if text else []


def chat_messages(said: Any, names: ToolNames) -> Iterable[dict[str, Any]]:
    """Yield the messages that an `input` is, a text or items; `names`: of the request's tools.

    Raises:
        Untranslatable: an item has no counterpart.

    """
    if isinstance(said, str):
        yield {"role": "user", "content": said}
        return
    run: list[Mapping[str, Any]] = []
    for item in dicts(said):
        side = side_of(item.get("type"), item.get("role"), call_id_of(item) or None)
        if side == "assistant":
            run.append(item)
            continue
        if run:
            yield _assistant(run, names)
            run = []
        yield _result(item) if side == "tool" else _clients(item)
    if run:
        yield _assistant(run, names)


def _clients(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the client; a developer's is a system's, which every template knows."""
    kind = item.get("type") or "message"
    if kind != "message":
        raise Untranslatable("input", f"an item of type {kind!r}")
    role = "user" if item.get("role") == "user" else "system"
    content = item.get("content")
    if isinstance(content, list):
        content = _flat([_part(part) for part in content])
    return {"role": role, "content": content or ""}


def _flat(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return parts that are all text as one: small servers read no lists."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type")
    if kind in {"input_text", "output_text", "text", "summary_text"}:
        return {"type": "text", "text": string(part.get("text"))}
    if kind == "refusal":
        return {"type": "text", "text": string(part.get("refusal"))}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file" and not part.get("file_url"):
        names = ("file_data", "filename", "file_id")
        return {"type": "file", "file": {key: part[key] for key in names if part.get(key)}}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.get("input_audio")}
    raise Untranslatable("input", f"a part of type {kind!r} that only its provider can read")


def _assistant(run: Sequence[Mapping[str, Any]], names: ToolNames) -> dict[str, Any]:
    """Return the message that a run of the assistant's items is."""
    words: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in run:
        kind = item.get("type") or "message"
        if kind == "message":
            content = item.get("content")
            parts = content if isinstance(content, list) else [content or ""]
            words.extend(_part(part).get("text", "") for part in parts)
        elif kind == "reasoning":
            reasoning.extend(_readable(item))
        elif kind == "function_call":
            calls.append(_call(item, string(item.get("arguments")), names))
        elif kind == "custom_tool_call":
            calls.append(_call(item, _dumped({FREE_TEXT: string(item.get("input"))}), names))
        else:
            raise Untranslatable("input", f"an item of type {kind!r}")
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(words) or None}
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None:
        message["content"] = ""
    return message


def _readable(item: Mapping[str, Any]) -> list[str]:
    """Return the words of a piece of reasoning, else of its summary; none where it is sealed."""
    kinds = [[string(part.get("text")) for part in dicts(item.get(key))] for key in _REASONED]
    return next(filter(None, kinds), [])


def _call(item: Mapping[str, Any], arguments: str, names: ToolNames) -> dict[str, Any]:
    function = {"name": names.upstreams(name_of(item)), "arguments": arguments}
    return {"id": call_id_of(item), "type": "function", "function": function}


def _result(item: Mapping[str, Any]) -> dict[str, Any]:
    kind, output = item.get("type"), item.get("output")
    if kind not in {"function_call_output", "custom_tool_call_output"}:
        raise Untranslatable("input", f"an item of type {kind!r}")
    if isinstance(output, list):
        content = _flat([_part(part) for part in output])
        if not isinstance(content, str):
            raise Untranslatable("input", "a tool's result that is no text")
    else:
        content = string(output)
    return {"role": "tool", "tool_call_id": call_id_of(item), "content": content}


# -- tools and forms -----------------------------------------------------------------------------
def _tools(tools: Any, names: ToolNames) -> Iterable[dict[str, Any]]:
    for tool in dicts(tools):
        if tool.get("type") != NAMESPACE_KIND:
            yield _tool(tool, names, within="")
            continue
        space, told = string(tool.get("name")), string(tool.get("description"))
        for inner in dicts(tool.get("tools")):
            made = _tool(inner, names, within=space)
            if told:
                function, told = made["function"], f"About all tools of {space!r}: {told}"
                own = string(function.get("description"))
                function["description"] = f"{own}\n\n{told}" if own else told
                told = ""
            yield made


def _tool(tool: Mapping[str, Any], names: ToolNames, *, within: str) -> dict[str, Any]:
    """Return the function that a tool is; `within`: its namespace."""
    kind = tool.get("type")
    if kind == "function":
        keys = ("name", "description", "parameters", "strict")
        function = {key: tool[key] for key in keys if tool.get(key) is not None}
    elif kind == FREE_TEXT_KIND:
        function = _function_of(tool)
    else:
        way_out = _SEARCH_OFF if string(kind).startswith(_WEB_SEARCH) else ""
        what = f"a tool of type {kind!r}, which its provider runs,"
        raise Untranslatable("tools", what, way_out=way_out)
    if within:
        function["name"] = names.upstreams(ToolName(within, string(tool.get("name"))))
    return {"type": "function", "function": function}


def _function_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function in place of a tool of free text."""
    form = tool.get("format")
    described = string(tool.get("description"))
    if isinstance(form, dict) and form.get("type") == "grammar":
        rules = f"The input follows this {form.get('syntax')} grammar:\n{form.get('definition')}"
        described = f"{described}\n\n{rules}" if described else rules
    text = {"type": "string", "description": "The whole input of the tool, as plain text."}
    return {
        "name": string(tool.get("name")),
        "description": described,
        "parameters": {"type": "object", "properties": {FREE_TEXT: text}, "required": [FREE_TEXT]},
    }


def _choice(
    choice: Any, tools: list[dict[str, Any]], names: ToolNames
) -> tuple[Any, list[dict[str, Any]]]:
    """Return which tool must be called, and the tools that may be."""
    if choice is None or isinstance(choice, str):
        return choice, tools
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind in {"function", FREE_TEXT_KIND}:
        return {"type": "function", "function": {"name": names.chosen(choice)}}, tools
    if kind == "allowed_tools":
        chosen: set[str] = set()
        for one in dicts(choice.get("tools")):
            is_space = one.get("type") == NAMESPACE_KIND
            chosen |= {*names.within(string(one.get("name")))} if is_space else {names.chosen(one)}
        allowed = [tool for tool in tools if string(tool["function"].get("name")) in chosen]
        return choice.get("mode", "auto"), allowed
    raise Untranslatable("tool_choice", f"a choice of type {kind!r}")


def _form(form: Any) -> dict[str, Any] | None:
    """Return the form that the answer must have; None: any text."""
    kind = form.get("type") if isinstance(form, dict) else None
    if kind in {None, "text"}:
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind == "json_schema":
        names = ("name", "description", "schema", "strict")
        schema = {key: form[key] for key in names if form.get(key) is not None}
        return {"type": "json_schema", "json_schema": schema}
    raise Untranslatable("text.format", f"a form of type {kind!r}")


def _dumped(value: Any) -> str:
    return orjson.dumps(value).decode()
