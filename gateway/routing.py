"""Which upstream a request goes to, under which model name, and with whose key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from msgspec import structs

from gateway.auth import AUTHORIZATION, Principal
from gateway.served import UNNAMED, Placement, Replacement, ServedModel
from gateway.settings import Settings
from gateway.upstream.protocol import Upstream
from gateway.wire.protocol import PromptCache

CHAT, MESSAGES = "chat", "messages"
API_KEY, ANTHROPIC = "x-api-key", "api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Target:
    """Where one request goes."""

    upstream: Upstream
    model: ServedModel
    strips_old_reasoning: bool
    placement: Placement
    replacement: Replacement
    lookup_rounds: int = 0
    """So many times within one answer the model may look things up; 0: it is offered nothing."""
    prompt_cache: PromptCache | Literal[""] = ""
    """Empty: as the upstream is known to want it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What an upstream is told about who asks."""

    dropped: frozenset[str]
    """Headers of the client that must not reach it."""
    added: Mapping[str, str]


class Routing:
    """The upstreams of one gateway."""

    def __init__(
        self,
        settings: Settings,
        *,
        upstreams: Mapping[str, Upstream],
        environ: Mapping[str, str],
        addressed: Callable[[str], Upstream],
    ) -> None:
        """`upstreams` has one entry for each place that the settings name; `addressed` makes one of
        a base URL."""
        self._settings = settings
        self.upstreams = upstreams
        self._environ = environ
        self._addressed = addressed

    def target(self, model: str, principal: Principal) -> Target:
        """Return where requests for `model` go; what the path names comes first, then a key's own
        upstream."""
        named = self._named(principal)
        place = principal.address or principal.upstream or ""
        row = self._settings.for_model(model, upstream=place)
        if named is not None:  # Settings of where the model would else be served do not hold there.
            row, own, upstream = structs.replace(row, name=model), UNNAMED, named
        else:
            own = self._settings.upstreams.get(row.upstream, UNNAMED)
            upstream = self.upstreams[row.upstream]
        settings = self._settings
        return Target(
            upstream=upstream,
            model=row,
            strips_old_reasoning=own.strip_old_reasoning,
            placement=row.desk_placement or own.desk_placement or settings.desk_placement,
            replacement=row.desk_replacement or own.desk_replacement or settings.desk_replacement,
            lookup_rounds=next(
                rounds
                for rounds in (row.lookup_rounds, own.lookup_rounds, settings.lookup_rounds)
                if rounds is not None
            ),
            prompt_cache=own.prompt_cache,
        )

    def _named(self, principal: Principal) -> Upstream | None:
        return None if principal.address is None else self._addressed(principal.address)

    def default(self, principal: Principal) -> Upstream:
        """Return where a request goes that names no model."""
        named = self._named(principal)
        return named or self.upstreams[principal.upstream or self._settings.upstream]

    def credentials(
        self, upstream: Upstream, principal: Principal, *, has_own: bool, wire: str = ""
    ) -> Credentials:
        """Return which key `upstream` gets; `has_own`: the request brings one; `wire`: the
        protocol's name, if it is one that is governed.

        A gateway key never leaves. The client's own key goes to the default upstream, and to one
        that has no key of its own: it was not meant for the others.
        """
        row = self._settings.upstreams.get(upstream.name)
        key = self._environ.get(row.api_key_env, "") if row and row.api_key_env else ""
        added = self._keyed(upstream, key, wire) if key else {}
        if principal.is_keyed:
            return Credentials(AUTHORIZATION, added)
        is_clients = not key or upstream is self.upstreams[self._settings.upstream]
        if has_own and is_clients:
            return Credentials(frozenset(), {})
        return Credentials(AUTHORIZATION, added)

    def _keyed(self, upstream: Upstream, key: str, wire: str) -> dict[str, str]:
        """Return the headers that bring a key where the API looks for it.

        Anthropic's has `x-api-key`; other servers of that API read it, or what OpenAI's clients
        send, and get both.
        """
        row = self._settings.upstreams.get(upstream.name)
        is_anthropic = row is not None and urlsplit(row.url).hostname == ANTHROPIC
        bearer = {"authorization": f"Bearer {key}"}
        if upstream.speaks == frozenset({MESSAGES}) or (is_anthropic and wire != CHAT):
            return {API_KEY: key}
        return {API_KEY: key, **bearer} if wire == MESSAGES else bearer


def places(settings: Settings) -> list[str]:
    """Return every upstream that the settings can send a request to, the default first."""
    named = [settings.upstream, *settings.upstreams]
    named += [row.upstream for row in settings.models.values() if row.upstream]
    return list(dict.fromkeys(named))
