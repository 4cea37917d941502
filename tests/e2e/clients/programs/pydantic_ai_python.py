"""pydantic-ai: chat completions, responses and messages, each by its own provider."""

import asyncio
import sys
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
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


def model_of(protocol: str, base_url: str) -> Any:
    options: Any = {"base_url": base_url, "api_key": KEY, "max_retries": 0}
    if protocol == "messages":
        return AnthropicModel(
            MODEL, provider=AnthropicProvider(anthropic_client=AsyncAnthropic(**options))
        )
    kind = OpenAIChatModel if protocol == "chat" else OpenAIResponsesModel
    return kind(MODEL, provider=OpenAIProvider(openai_client=AsyncOpenAI(**options)))


async def main(protocol: str, base_url: str) -> None:
    agent: Any = Agent(model_of(protocol, base_url))

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        return weather(city)

    done = await agent.run(FACT)
    for turn in range(TURNS):
        done = await agent.run(filler(turn), message_history=done.all_messages())
    say("chat", done.output, messages=len(done.all_messages()))
    done = await agent.run(QUESTION, message_history=done.all_messages())
    say("recall", done.output)
    async with agent.run_stream(COUNT) as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    say("stream", "".join(pieces), pieces=len(pieces))
    say("tools", (await agent.run(WEATHER)).output)
    try:
        await agent.run(FAIL)
        say("error", "no error")
    except Exception as error:  # noqa: BLE001 - whatever the client makes of it is the answer
        say("error", f"{type(error).__name__}: {error}")
    hung = asyncio.ensure_future(agent.run(HANG))
    async with agent.run_stream(HANG) as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            break
    hung.cancel()
    say("disconnect", "left")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
