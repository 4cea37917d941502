"""The anthropic package for Python."""

import sys
from typing import Any

import anthropic
from talk import (
    COUNT,
    FACT,
    FAIL,
    HANG,
    KEY,
    MODEL,
    QUESTION,
    TURNS,
    WEATHER,
    failed,
    filler,
    say,
    weather,
)

TOOLS: Any = [
    {
        "name": "get_weather",
        "description": "Returns the weather.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def messages(base_url: str) -> None:
    sdk = anthropic.Anthropic(base_url=base_url, api_key=KEY, max_retries=0)

    def ask(talk: list[Any], **more: Any) -> Any:
        return sdk.messages.create(model=MODEL, max_tokens=200, messages=talk, **more)

    talk = [user(FACT)]
    for turn in range(TURNS):
        talk.append({"role": "assistant", "content": ask(talk).content})
        talk.append(user(filler(turn)))
    reply = ask(talk)
    say("chat", reply.content[0].text, messages=len(talk))
    talk += [{"role": "assistant", "content": reply.content}, user(QUESTION)]
    say("recall", ask(talk).content[0].text)
    with sdk.messages.stream(model=MODEL, max_tokens=99, messages=[user(COUNT)]) as stream:
        pieces = list(stream.text_stream)
    say("stream", "".join(pieces), pieces=len(pieces))

    asked = [user(WEATHER)]
    reply = ask(asked, tools=TOOLS)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
        for block in reply.content
        if block.type == "tool_use"
    ]
    asked += [{"role": "assistant", "content": reply.content}, user(results)]
    say("tools", ask(asked, tools=TOOLS).content[0].text)
    say("error", failed(lambda: ask([user(FAIL)])))
    with sdk.messages.stream(model=MODEL, max_tokens=99, messages=[user(HANG)]) as stream:
        next(iter(stream.text_stream))
    say("disconnect", "left")


if __name__ == "__main__":
    {"messages": messages}[sys.argv[1]](sys.argv[2])
