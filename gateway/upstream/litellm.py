"""Any provider that litellm knows, spoken to through it. The only importer of litellm.

litellm costs 200 MB and seven seconds to import and some 13 ms of CPU a call, so it is imported in
a worker thread when its first request comes. What it does on its own account is switched off: it
fetches no price table, reads no .env, sends no telemetry, and tries nothing again, since trying
again is ours to decide. What it drops on the way is delivered around it, and its errors, which lose
their code, are rebuilt as OpenAI words them.

Source: litellm 1.110.2, measured; PACKAGES.md lists what it does otherwise.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.upstream.attempts import opened
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamReply, UpstreamRequest
from gateway.wire.protocol import PromptCache

_SWITCHES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_UNDERSTOOD = frozenset(
    {
        *("messages", "temperature", "top_p", "n", "stop", "max_tokens", "max_completion_tokens"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "tools", "tool_choice", "seed"),
        *("response_format", "logprobs", "top_logprobs", "parallel_tool_calls", "functions"),
        *("function_call", "stream", "stream_options", "reasoning_effort", "modalities", "audio"),
        *("prediction", "service_tier", "store", "web_search_options"),
    }
)
"""Fields that litellm takes as arguments; the others travel in `extra_body`."""
_CAUSES_MAX = 10
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


def load() -> Any:
    """Import litellm, all off that it would do on its own. It takes seconds: in a thread."""
    os.environ.update(_SWITCHES)
    import litellm  # noqa: TID251 - the one place

    # It tells of every call, between the turns that we log ourselves.
    logging.getLogger("LiteLLM").setLevel(logging.WARNING)

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


def missing_keys(model: str) -> list[str]:
    """Return the environment variables that `model`'s provider needs and that are not set."""
    return [str(name) for name in load().validate_environment(model)["missing_keys"]]


