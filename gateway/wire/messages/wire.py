"""Anthropic's Messages API as a `Wire`. Pure."""

from gateway.wire.messages import message
from gateway.wire.messages.reply import EventReader, read_body, reply_of
from gateway.wire.messages.request import decode, encode
from gateway.wire.messages.shape import error_body, error_event, rewritten_error
from gateway.wire.protocol import Wire
from gateway.wire.sse import Marks

MESSAGES = Wire(
    name="messages",
    path="/messages",
    items="messages",
    dialect=message,
    count_path="/messages/count_tokens",
    count_body=lambda tokens: {"input_tokens": tokens},
    decode=decode,
    encode=encode,
    headers={"anthropic-version": "2023-06-01"},  # Who names none knows no newer one.
    reader=EventReader,
    read_body=read_body,
    reply_of=reply_of,
    marks=Marks(
        end_starts=(b'{"type":"message_stop"', b'{"type": "message_stop"'),
        error_starts=(b'{"type":"error"', b'{"type": "error"', b'{"error"', b'{ "error"'),
        end_names=frozenset({b"message_stop"}),
        error_names=frozenset({b"error"}),
    ),
    rewritten_error=rewritten_error,
    error_body=error_body,
    error_event=error_event,
)
