"""Which headers travel from one side of the relay to the other. Pure.

A header is either about the message (it travels) or about one connection (it does not). Length and
encoding belong to the connection here, because a body is sent as it is held, not as it arrived.
Names are lower-case throughout, so that none can stand twice in two spellings.

Source: RFC 9110, 7.6.1 (Connection) and 8.4; CASES E1 (headroom#1808).
"""

from collections.abc import Iterable

Raw = Iterable[tuple[bytes, bytes]]

_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_UPSTREAM = _HOP | {b"host", b"content-length", b"accept-encoding", b"expect"}
_NOT_CLIENT = _HOP | {b"content-length", b"content-encoding", b"date", b"server"}
"""Our own server states its date; two would be one too many."""
_CLEAN = bytes(32 if code < 32 or code == 127 else code for code in range(256))
"""Control characters, which our HTTP client takes and our server would not send, are spaces."""
_OURS = b"x-library-"
"""Spoken between client and gateway only; one gateway behind another has its own."""


def request_headers(raw: Raw, *, drop: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the client's headers that go upstream; values of one name are joined by a comma."""
    rows = list(raw)
    named = _named_in_connection(rows)
    kept: dict[str, str] = {}
    for name, value in rows:
        name = name.lower()
        if name in _NOT_UPSTREAM or name in named or name.startswith(_OURS):
            continue
        text = name.decode("latin-1")
        if text not in drop:
            one = _text(value)
            kept[text] = f"{kept[text]}, {one}" if text in kept else one
    return kept


def reply_headers(raw: Raw) -> list[tuple[bytes, bytes]]:
    """Return the upstream's headers that go to the client, lower-case, in their order."""
    rows = list(raw)
    named = _named_in_connection(rows)
    kept = []
    for name, value in rows:
        name = name.lower()
        if name not in _NOT_CLIENT and name not in named and not name.startswith(_OURS):
            kept.append((name, value.translate(_CLEAN)))
    return kept


def said_in(raw: Raw) -> dict[str, str]:
    """Return a request's headers as they are read here, the last of several of one name."""
    return {name.decode("latin-1").lower(): _text(value) for name, value in raw}


def _text(value: bytes) -> str:
    """Return a value in UTF-8, as it is sent today and as our HTTP client writes it again."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _named_in_connection(rows: list[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Return the headers that a Connection header declares to be about this connection."""
    values = [value for name, value in rows if name.lower() == b"connection"]
    if not values:
        return frozenset()
    return frozenset(token.strip().lower() for value in values for token in value.split(b","))
