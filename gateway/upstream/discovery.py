"""What `upstream = "auto"` means on this machine, decided once at start.

OpenAI when its key is in the environment, else a server on this machine that answers at once, else
the offline upstream. The choice is written into the settings as a named upstream, so that nothing
after this knows that there was a choice.
"""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec import structs

from gateway.served import UpstreamSettings
from gateway.settings import AUTO, LITELLM, OFFLINE, Settings

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini"
OFFLINE_MODEL = "offline"
LOCAL_SERVERS = {"ollama": 11_434, "llama.cpp": 8_080}
PROBE_TIMEOUT_S = 0.3
"""A local server lists its models in milliseconds; two silent ones must not delay the start."""
LIST_BYTES_MAX = 1_000_000
"""Thousands of models; more is no list of them, and is not kept in memory to find out."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Settings with an upstream that is decided, and what to tell the user of it."""

    settings: Settings
    reason: str
    """Why it was chosen; empty: the settings named it."""
    model: str
    """A model it serves, for an example."""


def choose(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    first_model: Callable[[int], str | None] | None = None,
) -> Chosen:
    """Return the settings with `auto` replaced; `first_model` asks a local port (see below)."""
    if settings.upstream != AUTO:
        target = settings.upstream
        model = target.rpartition("/")[2] if target.startswith(LITELLM) else OPENAI_MODEL
        return Chosen(settings, "", OFFLINE_MODEL if target == OFFLINE else model)
    if environ.get("OPENAI_API_KEY"):
        row = UpstreamSettings(url=OPENAI_URL, api_key_env="OPENAI_API_KEY")
        return Chosen(_with(settings, "openai", row), "OPENAI_API_KEY is set", OPENAI_MODEL)
    for name, port in LOCAL_SERVERS.items():
        local_model = (first_model or served_model)(port)
        if local_model:
            row = UpstreamSettings(url=f"http://127.0.0.1:{port}/v1")
            return Chosen(_with(settings, name, row), f"it answers on port {port}", local_model)
    reason = "built in: it quotes what was said; set --upstream for a real model"
    return Chosen(structs.replace(settings, upstream=OFFLINE), reason, OFFLINE_MODEL)


def _with(settings: Settings, name: str, row: UpstreamSettings) -> Settings:
    return structs.replace(settings, upstream=name, upstreams={name: row, **settings.upstreams})


def served_model(port: int) -> str | None:
    """Return a model that an OpenAI-compatible server on this port of this machine lists."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/v1/models")
        reply = connection.getresponse()
        listed = json.loads(reply.read(LIST_BYTES_MAX)) if reply.status == 200 else {}
        model = listed["data"][0]["id"]
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return None  # Whatever stands there, it is no such server.
    finally:
        connection.close()
    return model if isinstance(model, str) else None
