"""`POST /v1/completions`: held to the budget, and otherwise passed through.

A text completion has no turns. Its prompt is one text, of which nothing may be left out, and code
editors send the text around a cursor, where a desk would be taken for code. So it is counted, and
refused with the numbers where it is over the budget (DESIGN 1.1, CASES B5). Nothing is recorded: an
editor asks anew with every pause of its user, and what it sends is a file and not a conversation.

A body in which no prompt can be found goes on as it came; its upstream says what is wrong with it.

Source: OpenAI API reference, "Create completion": a prompt is a text, a list of texts, of tokens or
of lists of tokens; each of a list is a prompt of its own.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from gateway.body import decoded, read_body
from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.routes.governed import OFF_LOOP_BYTES, policy
from gateway.routes.passthrough import PassThrough
from gateway.routing import Target
from gateway.wire.reading import positive
from governor.budget import allowed_tokens, settled
from governor.counting import MessageCounter
from governor.errors import BudgetTooSmall
from library.records import OwnSettings

PATH = "/completions"
PROMPTS_MAX = 2_048
"""OpenAI's own bound for a list; what stands behind it is not looked at."""


class Completions:
    """The ASGI app of the route."""

    def __init__(self, gateway: Gateway, pass_through: PassThrough) -> None:
        self._gateway = gateway
        self._pass_through = pass_through

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        settings, visit = self._gateway.settings, visit_of(scope)
        headers = {name.lower(): value for name, value in Headers(scope=scope).items()}
        limit_bytes = settings.max_body_bytes
        body = await read_body(receive, limit_bytes=limit_bytes, count=visit.stay.take_bytes)
        plain = body
        if "content-encoding" in headers:
            plain = await decoded(body, headers["content-encoding"], limit_bytes=limit_bytes)
        is_large = len(plain) > OFF_LOOP_BYTES
        fields = await asyncio.to_thread(_fields, plain) if is_large else _fields(plain)
        told = [] if fields is None else await self._checked(scope, headers, fields, len(plain))
        await self._pass_through(scope, _again(body, receive), _telling(send, told))

    async def _checked(
        self, scope: Scope, headers: Mapping[str, str], fields: Mapping[str, Any], size_bytes: int
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers that tell what the prompt counts.

        Raises:
            BudgetTooSmall: it is over the budget.

        """
        _, routing, _ = self._gateway.opened()
        principal = visit_of(scope).principal
        target = routing.target(fields["model"], principal)
        asked = policy(self._gateway.settings, target, principal, headers)
        governing = settled(asked, OwnSettings())
        budget = allowed_tokens(governing, reply_tokens=positive(fields.get("max_tokens")))
        counter = self._counter(target)
        texts = [text for prompt in _prompts(fields) for text in prompt if isinstance(text, str)]
        await counter.prime(texts, ())

        def counted() -> int:
            return max((_tokens(prompt, counter) for prompt in _prompts(fields)), default=0)

        is_large = size_bytes > OFF_LOOP_BYTES
        needed = await asyncio.to_thread(counted) if is_large else counted()
        if needed > budget and not governing.is_observe:
            raise BudgetTooSmall(
                needed_tokens=needed, budget_tokens=budget, parts={"prompt": needed}
            )
        return [
            (b"x-library-prompt-tokens", str(needed).encode()),
            (b"x-library-budget-tokens", str(budget).encode()),
        ]

    def _counter(self, target: Target) -> MessageCounter:
        return self._gateway.counters.counter_for(
            target.model.name,
            tokenizer=target.model.tokenizer or None,
            upstream=target.upstream.name,
            upstream_count=target.upstream.count_tokens,
        )


def _fields(body: bytes) -> dict[str, Any] | None:
    """Return the request in a body; None: there is none to be counted."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    is_asked = isinstance(fields, dict) and isinstance(fields.get("model"), str)
    return fields if is_asked else None


def _prompts(fields: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the parts of each prompt: texts, and tokens."""
    prompt, suffix = fields.get("prompt"), fields.get("suffix")
    given = prompt if isinstance(prompt, list) else [prompt]
    if any(isinstance(one, int) for one in given):
        given = [given]
    for one in given[:PROMPTS_MAX]:
        yield (*(one if isinstance(one, list) else [one]), suffix)


def _tokens(prompt: tuple[Any, ...], counter: MessageCounter) -> int:
    texts = sum(counter.count(part) for part in prompt if isinstance(part, str))
    return texts + sum(isinstance(part, int) for part in prompt)


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
