"""openai-agents: chat completions and responses."""

import asyncio
import sys
from typing import Any

from agents import (
    Agent,
    Runner,
    function_tool,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
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
    filler,
    say,
    weather,
)


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return weather(city)


async def main(protocol: str, base_url: str) -> None:
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0))
    set_default_openai_api("responses" if protocol == "responses" else "chat_completions")
    agent = Agent(name="a", instructions="Answer.", model=MODEL, tools=[get_weather])

    talk: list[Any] = [{"role": "user", "content": FACT}]
    done = await Runner.run(agent, talk)
    for turn in range(TURNS):
        talk = [*done.to_input_list(), {"role": "user", "content": filler(turn)}]
        done = await Runner.run(agent, talk)
    say("chat", done.final_output, messages=len(talk))
    talk = [*done.to_input_list(), {"role": "user", "content": QUESTION}]
    say("recall", (await Runner.run(agent, talk)).final_output)
    streamed = Runner.run_streamed(agent, COUNT)
    pieces = [
        event.data.delta
        async for event in streamed.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    say("stream", "".join(pieces), pieces=len(pieces))
    say("tools", (await Runner.run(agent, WEATHER)).final_output)
    try:
        await Runner.run(agent, FAIL)
        say("error", "no error")
    except Exception as error:  # noqa: BLE001 - whatever the client makes of it is the answer
        say("error", f"{type(error).__name__}: {error}")
    hung = Runner.run_streamed(agent, HANG)
    async for event in hung.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            break
    hung.cancel()
    say("disconnect", "left")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
