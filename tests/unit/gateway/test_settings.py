"""gateway/settings.py and gateway/configuration.py: where values come from, what is refused."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.addressing.loopback import is_loopback
from gateway.configuration import (
    FIELDS,
    TABLES,
    Loaded,
    SettingsError,
    description,
    load,
    redacted,
    variable,
    without_credentials,
)
from gateway.served import ModelSettings
from gateway.settings import Settings


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a settings file that lies about on this machine."""
    monkeypatch.chdir(tmp_path)


def loaded(
    tmp_path: Path,
    *,
    environ: dict[str, str] | None = None,
    config: str | None = None,
    **flags: object,
) -> Loaded:
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}
    return load(flags=flags, environ=home | (environ or {}), config=config)


def refused(tmp_path: Path, **given: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, **given)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "library-of-context.toml").write_text(
        "port = 1\ndesk_tokens = 10\nrecall = 'project'\n", encoding="utf-8"
    )
    environ = {"LIBRARY_OF_CONTEXT_PORT": "2", "LIBRARY_OF_CONTEXT_DESK_TOKENS": "20"}
    found = loaded(tmp_path, environ=environ, port="3")
    assert (found.settings.port, found.settings.desk_tokens) == (3, 20)
    assert found.settings.recall == "project"
    assert found.sources["port"] == "flag --port"
    assert found.sources["desk_tokens"] == "environment LIBRARY_OF_CONTEXT_DESK_TOKENS"
    assert found.sources["recall"] == f"file {tmp_path / 'library-of-context.toml'}"
    assert found.sources["host"] == "default"


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in TABLES])
def test_every_setting_can_come_from_the_environment(tmp_path: Path, name: str) -> None:
    default = getattr(Settings(db="/x/library.db", keys_file="/x/keys"), name)
    text = ",".join(default) if isinstance(default, tuple) else str(default).lower()
    found = loaded(tmp_path, environ={variable(name): text})
    assert getattr(found.settings, name) == default
    assert description(FIELDS[name]).endswith((".", ")"))


def test_an_empty_environment_value_is_no_value(tmp_path: Path) -> None:
    assert loaded(tmp_path, environ={"LIBRARY_OF_CONTEXT_PORT": ""}).settings.port == 8765


def test_the_folder_of_an_embedder_is_found_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.toml"
    file.write_text('embedder = "onnx:models/e5"\n', encoding="utf-8")
    found = loaded(tmp_path, config=str(file)).settings.embedder
    assert found == f"onnx:{tmp_path / 'models' / 'e5'}"
    assert loaded(tmp_path, embedder="onnx:e5").settings.embedder == f"onnx:{Path.cwd() / 'e5'}"
    assert loaded(tmp_path).settings.embedder == "onnx"


def test_an_embedder_that_does_not_exist_is_refused_where_it_was_named(tmp_path: Path) -> None:
    told = refused(tmp_path, embedder="bert")
    assert told.startswith("flag --embedder: 'bert' is not one of none, hashing")
    told = refused(tmp_path, embedder="openai:http://me:secret@host/v1")
    assert "without user and password" in told
    assert "secret" not in told


def test_a_file_named_by_flag_wins_over_one_named_in_the_environment(tmp_path: Path) -> None:
    for port in (1, 2):
        (tmp_path / f"{port}.toml").write_text(f"port = {port}\n", encoding="utf-8")
    environ = {"LIBRARY_OF_CONTEXT_CONFIG": str(tmp_path / "1.toml")}
    assert loaded(tmp_path, environ=environ).settings.port == 1
    assert loaded(tmp_path, environ=environ, config=str(tmp_path / "2.toml")).settings.port == 2
    assert "there is no file" in refused(tmp_path, config="absent.toml")


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "library-of-context"
    folder.mkdir(parents=True)
    (folder / "library-of-context.toml").write_text("db = 'my.db'\n", encoding="utf-8")
    assert loaded(tmp_path).settings.db == str(folder / "my.db")


def test_the_database_lies_in_the_users_data_folder_unless_said_otherwise(tmp_path: Path) -> None:
    db = Path(loaded(tmp_path).settings.db)
    assert db.is_absolute()
    assert (db.parent.name, db.name) == ("library-of-context", "library.db")


