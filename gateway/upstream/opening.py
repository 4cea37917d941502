"""Makes the upstreams that the settings name."""

from collections.abc import Mapping

from gateway.configuration import without_credentials
from gateway.routing import places
from gateway.settings import LITELLM, OFFLINE, Settings
from gateway.upstream.direct import DirectUpstream
from gateway.upstream.http.pool import Pool
from gateway.upstream.litellm import LitellmUpstream
from gateway.upstream.offline import OfflineUpstream
from gateway.upstream.protocol import Patience, Upstream
from governor.counting import Counters


def patience_of(settings: Settings) -> Patience:
    return Patience(
        connect_s=settings.connect_timeout_s,
        first_byte_s=settings.first_byte_timeout_s,
        idle_s=settings.idle_timeout_s,
        retries=settings.upstream_retries,
    )


def made_upstreams(
    settings: Settings,
    *,
    pool: Pool,
    counters: Counters,
    environ: Mapping[str, str],
) -> dict[str, Upstream]:
    """Return an upstream for each place that the settings name."""
    patience = patience_of(settings)
    made: dict[str, Upstream] = {}
    for place in places(settings):
        row = settings.upstreams.get(place)
        url = place if row is None else row.url
        name = place if row is not None else without_credentials(place)
        if url == OFFLINE:
            made[place] = OfflineUpstream(name, counters=counters)
        elif url.startswith(LITELLM):
            key_name = row.api_key_env if row else ""
            made[place] = LitellmUpstream(
                name,
                model=url.removeprefix(LITELLM),
                patience=patience,
                api_key=environ.get(key_name) if key_name else None,
            )
        else:
            made[place] = DirectUpstream(
                name, url=url, pool=pool, patience=patience, speaks=row.speaks if row else ()
            )
    return made


def expects_openai(settings: Settings) -> bool:
    """Tell whether an upstream serves models that count with OpenAI's tables, as far as its
    address shows; the offline one does."""
    urls = (settings.upstream, *(row.url for row in settings.upstreams.values()))
    return any(url == OFFLINE or "openai" in url for url in urls)
