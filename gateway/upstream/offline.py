"""The upstream that needs no account, no download and no network: it quotes what it is sent.

What it says is decided in offline_answer.py; here it gets the shape of OpenAI's API (in
offline_messages.py of Anthropic's), so that everything between a client and a model can be seen and
tested without one. Equal requests get equal bytes: ids come from the request, and time stands
still.

`offline_app` serves it over HTTP, with a window that refuses what is longer, as a small model's
server does.
"""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from http import HTTPStatus
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.upstream.offline_answer import Call, OfflineAnswer, answer_to
from gateway.upstream.offline_messages import OfflineMessage, conversation
from gateway.upstream.offline_text import OfflineText
from gateway.upstream.offline_text import conversation as conversation_in
from gateway.upstream.protocol import UpstreamRequest
from gateway.upstream.speaking import Speaking
from gateway.wire.chat.request import has_usage_chunk
from gateway.wire.chat.wire import CHAT
from gateway.wire.completions.wire import COMPLETIONS
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.protocol import ClientRequest, MalformedRequest, PromptCache, Refusal, Wire
from gateway.wire.wires import wire_of
from governor.counting import Counters, MessageCounter
from governor.errors import MalformedTranscript

MODEL = "offline"
CREATED = 1_750_000_000
"""A fixed second, so that equal requests get equal answers."""
CHOICES_MAX = 8
BODY_BYTES_MAX = 2**20
"""No answer of quotations is nearly so long."""
ARGUMENT_CHARS = 12
"""Of a tool call's arguments in one event, so that clients must join them."""

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_PIECES = re.compile(r"\s*\S+|\s+")


