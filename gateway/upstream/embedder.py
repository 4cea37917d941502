"""What the environment says about embedders: an Ollama elsewhere, and a key."""

from collections.abc import Mapping

from gateway.settings import Settings
from library.embedding.opening import OLLAMA_URL, EmbedderOptions

OLLAMA_PORT = 11_434


def embedder_options(settings: Settings, environ: Mapping[str, str]) -> EmbedderOptions:
    """Return what embedders may use under these settings."""
    return EmbedderOptions(
        threads=settings.embedder_threads,
        ollama_url=ollama_url(environ.get("OLLAMA_HOST", "")),
        api_key=environ.get(settings.embedder_api_key_env, ""),
    )


def ollama_url(host: str) -> str:
    """Return where Ollama is, from the variable that its own programs read.

    Source: ollama envconfig/config.go, Host: scheme and port may be missing, and an address to
    listen on everywhere is asked on this machine.
    """
    if not host.strip():
        return OLLAMA_URL
    scheme, _, rest = host.strip().rpartition("://")
    place = rest.rstrip("/")
    name, _, port = place.partition(":")
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name
    return f"{scheme or 'http'}://{name}:{port or OLLAMA_PORT}"
