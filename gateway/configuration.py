"""Where settings come from: flag, environment, file, default, in that order. Their names and
meanings are in gateway/settings.py.

Each value is checked where it is read, so that a mistake is reported with the place it was made in;
what contradicts another value is reported with the place of the one to change.
"""

import difflib
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import SplitResult, urlsplit

import msgspec

from gateway.addressing.loopback import is_loopback
from gateway.mcp.names import UnknownTools, chosen
from gateway.settings import (
    AUTO,
    LITELLM,
    OFFLINE,
    Settings,
    desk_share,
    lookup_share,
    protected_share,
)
from library.cache.redis import is_redis_url
from library.embedding.names import ONNX, parsed

PREFIX = "LIBRARY_OF_CONTEXT_"
FILE_NAME = "library-of-context.toml"
FOLDER_NAME = "library-of-context"


class SettingsError(Exception):
    """A setting is unknown, of the wrong type, out of bounds, or contradicts another."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings with their origins."""

    settings: Settings
    sources: dict[str, str]
    """Setting -> `flag --port`, `environment LIBRARY_OF_CONTEXT_PORT`, `file PATH`, `default`."""


FIELDS: dict[str, Any] = get_type_hints(Settings, include_extras=True)
"""Setting -> its annotated type, in the order in which they are explained."""
TABLES = ("upstreams", "models", "retention")
"""Settings that only a file can hold."""
PATHS = ("db", "keys_file")


def description(annotation: Any) -> str:
    """Return the help of a field."""
    return " ".join(meta.description for meta in annotation.__metadata__ if meta.description)


def base_type(annotation: Any) -> Any:
    """Return the type below all annotations: `int`, `Literal[...]`, `tuple[str, ...]`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def choices(annotation: Any) -> tuple[str, ...]:
    """Return the values a field is limited to; none: it is not."""
    base = base_type(annotation)
    return get_args(base) if get_origin(base) is Literal else ()


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return PREFIX + name.upper()


def shown(name: str, value: object) -> str:
    """Return a value in words; of a table, the names of its rows."""
    if name in TABLES:
        assert isinstance(value, dict)
        return ", ".join(value) or "none"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return without_credentials(str(value)) or "none"


def redacted(settings: Settings) -> dict[str, Any]:
    """Return all settings as plain data, with no credentials in any URL."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return without_credentials(value)
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items()}
        return value

    plain = clean(msgspec.to_builtins(settings))
    assert isinstance(plain, dict)
    return plain


def without_credentials(text: str) -> str:
    """Return a URL without its user, password and query; any other text as it is."""
    if "://" not in text:
        return text
    parts = _address(text)
    if parts is None:  # Where its password stands nobody knows.
        return f"{text.partition('://')[0]}://***"
    if not (parts.username or parts.password or parts.query):
        return text
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{'***@' if '@' in parts.netloc else ''}{host}{parts.path}" + (
        "?***" if parts.query else ""
    )


def _address(text: str) -> SplitResult | None:
    """Return the parts of an address; None: its host or its port can be none."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # It is read, and checked, here.
    except ValueError:
        return None
    return parts


_FOLDERS = {"data": ".local/share", "config": ".config", "cache": ".cache"}


def user_folder(kind: Literal["data", "config", "cache"], environ: Mapping[str, str]) -> Path:
    """Return this user's folder of that kind, by the platform's own convention."""
    home = Path.home()
    if sys.platform == "win32":
        roaming, local = environ.get("APPDATA"), environ.get("LOCALAPPDATA")
        found = roaming if kind == "config" else local
        base = Path(found) if found else home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / ("Caches" if kind == "cache" else "Application Support")
    else:
        found = environ.get(f"XDG_{kind.upper()}_HOME")
        base = Path(found) if found else home / _FOLDERS[kind]
    return base / FOLDER_NAME


def load(
    *,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    config: str | None = None,
) -> Loaded:
    """Read all settings; `flags` holds those given (None: not given), `config` the file's path.

    Raises:
        SettingsError: one line that names the place and the mistake.

    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(FIELDS, "default")
    path = _find_file(config, environ)
    for name, value in (_read_file(path) if path else {}).items():
        sources[name] = f"file {path}"
        values[name] = _converted(name, value, source=f"{sources[name]}: {name}", strict=True)
        if name in PATHS and values[name]:
            assert path is not None
            values[name] = str(path.parent / Path(values[name]).expanduser())
    for name, text in _from_environment(environ).items():
        sources[name] = f"environment {variable(name)}"
        values[name] = _converted(name, text, source=sources[name], strict=False)
    for name, given in flags.items():
        if given is not None:
            sources[name] = f"flag {flag(name)}"
            values[name] = _converted(name, given, source=sources[name], strict=False)
    _fill_in(values, environ)
    if "embedder" in values:
        base = path.parent if path and sources["embedder"] == f"file {path}" else Path()
        values["embedder"] = _embedder(values["embedder"], base, sources["embedder"])
    settings = Settings(**values)
    _check(settings, sources)
    return Loaded(settings, sources)