class _Refused(Exception):
    """The request gets an error for an answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(slots=True)
class OfflineReply:
    """An answer that is there already."""

    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: list[bytes] = field(default_factory=list)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        self.pieces = []


class OfflineUpstream:
    """Answers by quoting; implements `gateway.upstream.protocol.Upstream`."""

    def __init__(
        self, name: str = MODEL, *, counters: Counters, window_tokens: int | None = None
    ) -> None:
        self.name = name
        self.speaks: frozenset[str] | None = frozenset({CHAT.name, MESSAGES.name})
        self.caches: Mapping[str, PromptCache] = {}
        self._counter = counters.counter_for(MODEL)
        self._text_counter = counters.counter_for(MODEL, is_text=True)
        self._window_tokens = window_tokens

    async def open(self, request: UpstreamRequest) -> OfflineReply:
        """Return the answer; nothing can fail on the way."""
        path = request.path.partition("?")[0].rstrip("/")
        try:
            return self._answer(request, path)
        except _Refused as refused:
            return _json_reply(refused.refusal.status, wire_of(path).error_body(refused.refusal))

    async def count_tokens(self, text: str) -> int | None:
        return self._counter.count(text)

    async def probe(self) -> str | None:
        return None

    async def close(self) -> None:
        return None

    def _answer(self, request: UpstreamRequest, path: str) -> OfflineReply:
        if path == CHAT.path and request.method == "POST":
            return self._completion(request.body)
        if path == MESSAGES.path and request.method == "POST":
            return self._message(request.body)
        if path == COMPLETIONS.path and request.method == "POST":
            return self._text(request.body)
        if path == MESSAGES.count_path and request.method == "POST":
            tokens = self._prompt_tokens(_read(MESSAGES, request.body))
            return _json_reply(HTTPStatus.OK, MESSAGES.count_body(tokens))
        if path == "/models" and request.method == "GET":
            return _json_reply(HTTPStatus.OK, {"object": "list", "data": [_MODEL_CARD]})
        if path == f"/models/{MODEL}" and request.method == "GET":
            return _json_reply(HTTPStatus.OK, _MODEL_CARD)
        raise _Refused(
            Refusal(
                HTTPStatus.NOT_FOUND,
                f"Invalid URL ({request.method} /v1{path}): the offline upstream only completes",
                type="invalid_request_error",
                code="not_found",
            )
        )

    def _completion(self, body: bytes) -> OfflineReply:
        request = _read(CHAT, body)
        prompt_tokens = self._prompt_tokens(request)
        self._check_window(prompt_tokens, request.reply_tokens)
        completion = _Completion(
            request=request,
            body_digest=blake2b(body, digest_size=12).hexdigest(),
            **self._said(answer_to(request.fields), request.reply_tokens),
        )
        count = completion.choice_count
        completion.usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion.reply_tokens * count,
            "total_tokens": prompt_tokens + completion.reply_tokens * count,
        }
        if not request.is_stream:
            return _json_reply(HTTPStatus.OK, completion.whole())
        return _streamed(completion.events())

    def _message(self, body: bytes) -> OfflineReply:
        request = _read(MESSAGES, body)
        prompt_tokens = self._prompt_tokens(request)
        self._check_window(prompt_tokens, request.reply_tokens)
        message = OfflineMessage(
            model=request.model,
            body_digest=blake2b(body, digest_size=12).hexdigest(),
            prompt_tokens=prompt_tokens,
            **self._said(answer_to(conversation(request)), request.reply_tokens),
        )
        if not request.is_stream:
            return _json_reply(HTTPStatus.OK, message.whole())
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        return OfflineReply(HTTPStatus.OK, headers, list(message.events()))

    def _text(self, body: bytes) -> OfflineReply:
        request = _read(COMPLETIONS, body)
        prompt_tokens = self._prompt_tokens(request, self._text_counter)
        self._check_window(prompt_tokens, request.reply_tokens)
        given = request.fields["prompt"]
        prompt = given if isinstance(given, str) else given[0]
        said = self._said(answer_to(conversation_in(prompt)), request.reply_tokens)
        digest = blake2b(body, digest_size=12).hexdigest()
        answer = OfflineText(
            fields=request.fields,
            head=_head(f"cmpl-{digest}", "text_completion", request.model),
            text=said["answer"].text,
            finish_reason=said["finish_reason"],
            prompt_tokens=prompt_tokens,
            reply_tokens=said["reply_tokens"],
        )
        if not request.is_stream:
            return _json_reply(HTTPStatus.OK, answer.whole())
        return _streamed(answer.events())

    def _prompt_tokens(self, request: ClientRequest, counter: MessageCounter | None = None) -> int:
        counter = counter or self._counter
        tokens = sum(map(counter.message, request.messages))
        return counter.prompt_overhead_tokens + counter.schemas(request.schemas) + tokens

    def _check_window(self, prompt_tokens: int, reply_tokens: int | None) -> None:
        """Refuse what does not fit, in OpenAI's words."""
        window = self._window_tokens
        reply = reply_tokens or 0
        if window is None or prompt_tokens + reply <= window:
            return
        had = f"your messages resulted in {prompt_tokens} tokens"
        if reply:
            had = (
                f"you requested {prompt_tokens + reply} tokens ({prompt_tokens} in the messages, "
                f"{reply} in the completion)"
            )
        raise _Refused(
            Refusal(
                HTTPStatus.BAD_REQUEST,
                f"This model's maximum context length is {window} tokens. However, {had}. Please "
                "reduce the length of the messages.",
                type="invalid_request_error",
                code="context_length_exceeded",
                param="messages",
                needed_tokens=prompt_tokens + reply,
                budget_tokens=window,
            )
        )

    def _said(self, answer: OfflineAnswer, reply_tokens: int | None) -> dict[str, Any]:
        """Return the answer as far as the client's maximum lets it go."""
        if answer.calls:
            tokens = sum(
                self._counter.count(call.name) + self._counter.count(call.arguments)
                for call in answer.calls
            )
            return {"answer": answer, "finish_reason": "tool_calls", "reply_tokens": tokens}
        text, finish = answer.text, "stop"
        if reply_tokens is not None and self._counter.count(text) > reply_tokens:
            text, finish = "", "length"
            for piece in _PIECES.findall(answer.text):
                if self._counter.count(text + piece) > reply_tokens:
                    break
                text += piece
        return {
            "answer": OfflineAnswer(text),
            "finish_reason": finish,
            "reply_tokens": self._counter.count(text),
        }


