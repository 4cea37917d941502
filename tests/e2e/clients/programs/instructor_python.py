"""instructor: chat completions whose answers are objects."""

import sys
from typing import Any

import instructor
import openai
from pydantic import BaseModel
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


class GetWeather(BaseModel):
    """Asks for the weather."""

    city: str


GetWeather.__name__ = "get_weather"


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def main(base_url: str) -> None:
    sdk = openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0)
    able: Any = instructor.from_openai(sdk)

    def ask(talk: list[Any], **more: Any) -> Any:
        more = {"response_model": None, "max_retries": 0} | more
        return able.chat.completions.create(model=MODEL, messages=talk, **more)

    talk = [user(FACT)]
    for turn in range(TURNS):
        text = ask(talk).choices[0].message.content
        talk += [{"role": "assistant", "content": text}, user(filler(turn))]
    text = ask(talk).choices[0].message.content
    say("chat", text, messages=len(talk))
    talk += [{"role": "assistant", "content": text}, user(QUESTION)]
    say("recall", ask(talk).choices[0].message.content)
    chunks = ask([user(COUNT)], stream=True)
    pieces = [one.choices[0].delta.content for one in chunks if one.choices[0].delta.content]
    say("stream", "".join(pieces), pieces=len(pieces))
    asked = ask([user(WEATHER)], response_model=GetWeather)
    say("tools", weather(asked.city))
    say("error", failed(lambda: ask([user(FAIL)], response_model=GetWeather)))
    stream = ask([user(HANG)], stream=True)
    next(iter(stream))
    stream.close()
    say("disconnect", "left")


if __name__ == "__main__":
    main(sys.argv[2])
