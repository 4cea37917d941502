"""The one place where errors become answers.

Who can act decides (STYLE.md): the caller's mistakes are 4xx and never retried, the store's are
503, the upstream's keep its own status, ours are 500 with the request id. What shape they have is
the client protocol's to say (gateway/wire).
"""

from dataclasses import dataclass
from http import HTTPStatus

import orjson

from gateway.identity import BadSession
from gateway.refusals import (
    AddressForbidden,
    BadParameter,
    BodyTooLarge,
    BodyTooSlow,
    BodyUnreadable,
    EncodingUnsupported,
    HostForbidden,
    KeyRequired,
    NotReady,
    Overloaded,
    ProtocolUnspoken,
    RequestRefused,
    ScopeForbidden,
    UnknownItem,
    UnknownPath,
    UnknownReply,
    UpgradeUnsupported,
)
from gateway.upstream.protocol import Untranslated, UpstreamFailed
from gateway.wire.protocol import MalformedRequest, Refusal, Wire
from governor.counting.registry import UnknownTokenizer
from governor.errors import BudgetTooSmall, GovernorError, MalformedTranscript
from library.errors import (
    BadPattern,
    EventConflict,
    LibraryError,
    TooManyPins,
    Unacceptable,
    UnknownCollection,
    UnknownRecord,
)

_CALLERS = "invalid_request_error"
_SERVERS = "server_error"
_ANSWERS: dict[type[Exception], tuple[HTTPStatus, str, str]] = {
    BadParameter: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_parameter"),
    BadSession: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_session"),
    MalformedRequest: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_request"),
    MalformedTranscript: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_messages"),
    BudgetTooSmall: (HTTPStatus.BAD_REQUEST, _CALLERS, "context_length_exceeded"),
    KeyRequired: (HTTPStatus.UNAUTHORIZED, _CALLERS, "invalid_api_key"),
    ScopeForbidden: (HTTPStatus.FORBIDDEN, _CALLERS, "insufficient_permissions"),
    HostForbidden: (HTTPStatus.FORBIDDEN, _CALLERS, "forbidden_host"),
    AddressForbidden: (HTTPStatus.FORBIDDEN, _CALLERS, "forbidden_address"),
    UnknownReply: (HTTPStatus.BAD_REQUEST, _CALLERS, "previous_response_not_found"),
    UnknownItem: (HTTPStatus.NOT_FOUND, _CALLERS, "item_not_found"),
    UnknownPath: (HTTPStatus.NOT_FOUND, _CALLERS, "not_found"),
    UpgradeUnsupported: (HTTPStatus.UPGRADE_REQUIRED, _CALLERS, "websocket_unsupported"),
    ProtocolUnspoken: (HTTPStatus.BAD_REQUEST, _CALLERS, "protocol_unsupported"),
    UnknownRecord: (HTTPStatus.NOT_FOUND, _CALLERS, "not_found"),
    UnknownCollection: (HTTPStatus.NOT_FOUND, _CALLERS, "unknown_collection"),
    BadPattern: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_pattern"),
    Unacceptable: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_parameter"),
    TooManyPins: (HTTPStatus.CONFLICT, _CALLERS, "too_many_pins"),
    EventConflict: (HTTPStatus.CONFLICT, _CALLERS, "event_conflict"),
    BodyTooLarge: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _CALLERS, "body_too_large"),
    BodyTooSlow: (HTTPStatus.REQUEST_TIMEOUT, _CALLERS, "body_too_slow"),
    BodyUnreadable: (HTTPStatus.BAD_REQUEST, _CALLERS, "invalid_body"),
    EncodingUnsupported: (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _CALLERS, "unsupported_encoding"),
    Overloaded: (HTTPStatus.TOO_MANY_REQUESTS, "overloaded_error", "gateway_overloaded"),
    NotReady: (HTTPStatus.SERVICE_UNAVAILABLE, _SERVERS, "not_ready"),
    UnknownTokenizer: (HTTPStatus.INTERNAL_SERVER_ERROR, _SERVERS, "bad_setting"),
    RequestRefused: (HTTPStatus.BAD_REQUEST, _CALLERS, "refused"),
    GovernorError: (HTTPStatus.INTERNAL_SERVER_ERROR, _SERVERS, "internal_error"),
    LibraryError: (HTTPStatus.SERVICE_UNAVAILABLE, _SERVERS, "store_unavailable"),
    Untranslated: (HTTPStatus.BAD_REQUEST, _CALLERS, "unsupported_by_upstream"),
    UpstreamFailed: (HTTPStatus.BAD_GATEWAY, "upstream_error", "upstream_failed"),
}
ANSWERED = tuple(_ANSWERS)
"""Every error that has an answer; anything else is a bug of ours."""
_RETRY_AFTER_S = {Overloaded: 1, LibraryError: 5, NotReady: 1}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    body: bytes
    headers: list[tuple[bytes, bytes]]
    """Content type, length, and what else belongs to this answer."""


