"""The bench's upstream: answers at once, at the least CPU a Python server can have.

`max_tokens` in the body says how many chunks a streamed answer has; each is written by itself,
`CHUNK_GAP_S` after the last one, as a fast model would, so that none can be forwarded together.
"""

import asyncio
import json
import re
import sys
from typing import cast

import httptools
import uvloop

REPLY = "Certainly: the third option is the one that keeps the most room for later changes."
CHUNK_GAP_S = 0.002
_COUNT = re.compile(rb'"max_tokens":\s*(\d+)')


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
    """Return a chunk with one event of Anthropic's Messages API."""
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


class Upstream(asyncio.Protocol):
    """One connection; httptools calls the `on_` methods."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by class, only by what they can do.
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._stream = _CHAT_STREAM

    def on_url(self, url: bytes) -> None:
        self._stream = _MESSAGES_STREAM if url.endswith(b"/messages") else _CHAT_STREAM

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self._body)
        self._body.clear()
        is_stream = b'"stream": true' in body or b'"stream":true' in body
        if not is_stream:
            is_chat = self._stream is _CHAT_STREAM
            self._transport.write(_ANSWER if is_chat else _MESSAGE_ANSWER)
            return
        found = _COUNT.search(body)
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
