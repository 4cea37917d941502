"""What an upstream driver must do; the relay knows nothing else about providers.

A driver opens one exchange and hands back the status, the headers and the body as bytes in the
client's protocol. Where the provider is reached otherwise (litellm), the driver builds those bytes;
where it speaks another protocol, a driver around it translates (crossed.py).
"""

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.wire.protocol import PromptCache


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request as it goes out."""

    method: str
    path: str
    """Below the base URL, with the query string: `/chat/completions`."""
    headers: Mapping[str, str]
    """End-to-end headers only; authorization already decided."""
    body: bytes
    upload: AsyncIterable[bytes] | None = None
    """Sent in place of `body`, once: such a request is never tried again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for an upstream, and how often to try."""

    connect_s: float
    first_byte_s: float
    """Until the answer's head is there."""
    idle_s: float
    """Between two pieces of the answer."""
    retries: int


class UpstreamFailed(Exception):
    """The upstream could not be reached, or broke off.

    `kind` is `refused` (no answer can have begun, so it may be tried again), `timeout`, `broken`,
    `unsupported`, or `cut` (we stopped it); `status` is the HTTP status to answer with while
    nothing has been sent: 502, 504, 404 or 503.
    """

    def __init__(self, kind: str, detail: str, *, status: int = 502) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status


class Untranslated(UpstreamFailed):
    """Field `param` of the request has no counterpart in the protocol that the upstream speaks."""

    def __init__(self, detail: str, *, param: str) -> None:
        super().__init__("unsupported", detail, status=400)
        self.param = param


class UpstreamReply(Protocol):
    """An open answer. `aclose` must be called, and ends the upstream's work at once."""

    status: int
    headers: list[tuple[bytes, bytes]]
    """Lower-case names; only what may go to the client (gateway/wire/headers.py)."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives.

        Raises:
            UpstreamFailed: it broke off or was idle for too long.

        """

    async def aclose(self) -> None: ...


class Upstream(Protocol):
    """One configured provider."""

    name: str
    speaks: frozenset[str] | None
    """Names of the protocols that it takes; None: that is not known."""
    caches: Mapping[str, PromptCache]
    """What its prompt cache is known to want to be told, by the client's protocol."""

    async def open(self, request: UpstreamRequest) -> UpstreamReply:
        """Send the request and return when the answer's head is there.

        Retries inside, before the first byte only, as the settings say.

        Raises:
            UpstreamFailed: no answer came.

        """

    async def count_tokens(self, text: str) -> int | None:
        """Count with the upstream's own tokenizer where it offers one; None: it does not."""

    async def probe(self) -> str | None:
        """Return None when the upstream answers, else what is wrong, for `doctor` and readyz."""

    async def close(self) -> None: ...