def answer(error: Exception, wire: Wire) -> Answer:
    """Return the answer to `error`, one of `ANSWERED`, in the shape of a client protocol."""
    kind = _kind(error)
    headers = []
    if kind in _RETRY_AFTER_S:
        headers.append((b"retry-after", str(_RETRY_AFTER_S[kind]).encode()))
    if kind is KeyRequired:
        headers.append((b"www-authenticate", b"Bearer"))
    if kind is UpgradeUnsupported:
        headers.append((b"upgrade", b"HTTP/1.1"))  # RFC 9110, 15.5.22: what to speak instead.
    refusal = refusal_of(error, wire)
    return json_answer(refusal.status, wire.error_body(refusal), headers=headers)


def error_event(error: Exception, wire: Wire, event_count: int) -> bytes:
    """Return what a stream says when it breaks, after so many events."""
    return wire.error_event(refusal_of(error, wire), event_count)


def refusal_of(error: Exception, wire: Wire) -> Refusal:
    """Return what there is to say about `error`; the nearest base class decides."""
    status, error_type, code = _ANSWERS[_kind(error)]
    param = None
    if isinstance(error, BadParameter | Unacceptable):
        param = error.name
    elif isinstance(error, BadSession):
        param = error.source
    elif isinstance(error, MalformedRequest):
        param = error.param
    elif isinstance(error, MalformedTranscript):
        param = f"{wire.items}.[{error.index}]"
    elif isinstance(error, BudgetTooSmall | UnknownItem):
        param = wire.items
    elif isinstance(error, UnknownReply):
        param = "previous_response_id"
    if isinstance(error, Untranslated):
        param = error.param
    elif isinstance(error, UpstreamFailed):
        code = f"upstream_{error.kind}"
    return Refusal(
        status=error.status if isinstance(error, UpstreamFailed) else int(status),
        message=str(error),
        type=error_type,
        code=code,
        param=param,
        needed_tokens=error.needed_tokens if isinstance(error, BudgetTooSmall) else None,
        budget_tokens=error.budget_tokens if isinstance(error, BudgetTooSmall) else None,
    )


def _kind(error: Exception) -> type[Exception]:
    return next(kind for kind in type(error).__mro__ if kind in _ANSWERS)


def crash_answer(request_id: str, wire: Wire) -> Answer:
    """Return the answer to a bug of ours, which tells no more than where to look."""
    message = f"the gateway failed; its log has the cause under request {request_id}"
    status = int(HTTPStatus.INTERNAL_SERVER_ERROR)
    refusal = Refusal(status, message, type=_SERVERS, code="internal_error")
    return json_answer(status, wire.error_body(refusal))


def json_answer(
    status: int, value: object, *, headers: list[tuple[bytes, bytes]] | None = None
) -> Answer:
    body = orjson.dumps(value)
    return Answer(
        int(status),
        body,
        [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *(headers or ()),
        ],
    )
