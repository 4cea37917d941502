"""The bench's upstream: answers at once, at the least CPU a Python server can have.

`max_tokens` (`max_output_tokens`) in the body says how many chunks a streamed answer has; each is
written by itself, `CHUNK_GAP_S` after the last one, as a fast model would, so that none can be
forwarded together.
"""

import asyncio
import itertools
import json
import re
import sys
from typing import cast

import httptools
import uvloop

REPLY = "Certainly: the third option is the one that keeps the most room for later changes."
CHUNK_GAP_S = 0.002
_COUNT = re.compile(rb'"max_(?:output_)?tokens":\s*(\d+)')


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    body = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


_WHOLE = json.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": REPLY},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 2200, "completion_tokens": 16, "total_tokens": 2216},
    }
).encode()
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_WHOLE)
) + _WHOLE


def _named(kind: str, **fields: object) -> bytes:
    """Return a chunk with one event of Anthropic's Messages API, or of OpenAI's Responses."""
    data = b"event: %b\ndata: %b\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, **fields}).encode(),
    )
    return b"%x\r\n%b\r\n" % (len(data), data)


_MESSAGE: dict[str, object] = {
    "id": "msg_bench",
    "type": "message",
    "role": "assistant",
    "model": "bench",
    "content": [{"type": "text", "text": REPLY}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 2200, "output_tokens": 16},
}
_WHOLE_MESSAGE = json.dumps(_MESSAGE).encode()
_MESSAGE_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    % len(_WHOLE_MESSAGE)
) + _WHOLE_MESSAGE
_NUMBER = b"00000000"
"""Stands for the number of an answer: no two responses have an id in common."""
_PART = {"type": "output_text", "text": REPLY, "annotations": [], "logprobs": []}
_ITEM: dict[str, object] = {
    "id": f"msg_{_NUMBER.decode()}",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [_PART],
}
_RESPONSE: dict[str, object] = {
    "id": f"resp_{_NUMBER.decode()}",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "model": "bench",
    "output": [_ITEM],
    "tools": [],
    "usage": {"input_tokens": 2200, "output_tokens": 16, "total_tokens": 2216},
}
_WHOLE_RESPONSE = json.dumps(_RESPONSE).encode()
_RESPONSE_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    % len(_WHOLE_RESPONSE)
) + _WHOLE_RESPONSE
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_FIRST = _chunk({"role": "assistant", "content": ""})
_WORD = _chunk({"content": " word"})
_LAST = _chunk({}, "stop")
_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_CHAT_STREAM = (_FIRST, _WORD, _LAST + _END)
_MESSAGES_STREAM = (
    _named("message_start", message=_MESSAGE | {"content": [], "stop_reason": None})
    + _named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    _named("content_block_delta", index=0, delta={"type": "text_delta", "text": " word"}),
    _named("content_block_stop", index=0)
    + _named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 16})
    + _named("message_stop")
    + b"0\r\n\r\n",
)
_BEGUN = _RESPONSE | {"status": "in_progress", "output": [], "usage": None}
_PLACE: dict[str, object] = {
    "item_id": _ITEM["id"],
    "output_index": 0,
    "content_index": 0,
    "sequence_number": 4,
}
_RESPONSES_STREAM = (
    _named("response.created", sequence_number=0, response=_BEGUN)
    + _named("response.in_progress", sequence_number=1, response=_BEGUN)
    + _named(
        "response.output_item.added",
        sequence_number=2,
        output_index=0,
        item=_ITEM | {"status": "in_progress", "content": []},
    )
    + _named("response.content_part.added", **_PLACE, part=_PART | {"text": ""}),
    _named("response.output_text.delta", **_PLACE, delta=" word", logprobs=[]),
    _named("response.output_text.done", **_PLACE, text=REPLY, logprobs=[])
    + _named("response.content_part.done", **_PLACE, part=_PART)
    + _named("response.output_item.done", sequence_number=7, output_index=0, item=_ITEM)
    + _named("response.completed", sequence_number=8, response=_RESPONSE)
    + b"0\r\n\r\n",
)
_SPOKEN = {
    b"/messages": (_MESSAGE_ANSWER, _MESSAGES_STREAM),
    b"/responses": (_RESPONSE_ANSWER, _RESPONSES_STREAM),
}
"""End of a path -> the whole answer, and the stream's first, middle and last chunk."""
_CHAT_SPOKEN = (_ANSWER, _CHAT_STREAM)
_numbers = itertools.count()


class Upstream(asyncio.Protocol):
    """One connection; httptools calls the `on_` methods."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by class, only by what they can do.
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._spoken = _SPOKEN.get(url[url.rfind(b"/") :], _CHAT_SPOKEN)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self._body)
        self._body.clear()
        is_stream = b'"stream": true' in body or b'"stream":true' in body
        whole, stream = self._spoken
        number = b"%08d" % next(_numbers)
        if not is_stream:
            self._transport.write(whole.replace(_NUMBER, number))
            return
        found = _COUNT.search(body)
        self._stream = [one.replace(_NUMBER, number) for one in stream]
        self._transport.write(_STREAM_HEAD + self._stream[0])
        self._next_chunk(max(int(found[1]) - 2, 0) if found else 10)

    def _next_chunk(self, left: int) -> None:
        if self._transport.is_closing():
            return
        if left == 0:
            self._transport.write(self._stream[2])
            return
        self._transport.write(self._stream[1])
        asyncio.get_running_loop().call_later(CHUNK_GAP_S, self._next_chunk, left - 1)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
