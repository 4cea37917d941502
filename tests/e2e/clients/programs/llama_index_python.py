"""llama-index with OpenAILike: chat completions."""

import sys
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
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


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def main(base_url: str) -> None:
    model: Any = OpenAILike(
        model=MODEL,
        api_base=base_url,
        api_key=KEY,
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=100_000,
        max_retries=0,
    )
    talk = [user(FACT)]
    for turn in range(TURNS):
        talk += [model.chat(talk).message, user(filler(turn))]
    reply = model.chat(talk)
    say("chat", reply.message.content, messages=len(talk))
    talk += [reply.message, user(QUESTION)]
    say("recall", model.chat(talk).message.content)
    pieces = [one.delta for one in model.stream_chat([user(COUNT)]) if one.delta]
    say("stream", "".join(pieces), pieces=len(pieces))
    tool = FunctionTool.from_defaults(weather, name="get_weather")
    asked = [user(WEATHER)]
    reply = model.chat_with_tools([tool], chat_history=asked)
    asked.append(reply.message)
    for call in model.get_tool_calls_from_response(reply):
        more = {"tool_call_id": call.tool_id}
        result = weather(**call.tool_kwargs)
        asked.append(ChatMessage(role="tool", content=result, additional_kwargs=more))
    say("tools", model.chat(asked).message.content)
    say("error", failed(lambda: model.chat([user(FAIL)])))
    stream = model.stream_chat([user(HANG)])
    while not next(stream).delta:
        pass
    stream.close()
    say("disconnect", "left")


if __name__ == "__main__":
    main(sys.argv[2])
