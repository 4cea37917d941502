"""One running gateway: the parts that its routes share, opened and closed together.

`build_app` (gateway/app.py) makes the routes at once and this when the server starts, because a
library, a connection pool and tasks belong to an event loop. Until then every route but the health
ones answers 503.
"""

import asyncio
import contextlib
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from starlette.datastructures import Headers

from gateway.addressing.address import AllowedHosts
from gateway.addressing.resolving import AddressedUpstreams
from gateway.auth import LOCAL, OWNER, Keyring, Principal, presented_key
from gateway.readiness import UNRECORDED, Readiness
from gateway.refusals import NotReady
from gateway.relay import Relay
from gateway.retention.schedule import Schedule
from gateway.routing import Routing, Target
from gateway.settings import Settings
from gateway.telemetry import Telemetry
from gateway.turn import Ended
from gateway.upstream.direct import open_pool
from gateway.upstream.embedder import embedder_options
from gateway.upstream.opening import expects_openai, made_upstreams, patience_of
from gateway.upstream.protocol import Upstream
from gateway.upstream.speaking import Speaking
from gateway.wire.seen import SeenMessages
from gateway.wire.wires import WIRES
from governor.counting import Counters, MessageCounter
from governor.governor import Clock, Governor
from governor.turn import PreparedTurn
from library.library import Library
from library.runtime.options import LibraryOptions
from library.store.sqlite import SqliteStore

DRAIN_TIMEOUT_S = 5.0
"""For exchanges that were cut at the end of the grace to commit what they had."""


@dataclass(slots=True)
class Gateway:
    """What the routes share."""

    settings: Settings
    telemetry: Telemetry
    counters: Counters
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    upstream_reason: str = ""
    """Why the settings' upstream was chosen; empty: it was given."""
    library: Library | None = None
    routing: Routing | None = None
    relay: Relay | None = None
    keyring: Keyring | None = None
    seen: Mapping[str, SeenMessages] = field(
        default_factory=lambda: {wire.name: SeenMessages() for wire in WIRES}
    )
    """For each wire: the same JSON is another message in another protocol."""
    schedule: Schedule | None = None
    speaking: Speaking = field(init=False)
    handed: OrderedDict[tuple[str, str], tuple[str, PreparedTurn]] = field(
        default_factory=OrderedDict
    )
    """Turns that wait for their caller's answer, by collection and id, with their session; see
    gateway/routes/handed.py."""
    readiness: Readiness = field(default_factory=lambda: Readiness(time.monotonic))

    def __post_init__(self) -> None:
        self.speaking = Speaking(limit_bytes=self.settings.max_reply_bytes)

    def opened(self) -> tuple[Library, Routing, Relay]:
        """Return the parts that exist while the gateway is open.

        Raises:
            NotReady: it is not.

        """
        if self.library is None or self.routing is None or self.relay is None:
            raise NotReady("the gateway is starting or stopping; try again")
        return self.library, self.routing, self.relay

    def counter_of(self, target: Target, *, is_text: bool = False) -> MessageCounter:
        """Return what counts tokens as a target's model does, in a chat or in one text."""
        return self.counters.counter_for(
            target.model.name,
            tokenizer=target.model.tokenizer or None,
            upstream=target.upstream.name,
            upstream_count=target.upstream.count_tokens,
            is_text=is_text,
        )

    async def authenticate(self, headers: Headers) -> Principal:
        """Return who asks.

        Raises:
            KeyRequired: nobody we know.

        """
        presented = presented_key(headers)
        if presented is not None and self.library is not None:
            store = self.library.store
            if isinstance(store, SqliteStore) and _is_same(presented, store.owner.token):
                return OWNER
        return LOCAL if self.keyring is None else await self.keyring.principal(presented)

    async def teams(self) -> frozenset[str] | None:
        """Return the teams that there are; None: there are no keys, which name them."""
        return None if self.keyring is None else await self.keyring.teams()

    async def missing(self) -> list[str]:
        """Return what keeps the gateway from serving, a sentence each."""
        if self.library is None or self.routing is None:
            return ["library: not open"]
        upstream = self.routing.upstreams[self.settings.upstream]
        return await self.readiness.missing(self.library, upstream)

    def ended(self, ended: Ended) -> None:
        """Learn from an exchange that is over."""
        if ended.store_error is not None:
            self.readiness.write_failed(str(ended.store_error))
        elif ended.report is not None:
            if "unrecorded" in ended.report.degraded:
                self.readiness.write_failed(UNRECORDED)
            else:
                self.readiness.write_succeeded()
        self.telemetry.ended(ended)

    def forget_seen(self) -> None:
        """Drop the messages that are kept in memory: one that is deleted may not live on there."""
        for one in self.seen.values():
            one.forget()

    def caches(self) -> dict[str, dict[str, int]]:
        """Return what the caches in memory did, and hold."""
        counts, seen = self.counters.cache, self.seen.values()
        return {
            "token_counts": {
                "hits": counts.hits,
                "misses": counts.misses,
                "bytes": counts.size_bytes,
            },
            "messages": {
                "hits": sum(one.hits for one in seen),
                "misses": sum(one.misses for one in seen),
                "entries": sum(one.held_count for one in seen),
            },
        }


