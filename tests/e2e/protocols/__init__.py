"""The protocols that clients speak, for tests that hold for each of them. Pure.

A test is written in chat completions' shapes. Here they become another protocol's: what the client
posts, what the upstream answers; and what the upstream got becomes chat's again, so that one test
says what holds for all. What one protocol alone has (kinds of blocks, of items, of events) is
tested with bare JSON beside it.

Beside chat's own words three things are carried over: a key that begins with `x_` (an unknown one),
`reasoning_content` (a thinking block, a reasoning item), and parts of every kind that the other
protocol has.
"""

from collections.abc import Sequence

import pytest

from tests.e2e.protocols.chat import CHAT
from tests.e2e.protocols.messages import MESSAGES
from tests.e2e.protocols.protocol import Protocol, named_event
from tests.e2e.protocols.responses import RESPONSES

__all__ = [
    "CHAT",
    "MESSAGES",
    "PROTOCOLS",
    "RESPONSES",
    "Protocol",
    "in_each_protocol",
    "in_protocols",
    "named_event",
    "protocol_at",
]

PROTOCOLS: Sequence[Protocol] = (CHAT, MESSAGES, RESPONSES)


def in_protocols(*protocols: Protocol) -> pytest.MarkDecorator:
    """Run a test once for each of these (the fixture `protocol`)."""
    return pytest.mark.parametrize("protocol", protocols, ids=lambda one: one.name, indirect=True)


in_each_protocol = in_protocols(*PROTOCOLS)
"""Runs a test once for each protocol that clients speak."""


def protocol_at(path: str) -> Protocol | None:
    """Return the protocol that is spoken at a path of a server; None: none."""
    return next((one for one in PROTOCOLS if path == f"/v1{one.path}"), None)