def _fill_in(values: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Work out the defaults that hang on other values, and make paths absolute."""
    budget = values.get("budget_tokens", Settings().budget_tokens)
    values.setdefault("protected_tokens", min(Settings().protected_tokens, protected_share(budget)))
    values.setdefault("desk_tokens", min(Settings().desk_tokens, desk_share(budget)))
    values.setdefault("lookup_tokens", min(Settings().lookup_tokens, lookup_share(budget)))
    if not values.get("db"):
        values["db"] = str(user_folder("data", environ) / "library.db")
    for name in PATHS:
        if values.get(name):
            # Not resolve(): a symlink must still be seen as one by whoever opens the file.
            values[name] = str(Path(values[name]).expanduser().absolute())


def _find_file(config: str | None, environ: Mapping[str, str]) -> Path | None:
    named = config or environ.get(f"{PREFIX}CONFIG")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            source = "flag --config" if config else f"environment {PREFIX}CONFIG"
            raise SettingsError(source, f"there is no file {path}")
        return path
    places = (Path(FILE_NAME), user_folder("config", environ) / FILE_NAME)
    return next((path.absolute() for path in places if path.is_file()), None)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"file {path}", str(error)) from error
    for name in table:
        if name not in FIELDS:
            raise SettingsError(f"file {path}", _unknown(name, list(FIELDS)))
    return table


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    known = {variable(name): name for name in FIELDS if name not in TABLES}
    found: dict[str, str] = {}
    for key, text in environ.items():
        if not key.startswith(PREFIX) or key == f"{PREFIX}CONFIG":
            continue
        if key not in known:
            raise SettingsError("environment", _unknown(key, list(known)))
        if text:  # Compose files set what is absent to "": that is no value.
            found[known[key]] = text
    return found


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown setting {name}" + (f"; did you mean {near[0]}?" if near else "")


def _converted(name: str, value: object, *, source: str, strict: bool) -> Any:
    annotation = FIELDS[name]
    if base_type(annotation) == tuple[str, ...] and isinstance(value, str) and not strict:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, annotation, strict=strict)
    except msgspec.ValidationError as error:
        given = f"{without_credentials(value)!r}: " if isinstance(value, str) else ""
        listed = ", ".join(choices(annotation))
        problem = f"not one of {listed}" if listed else str(error)
        raise SettingsError(source, f"{given}{problem}") from error


def _embedder(name: str, base: Path, source: str) -> str:
    """Return the name of an embedder, with the folder in it made absolute."""
    try:
        kind, place = parsed(name)
    except ValueError as error:
        raise SettingsError(source, str(error)) from error
    is_folder = kind == ONNX and place
    return f"{kind}:{(base / Path(place).expanduser()).absolute()}" if is_folder else name


def _check(settings: Settings, sources: Mapping[str, str]) -> None:
    """Refuse values that are right alone and wrong together."""
    if not settings.is_loopback and not settings.keys_file:
        raise SettingsError(
            sources["host"],
            f"{settings.host} is reachable from other machines: set keys_file "
            "(library-of-context keys add makes one), or listen on 127.0.0.1",
        )
    for name in ("protected_tokens", "desk_tokens", "lookup_tokens"):
        if getattr(settings, name) > settings.budget_tokens:
            raise SettingsError(
                sources[name],
                f"{name} {getattr(settings, name)} is more than budget_tokens "
                f"{settings.budget_tokens} ({sources['budget_tokens']})",
            )
    _check_target(settings.upstream, settings, sources["upstream"])
    if settings.upstream.startswith("http") and _is_itself(settings.upstream, settings):
        raise SettingsError(sources["upstream"], "it is the gateway's own address")
    _check_redis_url(settings, sources["redis_url"])
    _check_tools(settings, sources["mcp_tools"])
    for name, row in settings.upstreams.items():
        source = f"{sources['upstreams']}: upstreams.{name}.url"
        if row.url != OFFLINE and not _is_target(row.url):
            raise SettingsError(
                source,
                f"{without_credentials(row.url)!r} is no URL, litellm:PROVIDER/MODEL or offline",
            )
    for glob, model in settings.models.items():
        source = f'{sources["models"]}: models."{glob}"'
        if model.upstream:
            _check_target(model.upstream, settings, f"{source}.upstream")
        if (model.desk_tokens or 0) > (model.budget_tokens or settings.budget_tokens):
            raise SettingsError(source, "desk_tokens is more than budget_tokens")


def _check_redis_url(settings: Settings, source: str) -> None:
    url = settings.redis_url
    if url and not (is_redis_url(url) and _address(url)):
        given = without_credentials(url)
        raise SettingsError(source, f"{given!r} is no redis://, rediss:// or unix:// address")


def _check_tools(settings: Settings, source: str) -> None:
    try:
        chosen(settings.mcp_tools)
    except UnknownTools as error:
        raise SettingsError(source, str(error)) from error


def _check_target(target: str, settings: Settings, source: str) -> None:
    if target in (AUTO, OFFLINE) or target in settings.upstreams or _is_target(target):
        return
    names = ", ".join(settings.upstreams) or "none"
    raise SettingsError(
        source,
        f"{without_credentials(target)!r} is no URL (http://...), litellm:PROVIDER/MODEL, "
        f"offline, auto, or a name from [upstreams] ({names})",
    )


def _is_itself(url: str, settings: Settings) -> bool:
    parts = urlsplit(url)
    is_same_host = parts.hostname == settings.host or (
        settings.is_loopback and is_loopback(parts.hostname or "")
    )
    return is_same_host and parts.port == settings.port


def _is_target(text: str) -> bool:
    if text.startswith(LITELLM):
        return "/" in text.removeprefix(LITELLM).strip("/")
    parts = _address(text)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.netloc)