@contextlib.asynccontextmanager
async def opened(gateway: Gateway, *, base_url: str | None) -> AsyncIterator[None]:
    """Open the library, the pool and the upstreams for the length of the block.

    At the end running exchanges have been ended by the server; what they commit is waited for.

    Raises:
        LibraryError: the database cannot be used.
        KeysFileUnusable: the keys file cannot be read.

    """
    settings = gateway.settings
    if base_url is not None:  # Else a command that may count nothing: half a second saved.
        gateway.counters.start_loading(has_openai=expects_openai(settings))
    if settings.keys_file:
        keys_file = Path(settings.keys_file)
        gateway.keyring = await asyncio.to_thread(
            lambda: Keyring(keys_file, monotonic_s=time.monotonic)
        )
    library = await Library.open(_library_options(settings, gateway.environ))
    pool = open_pool(patience_of(settings))
    addressed = AddressedUpstreams(AllowedHosts(settings.to_hosts), patience_of(settings))
    upstreams: dict[str, Upstream] = {}
    try:
        upstreams = made_upstreams(
            settings, pool=pool, counters=gateway.counters, environ=gateway.environ
        )
        if base_url is not None and isinstance(library.store, SqliteStore):
            await library.store.announce(base_url)
        clock = Clock(now=gateway.now, monotonic_s=time.monotonic)
        governor = Governor(library, clock, gateway.counters)
        await governor.start()
        gateway.routing = Routing(
            settings,
            upstreams=upstreams,
            environ=gateway.environ,
            addressed=addressed.upstream,
        )
        gateway.relay = Relay(
            governor,
            max_reply_bytes=settings.max_reply_bytes,
            keepalive_comment_s=settings.keepalive_comment_s,
            on_end=gateway.ended,
        )
        gateway.library = library
        gateway.schedule = Schedule(settings, library, gateway.now)
        gateway.schedule.start()
        yield
    finally:
        if gateway.relay is not None:
            await gateway.relay.drain(DRAIN_TIMEOUT_S)
        if gateway.schedule is not None:
            await gateway.schedule.stop()
        gateway.library = gateway.relay = gateway.routing = None
        for upstream in upstreams.values():
            await upstream.close()
        await pool.close()
        await addressed.close()
        await library.close()


def _library_options(settings: Settings, environ: Mapping[str, str]) -> LibraryOptions:
    return LibraryOptions(
        db=Path(settings.db),
        embedder=settings.embedder,
        embedder_options=embedder_options(settings, environ),
        question_timeout_s=settings.embedder_timeout_s,
        mask_secrets=settings.mask_secrets,
        allow_network_fs=settings.allow_network_fs,
        redis_url=settings.redis_url,
        redis_keyspace=settings.redis_keyspace,
    )


def _is_same(presented: str, secret: str) -> bool:
    return hmac.compare_digest(presented.encode(), secret.encode())