@dataclass(slots=True)
class _Completion:
    """One answer on its way into OpenAI's shapes."""

    request: ClientRequest
    body_digest: str
    answer: OfflineAnswer
    finish_reason: str
    reply_tokens: int
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def choice_count(self) -> int:
        count = self.request.fields.get("n")
        return max(1, min(count, CHOICES_MAX)) if isinstance(count, int) else 1

    def whole(self) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": self.answer.text or None}
        message |= {"refusal": None, "annotations": []}
        if self.answer.calls:
            message["tool_calls"] = [
                self._call(at, call) for at, call in enumerate(self.answer.calls)
            ]
        choice = {"message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return {
            **self._head("chat.completion"),
            "choices": [{"index": index, **choice} for index in range(self.choice_count)],
            "usage": self.usage,
        }

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of a stream, `[DONE]` not among them."""
        head = self._head("chat.completion.chunk")
        if has_usage_chunk(self.request):
            head["usage"] = None
        for index in range(self.choice_count):
            for delta in self._deltas():
                yield {**head, "choices": [_chunk_choice(index, delta, None)]}
            yield {**head, "choices": [_chunk_choice(index, {}, self.finish_reason)]}
        if has_usage_chunk(self.request):
            yield {**head, "choices": [], "usage": self.usage}

    def _deltas(self) -> Iterator[dict[str, Any]]:
        if not self.answer.calls:
            yield {"role": "assistant", "content": ""}
            for piece in _PIECES.findall(self.answer.text):
                yield {"content": piece}
            return
        yield {"role": "assistant", "content": None}
        for at, call in enumerate(self.answer.calls):
            opening = self._call(at, Call(call.name, ""))
            yield {"tool_calls": [{"index": at, **opening}]}
            for start in range(0, len(call.arguments), ARGUMENT_CHARS):
                part = call.arguments[start : start + ARGUMENT_CHARS]
                yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}

    def _call(self, at: int, call: Call) -> dict[str, Any]:
        return {
            "id": f"call_{self.body_digest[:16]}{at:02}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return _head(f"chatcmpl-{self.body_digest}", kind, self.request.model)


_MODEL_CARD: Mapping[str, Any] = {
    "id": MODEL,
    "object": "model",
    "created": CREATED,
    "owned_by": "library-of-context",
}


def _head(identifier: str, kind: str, model: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "object": kind,
        "created": CREATED,
        "model": model,
        "system_fingerprint": MODEL,
    }


def _chunk_choice(index: int, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def _read(wire: Wire, body: bytes) -> ClientRequest:
    """Return the request in a body.

    Raises:
        _Refused: it is none.

    """
    try:
        return wire.decode(body, None)
    except MalformedRequest as error:
        raise _invalid(str(error), error.param) from error
    except MalformedTranscript as error:
        raise _invalid(str(error), wire.items) from error


def _invalid(message: str, param: str | None) -> _Refused:
    kind = "invalid_request_error"
    status = HTTPStatus.BAD_REQUEST
    return _Refused(Refusal(status, message, type=kind, code="invalid_request", param=param))


def _json_reply(status: int, value: Any) -> OfflineReply:
    return OfflineReply(status, [(b"content-type", b"application/json")], [orjson.dumps(value)])


def _streamed(events: Iterable[dict[str, Any]]) -> OfflineReply:
    pieces = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
    headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    return OfflineReply(HTTPStatus.OK, headers, [*pieces, b"data: [DONE]\n\n"])


def offline_app(*, window_tokens: int | None = None) -> Starlette:
    """Return a server of this upstream under `/v1`."""
    upstream = OfflineUpstream(counters=Counters(), window_tokens=window_tokens)
    speaking = Speaking(limit_bytes=BODY_BYTES_MAX)

    async def serve(request: Request) -> Response:
        path = request.url.path.removeprefix("/v1")
        reply = await speaking.upstream_for(wire_of(path).name, upstream).open(
            UpstreamRequest(
                method=request.method,
                path=path,
                headers=dict(request.headers),
                body=await request.body(),
            )
        )
        response = StreamingResponse(reply.chunks(), status_code=reply.status)
        response.raw_headers.extend(reply.headers)
        return response

    return Starlette(routes=[Route("/{path:path}", serve, methods=list(_METHODS))])
