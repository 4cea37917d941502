"""The openai package for Python, sync and async: chat completions and responses."""

import asyncio
import json
import sys
from typing import Any

import openai
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

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def chat(base_url: str) -> None:
    sdk = openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0)

    def ask(talk: list[Any], **more: Any) -> Any:
        return sdk.chat.completions.create(model=MODEL, messages=talk, **more)

    talk = [user(FACT)]
    for turn in range(TURNS):
        talk.append(ask(talk).choices[0].message)
        talk.append(user(filler(turn)))
    say("chat", ask(talk).choices[0].message.content, messages=len(talk))
    talk += [{"role": "assistant", "content": "Noted."}, user(QUESTION)]
    say("recall", ask(talk).choices[0].message.content)
    with ask([user(COUNT)], stream=True) as chunks:
        pieces = [one.choices[0].delta.content for one in chunks if one.choices[0].delta.content]
    say("stream", "".join(pieces), pieces=len(pieces))

    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
    asked = [user(WEATHER)]
    message = ask(asked, tools=tools).choices[0].message
    asked.append(message)
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        asked.append({"role": "tool", "tool_call_id": call.id, "content": result})
    say("tools", ask(asked, tools=tools).choices[0].message.content)
    say("error", failed(lambda: ask([user(FAIL)])))

    async def leave() -> None:
        async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0) as other:
            chunks = await other.chat.completions.create(
                model=MODEL, messages=[user(HANG)], stream=True
            )
            async for one in chunks:
                if one.choices[0].delta.content:
                    return

    asyncio.run(leave())
    say("disconnect", "left")


def responses(base_url: str) -> None:
    sdk = openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0)

    def ask(talk: Any, **more: Any) -> Any:
        return sdk.responses.create(model=MODEL, input=talk, **more)

    talk = [user(FACT)]
    for turn in range(TURNS):
        talk += ask(talk).output
        talk.append(user(filler(turn)))
    reply = ask(talk)
    say("chat", reply.output_text, messages=len(talk))
    talk += [*reply.output, user(QUESTION)]
    say("recall", ask(talk).output_text)
    with sdk.responses.stream(model=MODEL, input=COUNT) as events:
        pieces = [one.delta for one in events if one.type == "response.output_text.delta"]
    say("stream", "".join(pieces), pieces=len(pieces))

    tools: Any = [
        {"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": True}
    ]
    asked = [user(WEATHER)]
    reply = ask(asked, tools=tools)
    asked += reply.output
    for call in reply.output:
        result = weather(**json.loads(call.arguments))
        answer: Any = {"type": "function_call_output", "call_id": call.call_id, "output": result}
        asked.append(answer)
    say("tools", ask(asked, tools=tools).output_text)
    say("error", failed(lambda: ask(FAIL)))
    with sdk.responses.create(model=MODEL, input=HANG, stream=True) as events:
        for one in events:
            if one.type == "response.output_text.delta":
                break
    say("disconnect", "left")


if __name__ == "__main__":
    {"chat": chat, "responses": responses}[sys.argv[1]](sys.argv[2])
