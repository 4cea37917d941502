"""A Responses client on an upstream that has chat completions only: llama.cpp, Ollama, litellm's
providers, the offline upstream. Pure."""

import orjson

from gateway.wire.chat.wire import CHAT
from gateway.wire.crossing.chat_reply import ChatReply
from gateway.wire.crossing.frame import CrossedStream, Crossing
from gateway.wire.crossing.responses_reply import ResponseBuilder, ResponseStream
from gateway.wire.crossing.responses_request import chat_request
from gateway.wire.crossing.tool_names import tool_names
from gateway.wire.lenient import loaded
from gateway.wire.responses.wire import RESPONSES


class ResponsesExchange:
    """The translation of one exchange; see `frame.CrossedExchange`."""

    def __init__(self, body: bytes, identifier: str) -> None:
        self._fields = orjson.loads(body)
        self._id = f"resp_{identifier}"
        self.is_stream = self._fields.get("stream") is True
        self.body = orjson.dumps(chat_request(self._fields))

    def _builder(self) -> ResponseBuilder:
        return ResponseBuilder(self._fields, self._id, tool_names(self._fields))

    def whole(self, body: bytes, _status: int) -> bytes:
        """Return a whole answer as a response; an error, or what is no answer, as it is: error
        bodies have one shape in both protocols."""
        fields, _ = loaded(body)
        if not isinstance(fields, dict) or not isinstance(fields.get("choices"), list):
            return body
        builder = self._builder()
        builder.take(ChatReply().whole(body))
        return orjson.dumps(builder.response())

    def stream(self) -> CrossedStream:
        """Return the translation of a streamed answer."""
        return ResponseStream(self._builder())


RESPONSES_ON_CHAT = Crossing(
    client=RESPONSES.name,
    upstream=CHAT.name,
    path=CHAT.path,
    exchange=ResponsesExchange,
)
