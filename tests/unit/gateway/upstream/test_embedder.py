import pytest

from gateway.settings import Settings
from gateway.upstream.embedder import embedder_options, ollama_url


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999"),
        (":9999", "http://127.0.0.1:9999"),
        ("https://box:443/", "https://box:443"),
    ],
)
def test_ollama_is_where_its_own_programs_look_for_it(host: str, url: str) -> None:
    """Source: ollama envconfig/config.go, Host."""
    assert ollama_url(host) == url


def test_a_key_is_sent_only_if_its_variable_is_named() -> None:
    environ = {"OPENAI_API_KEY": "sk-1"}
    assert embedder_options(Settings(), environ).api_key == ""
    named = Settings(embedder_api_key_env="OPENAI_API_KEY", embedder_threads=2)
    options = embedder_options(named, environ)
    assert (options.api_key, options.threads) == ("sk-1", 2)
    assert "sk-1" not in repr(options)
