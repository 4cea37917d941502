"""Text completions as a `Wire`. Pure."""

from dataclasses import replace
from functools import partial

from gateway.wire.chat.shape import rewritten_error
from gateway.wire.chat.wire import CHAT
from gateway.wire.completions import message
from gateway.wire.completions.reply import TextReader, read_body
from gateway.wire.completions.request import PROMPT, decode, encode

COMPLETIONS = replace(
    CHAT,
    name="completions",
    path="/completions",
    items=PROMPT,
    dialect=message,
    decode=decode,
    encode=encode,
    reader=TextReader,
    read_body=read_body,
    rewritten_error=partial(rewritten_error, items=PROMPT),
    is_text=True,
)
