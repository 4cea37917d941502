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
        target = self.settings["upstream"]
        row = self.settings["upstreams"].get(target, {})
        url = row.get("url", target)
        takes_any = (
            url == OFFLINE or url.startswith(LITELLM) or urlsplit(url).hostname in _THIS_MACHINE
        )
        return not self.settings["keys_file"] and (takes_any or bool(row.get("api_key_env")))


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