def test_default_shares_shrink_with_a_small_budget(tmp_path: Path) -> None:
    small = loaded(tmp_path, budget_tokens="2000").settings
    assert (small.protected_tokens, small.desk_tokens) == (250, 500)
    large = loaded(tmp_path, budget_tokens="32000").settings
    assert (large.protected_tokens, large.desk_tokens) == (1_000, 2_000)
    assert loaded(tmp_path, budget_tokens="1").settings.desk_tokens == 0


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"port": "many"}, "flag --port: 'many': Expected `int`, got `str`"),
        ({"port": "70000"}, "flag --port: '70000': Expected `int` <= 65535"),
        ({"recall": "all"}, "flag --recall: 'all': not one of thread, project"),
        ({"window_low_water": "0"}, "flag --window-low-water: '0': Expected `float` > 0.0"),
        ({"upstream": "openai"}, "flag --upstream: 'openai' is no URL"),
        ({"upstream": "http://localhost:8765/v1"}, "flag --upstream: it is the gateway's own addr"),
        ({"upstream": "litellm:gpt"}, "flag --upstream: 'litellm:gpt' is no URL"),
        ({"host": "0.0.0.0"}, "flag --host: 0.0.0.0 is reachable from other machines"),
        ({"desk_tokens": "9000"}, "flag --desk-tokens: desk_tokens 9000 is more than budget_to"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_its_source(
    tmp_path: Path, flags: dict[str, str], expected: str
) -> None:
    assert refused(tmp_path, **flags).startswith(expected)


def test_an_unknown_name_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    environ = {"LIBRARY_OF_CONTEXT_BUDGET": "1"}
    assert refused(tmp_path, environ=environ).endswith("LIBRARY_OF_CONTEXT_BUDGET_TOKENS?")
    (tmp_path / "library-of-context.toml").write_text("budget_token = 1\n", encoding="utf-8")
    message = refused(tmp_path)
    assert message.endswith("unknown setting budget_token; did you mean budget_tokens?")
    assert message.startswith(f"file {tmp_path / 'library-of-context.toml'}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port = '8'", "port: '8': Expected `int`, got `str`"),
        ("port = ", "Invalid value"),
        ("[models.a]\nbudget = 1", "models: Object contains unknown field `budget`"),
        ("[upstreams.a]", "missing required field `url`"),
        ("[upstreams.a]\nurl = 'ftp://x'", "upstreams.a.url: 'ftp://x' is no URL"),
        ("[models.a]\nupstream = 'b'", "models.\"a\".upstream: 'b' is no URL"),
        ("[models.a]\ndesk_tokens = 9000", 'models."a": desk_tokens is more than budget_tokens'),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(
    tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "library-of-context.toml").write_text(text, encoding="utf-8")
    message = refused(tmp_path)
    assert expected in message
    assert str(tmp_path / "library-of-context.toml") in message


def test_a_non_loopback_host_is_allowed_with_a_keys_file(tmp_path: Path) -> None:
    found = loaded(tmp_path, host="0.0.0.0", keys_file="keys.json").settings
    assert not found.is_loopback
    assert found.keys_file == str(tmp_path / "keys.json")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_hosts_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", "localhost.evil"])
def test_any_other_host_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_a_model_takes_its_exact_row_else_the_first_pattern_that_matches() -> None:
    rows = tomllib.loads(
        '["gpt-*"]\nbudget_tokens = 4000\n["*"]\nname = "small"\n[gpt-4o]\nwindow_tokens = 9000\n'
    )
    models = {glob: ModelSettings(**row) for glob, row in rows.items()}
    settings = Settings(models=models, upstream="offline")
    assert settings.for_model("gpt-4o").window_tokens == 9_000
    patterned = settings.for_model("gpt-5")
    assert (patterned.budget_tokens, patterned.desk_tokens) == (4_000, 1_000)
    assert patterned.name == "gpt-5"
    assert settings.for_model("llama").name == "small"
    assert settings.for_model("llama").upstream == "offline"
    assert Settings().for_model("x").reply_reserve_tokens == 1_024


@pytest.mark.parametrize("host", ["[::1", "h:99999", "127.0.0.1:x"])
@pytest.mark.parametrize("name", ["redis_url", "upstream"])
def test_an_address_whose_host_or_port_can_be_none_is_refused_without_its_password(
    name: str, host: str, tmp_path: Path
) -> None:
    """One that was cut short was an error of the program."""
    scheme = "redis" if name == "redis_url" else "http"
    problem = refused(tmp_path, **{name: f"{scheme}://me:pw@{host}"})
    assert problem.startswith(f"flag --{name.replace('_', '-')}: '{scheme}://***' is no ")


def test_credentials_in_a_url_are_never_shown() -> None:
    assert without_credentials("https://me:pw@host:1/v1?key=s") == "https://***@host:1/v1?***"
    assert without_credentials("http://127.0.0.1:1/v1") == "http://127.0.0.1:1/v1"
    assert without_credentials("redis://me:p@w@[::1") == "redis://***"
    assert "pw" not in str(redacted(Settings(upstream="http://me:pw@host/v1")))
