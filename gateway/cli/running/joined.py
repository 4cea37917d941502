"""What the gateway that a program is given says of itself, and what follows from it.

A gateway that runs already has settings of its own; they hold for every program that joins it,
whatever the options of `run` say. So an upstream that it was given is where programs go, as one is
that `run` was given, and an option that it does not follow is said rather than lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gateway.configuration import TABLES, flag, redacted, shown
from gateway.settings import AUTO, LITELLM, OFFLINE, Settings

_OF_PLACE = frozenset({"db", "host", "port"})
"""Where a gateway is, and not what it does."""
_THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})
_RESPONSES = "responses"
"""In `speaks`."""


def is_own_or_near(url: str) -> bool:
    """Tell whether an upstream is of the gateway's own making, or a server on this machine."""
    is_own = url == OFFLINE or url.startswith(LITELLM)
    return is_own or urlsplit(url).hostname in _THIS_MACHINE


@dataclass(frozen=True, slots=True)
class Joined:
    """What `GET /library/settings` answers."""

    settings: Mapping[str, Any]
    """As plain data, without credentials."""
    upstream_reason: str
    """Why it chose its upstream; empty: it was given one."""

    @property
    def has_given_upstream(self) -> bool:
        return not self.upstream_reason

    @property
    def needs_no_key(self) -> bool:
        """Tell whether a program needs no key: the upstream takes any, or has the gateway's own."""
        row = self._upstream
        takes_any = is_own_or_near(row["url"])
        return not self.settings["keys_file"] and (takes_any or bool(row.get("api_key_env")))

    @property
    def has_chat_only(self) -> bool:
        """Tell whether the upstream does not serve the Responses API, with what OpenAI runs itself:
        it is said to speak other protocols, or nobody said and it is one that does not."""
        row = self._upstream
        speaks = row.get("speaks")
        return _RESPONSES not in speaks if speaks else is_own_or_near(row["url"])

    @property
    def _upstream(self) -> Mapping[str, Any]:
        """Its own row, or one that says no more than its address."""
        target = self.settings["upstream"]
        row: Mapping[str, Any] = self.settings["upstreams"].get(target, {"url": target})
        return row


def not_followed(joined: Joined, flags: Mapping[str, object], wanted: Settings) -> str:
    """Return a line about the options that a gateway does not follow; "": there are none."""
    asked = redacted(wanted)
    told = []
    for name, value in flags.items():
        if value is None or name in _OF_PLACE or (name, value) == ("upstream", AUTO):
            continue
        ours, theirs = (_plain(name, one.get(name)) for one in (asked, joined.settings))
        if ours != theirs:
            told.append(f"{flag(name)} {theirs} (not {ours})")
    if not told:
        return ""
    return f"library-of-context: the settings of the running gateway hold: {', '.join(told)}\n"


def unlike(joined: Joined, wanted: Settings) -> str:
    """Return the settings that a gateway has otherwise than `wanted`, with what it has."""
    ours = redacted(wanted)
    told = [
        f"{flag(name)} {_plain(name, joined.settings[name])}"
        for name, value in ours.items()
        if name in joined.settings and name not in TABLES and name not in _OF_PLACE
        if (name, value) != ("upstream", AUTO)
        if _plain(name, joined.settings[name]) != _plain(name, value)
    ]
    return ", ".join(told)


def _plain(name: str, value: object) -> str:
    return shown(name, tuple(map(str, value)) if isinstance(value, list) else value)
