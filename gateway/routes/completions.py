"""`POST /v1/completions`: a text that goes on is governed like a chat, any other prompt is held to
the budget and passed through.

The pieces of a text stand for messages (gateway/wire/completions). Where nothing may be left out of
a prompt - text around a cursor, tokens, several prompts, one that the answer repeats - it is
counted, refused with the numbers where it is over the budget (DESIGN 1.1, CASES B5), and not
recorded: it is a file or a measurement, and not a conversation.

What is wrong with a request, its upstream says. But what cannot be read here, another parser may
read, and not every server wants a model's name: what is not understood is counted as text.

Source: OpenAI API reference, "Create completion": a prompt is a text, a list of texts, of tokens or
of lists of tokens; each of a list is a prompt of its own. llama.cpp takes no name of a model, mixed
lists, and objects (`prompt_string`) too.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.routes.governed import OFF_LOOP_BYTES, Governed, policy, received
from gateway.routes.passthrough import PassThrough
from gateway.wire.completions.wire import COMPLETIONS
from gateway.wire.lenient import dumped, loaded, mended
from gateway.wire.protocol import MalformedRequest
from gateway.wire.reading import MODEL_CHARS_MAX, positive
from governor.budget import allowed_tokens, settled
from governor.counting import MessageCounter
from governor.errors import BudgetTooSmall
from library.records import OwnSettings


class Completions:
    """The ASGI app of the route."""

    def __init__(self, gateway: Gateway, pass_through: PassThrough) -> None:
        self._gateway = gateway
        self._governed = Governed(gateway, COMPLETIONS)
        self._pass_through = pass_through

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit_bytes = self._gateway.settings.max_body_bytes
        body, plain = await received(scope, receive, limit_bytes=limit_bytes)
        try:
            request = await self._governed.decoded(plain)
        except MalformedRequest:
            await self._hold(scope, receive, send, body, plain)
            return
        turn = await self._governed.turn_of(scope, plain, request)
        _, _, relay = self._gateway.opened()
        await relay.run(turn, receive, send)

    async def _hold(
        self, scope: Scope, receive: Receive, send: Send, body: bytes, plain: bytes
    ) -> None:
        """Pass a request through if its prompts are within the budget; `plain` is its body decoded.

        Raises:
            BudgetTooSmall: one of them is over it.

        """
        is_large = len(plain) > OFF_LOOP_BYTES
        asked = await asyncio.to_thread(_asked, plain) if is_large else _asked(plain)
        told = await self._checked(scope, asked, is_large=is_large)
        await self._pass_through(scope, _again(body, receive), _telling(send, told))

    async def _checked(
        self, scope: Scope, asked: "_Asked", *, is_large: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers that tell what the prompt counts.

        Raises:
            BudgetTooSmall: it is over the budget.

        """
        _, routing, _ = self._gateway.opened()
        principal = visit_of(scope).principal
        target = routing.target(asked.model, principal)
        governing = settled(
            policy(self._gateway.settings, target, principal, Headers(scope=scope)), OwnSettings()
        )
        budget = allowed_tokens(governing, reply_tokens=asked.reply_tokens)
        counter = self._gateway.counter_of(target, is_text=True)
        await counter.prime([text for prompt in asked.prompts for text in prompt.texts], ())

        def counted() -> int:
            return max((_tokens(prompt, counter) for prompt in asked.prompts), default=0)

        needed = await asyncio.to_thread(counted) if is_large else counted()
        if needed > budget and not governing.is_observe:
            raise BudgetTooSmall(
                needed_tokens=needed, budget_tokens=budget, parts={"prompt": needed}
            )
        return [
            (b"x-library-prompt-tokens", str(needed).encode()),
            (b"x-library-budget-tokens", str(budget).encode()),
        ]


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What stands in one prompt."""

    texts: list[str]
    token_count: int
    """Of tokens that the client sent as such."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What of a request is looked at."""

    model: str
    """"": it names none that is one."""
    reply_tokens: int | None
    prompts: list[_Prompt]


def _asked(body: bytes) -> _Asked:
    """Return the request in a body; what cannot be read is one prompt."""
    fields, is_torn = loaded(body)
    if is_torn:
        fields = mended(fields)
    if not isinstance(fields, dict):
        return _Asked("", None, [_prompt([body.decode("utf-8", "replace")])])
    model, given = fields.get("model"), fields.get("prompt")
    is_named = isinstance(model, str) and len(model) <= MODEL_CHARS_MAX
    given = given if isinstance(given, list) else [given]
    if any(isinstance(one, int) for one in given):
        given = [given]
    suffix = fields.get("suffix")
    return _Asked(
        str(model) if is_named else "",
        positive(fields.get("max_tokens")),
        [_prompt([*(one if isinstance(one, list) else [one]), suffix]) for one in given],
    )


def _prompt(parts: Iterable[Any]) -> _Prompt:
    texts, token_count = [], 0
    for part in parts:
        if isinstance(part, int):
            token_count += 1
        elif part is not None:
            texts.append(part if isinstance(part, str) else dumped(part))
    return _Prompt(texts, token_count)


def _tokens(prompt: _Prompt, counter: MessageCounter) -> int:
    return sum(map(counter.count, prompt.texts)) + prompt.token_count


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a request that has been read as one that has not."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _telling(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    """Return a `send` that adds headers to an answer."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return sent
