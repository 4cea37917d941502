"""What a caller may not have, before any governing: errors of the HTTP side. Pure.

* RequestRefused
  x BadParameter         a header or query parameter is not what it must be
  x KeyRequired          no gateway key, or an unknown one
  x ScopeForbidden       the key does not reach so far
  x HostForbidden        the Host or Origin header names somebody else (DNS rebinding)
  x AddressForbidden     the upstream in the path is not one that may be asked
  x UnknownReply         the reply that a request goes on from is not in the store
  x UnknownItem          an item that a request refers to is not in the store
  x UnknownPath          no such route, or not with this method
  x UpgradeUnsupported   a WebSocket is asked for
  x ProtocolUnspoken     the upstream has no such API
  x BodyTooLarge         the body, as sent or decoded, is over the limit
  x BodyTooSlow          the rest of the body does not come
  x BodyUnreadable       the body cannot be decoded
  x EncodingUnsupported  a content-encoding that we do not know
  x Overloaded           too much is in flight; try again soon
  x NotReady             the library is not open
"""


class RequestRefused(Exception):
    """Base of every refusal on the HTTP side."""


class BadParameter(RequestRefused):
    """Parameter `name` must be something else."""

    def __init__(self, name: str, must: str) -> None:
        super().__init__(f"{name!r} must be {must}")
        self.name = name


class KeyRequired(RequestRefused):
    """The request carries no valid gateway key."""

    def __init__(self) -> None:
        super().__init__("this gateway needs one of its keys: `Authorization: Bearer KEY`")


class ScopeForbidden(RequestRefused):
    """The key may not do this; `what` it would have done."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this key may not {what}")
        self.what = what


class HostForbidden(RequestRefused):
    """Header `name` holds a value that is not this gateway's."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"{name} {value!r} is not allowed here; see the setting "
            f"{'allowed_hosts' if name == 'Host' else 'allowed_origins'}"
        )
        self.name = name
        self.value = value


class AddressForbidden(RequestRefused):
    """The upstream `origin`, named in the path, may not be asked."""

    def __init__(self, origin: str, why: str) -> None:
        super().__init__(f"{origin} {why}")
        self.origin = origin


class UnknownReply(RequestRefused):
    """No reply of this id is in the caller's collection."""

    def __init__(self, identifier: str) -> None:
        super().__init__(
            f"Previous response with id {identifier!r} not found: it was not answered through this "
            "gateway, or is deleted. Send the conversation itself."
        )
        self.identifier = identifier


class UnknownItem(RequestRefused):
    """No item of this id is in a reply that the store has."""

    def __init__(self, identifier: str) -> None:
        super().__init__(
            f"Item with id {identifier!r} not found: it was not answered through this gateway, or "
            "is deleted. Send the item itself (with 'store': false most clients do)."
        )
        self.identifier = identifier


class UnknownPath(RequestRefused):
    """There is nothing at this path, or not with this method."""

    def __init__(self, method: str, path: str) -> None:
        super().__init__(f"there is no {method} {path}")
        self.path = path


class ProtocolUnspoken(RequestRefused):
    """Upstream `upstream` does not serve the client's protocol."""

    def __init__(self, upstream: str, protocol: str, spoken: tuple[str, ...]) -> None:
        super().__init__(
            f"the upstream {upstream!r} does not speak {protocol!r} (it speaks "
            f"{', '.join(spoken)}); name another upstream for this model, or, if it does, say so "
            "in its setting `speaks`"
        )
        self.upstream = upstream


class UpgradeUnsupported(RequestRefused):
    """The client asks to go on in a WebSocket; there are none here."""

    def __init__(self) -> None:
        super().__init__("there are no WebSockets here: send the request as a plain HTTP POST")


class BodyTooLarge(RequestRefused):
    """The request body is larger than the setting `max_body_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the request body is larger than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class BodyTooSlow(RequestRefused):
    """Nothing of the request body came for `silence_s` seconds."""

    def __init__(self, silence_s: float) -> None:
        super().__init__(f"nothing more of the request body came within {silence_s:g} s")
        self.silence_s = silence_s


class BodyUnreadable(RequestRefused):
    """The body is not what its content-encoding says."""

    def __init__(self, encoding: str) -> None:
        super().__init__(f"the request body is not valid {encoding}")
        self.encoding = encoding


class EncodingUnsupported(RequestRefused):
    """The body has a content-encoding that we do not decode."""

    def __init__(self, encoding: str, known: tuple[str, ...]) -> None:
        super().__init__(f"content-encoding {encoding!r} is not one of {', '.join(known)}")
        self.encoding = encoding


class Overloaded(RequestRefused):
    """`what` in flight has reached its limit."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"the gateway is busy: {limit} {what} in flight; try again")
        self.limit = limit


class NotReady(RequestRefused):
    """The gateway has not opened its library, or is closing it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