class LitellmUpstream:
    """One `PROVIDER/MODEL` of litellm's."""

    def __init__(
        self,
        name: str,
        *,
        model: str,
        patience: Patience,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`api_key` None: the provider's own environment variable, else the client's key.
        `options` are further arguments of every call, such as `api_base`."""
        self.name = name
        self.speaks: frozenset[str] | None = frozenset({"chat"})
        is_anthropic = model.startswith("anthropic/")
        self.caches: Mapping[str, PromptCache] = {"chat": "marks"} if is_anthropic else {}
        self._model = model
        self._patience = patience
        self._api_key = api_key
        self._options = dict(options or {})
        self._litellm: Any = None
        self._loading = asyncio.Lock()

    async def open(self, request: UpstreamRequest) -> UpstreamReply:
        path = request.path.partition("?")[0]
        if request.method == "GET" and path == "/models":
            row = {"id": self._model, "object": "model", "created": 0, "owned_by": "litellm"}
            return _whole(200, {"object": "list", "data": [row]})
        if request.method != "POST" or path != "/chat/completions":
            raise UpstreamFailed(
                "unsupported", f"{self.name} serves chat completions only", status=404
            )
        await self._loaded()
        arguments = self._arguments(orjson.loads(request.body), request.headers)
        return await opened(lambda: self._call(arguments), retries=self._patience.retries)

    async def _loaded(self) -> None:
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(load)

    def _arguments(self, fields: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of the call: every field of the request, each on its way."""
        fields.pop("model", None)
        arguments = {key: value for key, value in fields.items() if key in _UNDERSTOOD}
        others = {key: value for key, value in fields.items() if key not in _UNDERSTOOD}
        _, provider, _, _ = self._litellm.get_llm_provider(self._model)
        speaks_openai = (
            provider == "openai" or provider in self._litellm.openai_compatible_providers
        )
        if speaks_openai:
            if others:
                arguments["extra_body"] = others
        else:
            # Another protocol has no room for OpenAI's metadata; the rest is the provider's own.
            others.pop("metadata", None)
            arguments |= others
        key = self._api_key or self._clients_key(headers)
        if key:
            arguments["api_key"] = key
        return arguments | {
            "model": self._model,
            "max_retries": 0,
            "num_retries": 0,
            "timeout": self._patience.first_byte_s,
            **self._options,
        }

    def _clients_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the client's own key, where the provider's variable is not set."""
        if self._litellm.validate_environment(self._model)["keys_in_environment"]:
            return None
        return headers.get("authorization", "").removeprefix("Bearer ") or None

    async def _call(self, arguments: dict[str, Any]) -> "LitellmReply":
        litellm = self._litellm
        try:
            async with asyncio.timeout(self._patience.first_byte_s):
                answer = await litellm.acompletion(**arguments)
        except TimeoutError as error:
            raise UpstreamFailed("timeout", f"{self.name} did not answer", status=504) from error
        except _errors(litellm) as error:
            # litellm calls a refused connection a server's error 500; where it came from is truer.
            causes = [type(one).__name__ for one in _chain(error)]
            if "APITimeoutError" in causes or "Timeout" in causes:
                detail = f"{self.name} did not answer"
                raise UpstreamFailed("timeout", detail, status=504) from error
            if "APIConnectionError" in causes:
                raise UpstreamFailed("refused", f"{self.name} refused: {error}") from error
            return _error(error, is_overflow=_is_overflow(litellm, error))
        if not arguments.get("stream"):
            return _whole(200, _without_nones(answer.model_dump(exclude_none=True)))
        options = arguments.get("stream_options")
        return LitellmReply(
            status=200,
            headers=[(b"content-type", b"text/event-stream; charset=utf-8")],
            stream=_Stream(
                self.name,
                answer,
                litellm,
                idle_s=self._patience.idle_s,
                has_usage=isinstance(options, dict) and options.get("include_usage") is True,
            ),
        )

    async def count_tokens(self, text: str) -> int | None:
        return None

    async def probe(self) -> str | None:
        """Return None: asking a provider anything costs money or needs a key."""
        return None

    async def close(self) -> None:
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()


@dataclass(slots=True)
class LitellmReply:
    """An answer, written as OpenAI writes it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    stream: "_Stream | None" = field(default=None)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        if self.stream is None:
            yield self.body
        else:
            async for event in self.stream.events():
                yield event

    async def aclose(self) -> None:
        if self.stream is not None:
            await self.stream.aclose()


class _Stream:
    """litellm's stream as OpenAI's events; it must be closed, or the provider goes on."""

    def __init__(
        self, name: str, stream: Any, litellm: Any, *, idle_s: float, has_usage: bool
    ) -> None:
        self._name = name
        self._stream = stream
        self._litellm = litellm
        self._idle_s = idle_s
        self._has_usage = has_usage

    async def events(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                async with asyncio.timeout(self._idle_s):
                    chunk = await anext(self._stream, None)
                if chunk is None:
                    break
                yield b"data: " + orjson.dumps(self._written(chunk)) + b"\n\n"
        except TimeoutError as error:
            raise UpstreamFailed(
                "timeout", f"{self._name} was silent for {self._idle_s:g} s", status=504
            ) from error
        except _errors(self._litellm) as error:
            raise UpstreamFailed("broken", f"{self._name} broke off: {error}") from error
        yield b"data: [DONE]\n\n"

    def _written(self, chunk: Any) -> dict[str, Any]:
        fields: dict[str, Any] = _without_nones(chunk.model_dump(exclude_none=True))
        for choice in fields.get("choices", ()):
            choice.setdefault("delta", {})
            choice.setdefault("finish_reason", None)
        if self._has_usage:
            fields.setdefault("usage", None)
        return fields

    async def aclose(self) -> None:
        await self._stream.aclose()


def _whole(status: int, value: object) -> LitellmReply:
    return LitellmReply(status, [(b"content-type", b"application/json")], orjson.dumps(value))


def _without_nones(fields: dict[str, Any]) -> dict[str, Any]:
    """Return litellm's fields without those of its own, and with what OpenAI always has."""
    fields.pop("provider_specific_fields", None)
    for choice in fields.get("choices", ()):
        message = choice.get("message")
        if message is not None:
            message.setdefault("content", None)
    return fields


def _errors(litellm: Any) -> tuple[type[Exception], ...]:
    """Return what litellm raises: OpenAI's errors and its own copies of them."""
    return (litellm.exceptions.openai.OpenAIError, litellm.OpenAIError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_overflow(litellm: Any, error: Exception) -> bool:
    return isinstance(error, litellm.exceptions.ContextWindowExceededError)


def _error(error: Any, *, is_overflow: bool) -> LitellmReply:
    """Return OpenAI's error body and status for one of litellm's exceptions."""
    status = error.status_code if isinstance(getattr(error, "status_code", None), int) else 500
    message = str(getattr(error, "message", "") or error)
    reply = _whole(
        status,
        {
            "error": {
                "message": message,
                "type": _ERROR_TYPES.get(status, "server_error"),
                "param": getattr(error, "param", None),
                "code": "context_length_exceeded" if is_overflow else getattr(error, "code", None),
            }
        },
    )
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name in ("retry-after", "retry-after-ms", "x-request-id"):
        if name in headers:
            reply.headers.append((name.encode(), str(headers[name]).encode()))
    return reply
