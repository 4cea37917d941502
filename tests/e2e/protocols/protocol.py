"""What a protocol is to a test. Pure."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e import responses_answers
from tests.e2e.answers import STREAM_HEADERS, Answer, Json, Step, completion, json_answer


def named_event(kind: str, **fields: Any) -> bytes:
    """Return one event that says its kind twice, as Anthropic's and OpenAI's newer ones do."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def vendor_keys(message: Json) -> Json:
    """Return the keys of a message that no protocol knows, and each must keep."""
    return {key: value for key, value in message.items() if key.startswith("x_")}


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol."""

    name: str
    path: str
    """Below /v1."""
    items: str
    """The field of a request that has the talk."""
    reply_limit: str
    """The field of a request that bounds the reply, in tokens."""
    request: Callable[[Json], Json]
    """A chat request in this protocol."""
    read: Callable[[Json], Json]
    """The other way round."""
    reply: Callable[[Json], Json]
    """A whole chat completion in this protocol."""
    message: Callable[[Json], Json]
    """The message of a whole reply, in chat's shape."""
    stored: Callable[[Json], Json]
    """One stored message in chat's shape."""
    is_refusal: Callable[[Json], bool]
    """Whether a body is an error in the protocol's shape, with all that its clients read."""
    code: Callable[[Json], Any]
    """Which error a refusal is."""
    violations: Callable[[Json, int | None], list[str]]
    """What is wrong with a request that reached the upstream."""
    begin: bytes
    """The first event of a stream."""
    piece: Callable[[str], bytes]
    """An event with some words."""
    thought: Callable[[str], bytes]
    """Events with some reasoning."""
    fragment: Callable[[int, str, str, str], bytes]
    """Events with a piece of a tool call's arguments: its index, id, name and the piece. The id and
    the name are empty but for the first one."""
    end: tuple[bytes, ...]
    """The events that end a stream well; the last one alone says that it is over."""
    broken: Callable[[str], bytes]
    """An error of the upstream within a stream."""

    def own(self, messages: list[Json]) -> list[Json]:
        """Return messages that stand behind the system text as a client sends them."""
        found: list[Json] = self.request({"messages": messages})[self.items]
        return found

    def own_of_stored(self, body: Json) -> list[Json]:
        """Return one stored message as its client sent it."""
        found: list[Json] = body.get("items", [body])
        return found

    def said(self, text: str) -> Answer:
        """Answer `text`, not streamed."""
        return json_answer(self.reply(completion({"role": "assistant", "content": text})))

    def streamed(self, *steps: Step) -> Answer:
        """Answer with a stream of these steps."""
        return Answer(tuple(steps), headers=STREAM_HEADERS)

    def spoken(self, text: str) -> Answer:
        """Stream `text` word by word."""
        if self.name == "responses":  # Its events are numbered, and the last one has the whole.
            item = responses_answers.spoken(text)
            return responses_answers.streamed_items(item, name=responses_answers.new_name())
        words = text.split(" ")
        pieces = [self.piece(word if at == 0 else f" {word}") for at, word in enumerate(words)]
        return self.streamed(self.begin, *pieces, *self.end)
