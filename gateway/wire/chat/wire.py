"""Chat completions as a `Wire`. Pure."""

from gateway.wire.chat import message
from gateway.wire.chat.reply import ChunkReader, read_body, reply_of
from gateway.wire.chat.request import decode, encode
from gateway.wire.chat.shape import error_body, error_event, rewritten_error
from gateway.wire.protocol import Wire
from gateway.wire.sse import Marks

CHAT = Wire(
    name="chat",
    path="/chat/completions",
    items="messages",
    dialect=message,
    count_path="",
    count_body=lambda tokens: {"prompt_tokens": tokens},
    decode=decode,
    encode=encode,
    headers={},
    reader=ChunkReader,
    read_body=read_body,
    reply_of=reply_of,
    marks=Marks(
        end_starts=(b"[DONE]",),
        error_starts=(
            b'{"error"',
            b'{ "error"',
            b'{"object":"error"',
            b'{"object": "error"',
            b'{"type":"error"',
            b'{"type": "error"',
        ),
    ),
    rewritten_error=rewritten_error,
    error_body=error_body,
    error_event=error_event,
)
