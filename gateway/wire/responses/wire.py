"""The Responses protocol as a `Wire`. Pure."""

from gateway.wire.protocol import Wire
from gateway.wire.responses import message
from gateway.wire.responses.reply import EventReader, read_body, reply_of
from gateway.wire.responses.request import decode, encode, with_past
from gateway.wire.responses.shape import error_body, error_event, rewritten_error
from gateway.wire.sse import Marks

RESPONSES = Wire(
    name="responses",
    path="/responses",
    items="input",
    dialect=message,
    count_path="/responses/input_tokens",
    count_body=lambda tokens: {"object": "response.input_tokens", "input_tokens": tokens},
    decode=decode,
    encode=encode,
    headers={},
    reader=EventReader,
    read_body=read_body,
    reply_of=reply_of,
    marks=Marks(
        end_starts=(
            b'{"type":"response.completed"',
            b'{"type": "response.completed"',
            b'{"type":"response.incomplete"',
            b'{"type": "response.incomplete"',
            b'{"type":"response.failed"',
            b'{"type": "response.failed"',
        ),
        error_starts=(
            b'{"type":"error"',
            b'{"type": "error"',
            b'{"error"',
            b'{"type":"response.failed"',
            b'{"type": "response.failed"',
        ),
        end_names=frozenset({b"response.completed", b"response.incomplete", b"response.failed"}),
        error_names=frozenset({b"error", b"response.failed"}),
    ),
    rewritten_error=rewritten_error,
    error_body=error_body,
    error_event=error_event,
    with_past=with_past,
)
