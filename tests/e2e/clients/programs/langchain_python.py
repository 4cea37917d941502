"""langchain-openai for Python: chat completions and responses."""

import sys
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
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


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return weather(city)


def main(protocol: str, base_url: str) -> None:
    model: Any = ChatOpenAI(
        model=MODEL,
        base_url=base_url,
        api_key=KEY,
        max_retries=0,
        use_responses_api=protocol == "responses",
    )
    talk: list[BaseMessage] = [HumanMessage(FACT)]
    for turn in range(TURNS):
        talk += [model.invoke(talk), HumanMessage(filler(turn))]
    reply = model.invoke(talk)
    say("chat", reply.text, messages=len(talk))
    talk += [reply, HumanMessage(QUESTION)]
    say("recall", model.invoke(talk).text)
    pieces = [one.text for one in model.stream(COUNT) if one.text]
    say("stream", "".join(pieces), pieces=len(pieces))
    able = model.bind_tools([get_weather])
    asked: list[BaseMessage] = [HumanMessage(WEATHER)]
    reply = able.invoke(asked)
    asked += [reply, *(get_weather.invoke(call) for call in reply.tool_calls)]
    say("tools", able.invoke(asked).text)
    say("error", failed(lambda: model.invoke(FAIL)))
    stream = model.stream(HANG)
    while not isinstance(one := next(stream), AIMessage) or not one.text:
        pass
    stream.close()
    say("disconnect", "left")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
