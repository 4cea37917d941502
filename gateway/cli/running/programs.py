"""How a program is told where the gateway is: variables and options, for itself alone. Pure.

Nearly every client reads a base URL from its environment, so any program gets those variables. The
few that do not, or that need more, have a row of their own. Nothing is written to any file.

Source, each program's own documentation, November 2026:
* openai (all languages) OPENAI_BASE_URL; before version 1, and in LangChain, litellm and aider,
  OPENAI_API_BASE; anthropic and Claude Code ANTHROPIC_BASE_URL, without /v1.
* Codex: `-c KEY=VALUE` sets any key of config.toml for one run, the last of several holds; it knows
  the Responses API alone, and its built-in provider takes no base URL from that file. Unless
  `web_search` is `disabled` it offers a search that OpenAI runs, live or in a cache.
* OpenCode: OPENCODE_CONFIG_CONTENT is a configuration that is merged over those in files.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

OPENAI_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
ANTHROPIC_VARIABLES = ("ANTHROPIC_BASE_URL",)
OPENAI_HOME, ANTHROPIC_HOME = "https://api.openai.com/v1", "https://api.anthropic.com"
OPENAI_KEY = "OPENAI_API_KEY"
PLACEHOLDER = "placeholder"
OPENCODE_CONFIG = "OPENCODE_CONFIG_CONTENT"
_PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_OURS = "library"
"""What our provider is called in a program's own configuration."""


@dataclass(frozen=True, slots=True)
class Bases:
    """Base URLs for a program's two kinds of clients."""

    openai: str
    """With `/v1`, or what stands in its place."""
    anthropic: str
    """Without `/v1`."""
    has_chat_only: bool = False
    """What answers there does not serve the Responses API, nor what OpenAI runs within it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is run."""

    command: tuple[str, ...]
    environment: dict[str, str]
    """The whole environment."""
    changed: str = ""
    """What the program would do otherwise, beside where it asks; for its user."""


@dataclass(frozen=True, slots=True)
class Homes:
    """Where programs of an environment would go without a gateway."""

    openai: str | None
    """None: nowhere. No address is set, and no key for the usual one."""
    anthropic: str
    """Claude Code has keys of its own."""

    def __iter__(self) -> Iterator[str]:
        return filter(None, (self.openai, self.anthropic))


def homes(environ: Mapping[str, str], *, gateway: str) -> Homes:
    """Return where programs would go; an address of the gateway's own is none."""

    def first(names: tuple[str, ...]) -> str | None:
        own = (gateway, gateway.replace("127.0.0.1", "localhost"))
        given = (environ.get(name, "").rstrip("/") for name in names)
        return next((one for one in given if one and not f"{one}/".startswith(own)), None)

    usual = OPENAI_HOME if environ.get(OPENAI_KEY) else None
    return Homes(first(OPENAI_VARIABLES) or usual, first(ANTHROPIC_VARIABLES) or ANTHROPIC_HOME)


def bases(origin: str, *, to: Homes | None) -> Bases:
    """Return the bases of a gateway that sends everything to its own upstream, or, with `to`,
    where it would have gone."""
    if to is None:
        return Bases(f"{origin}/v1", origin)
    return Bases(
        f"{origin}/to/{to.openai}" if to.openai else f"{origin}/v1",
        f"{origin}/to/{to.anthropic}",
    )


def launch(
    command: tuple[str, ...], told: Bases, environ: Mapping[str, str], *, needs_key: bool = True
) -> Launch:
    """Return how to run a command so that it finds the gateway. Where no key is needed OpenAI's
    clients get one all the same: without any they do not begin."""
    environment = dict(environ)
    environment |= dict.fromkeys(OPENAI_VARIABLES, told.openai)
    environment |= dict.fromkeys(ANTHROPIC_VARIABLES, told.anthropic)
    if any(environ.get(name) for name in _PROXIES):
        # A proxy does not reach this machine, and must not see what goes to its own gateway.
        host = urlsplit(told.openai).hostname or ""
        for name in _NO_PROXY:
            environment[name] = ",".join(filter(None, (environ.get(name), host)))
    name = command[0].replace("\\", "/").rpartition("/")[2].lower()
    for ending in (".exe", ".cmd", ".ps1"):
        name = name.removesuffix(ending)
    change = PROGRAMS.get(name)
    made = Launch(command, environment)
    made = change(made, told) if change else made
    if not needs_key and not environ.get(OPENAI_KEY):
        made.environment[OPENAI_KEY] = PLACEHOLDER
    return made


def _codex(made: Launch, told: Bases) -> Launch:
    own = f"model_providers.{_OURS}"
    values = {
        "model_provider": _OURS,
        f"{own}.name": "Library of Context",
        f"{own}.base_url": told.openai,
        f"{own}.wire_api": "responses",
    }
    if made.environment.get(OPENAI_KEY):
        values[f"{own}.env_key"] = OPENAI_KEY
    options = [part for key, value in values.items() for part in ("-c", f'{key}="{value}"')]
    changed = ""
    if told.has_chat_only:
        options += ["-c", 'web_search="disabled"']
        changed = "Codex's web search is off: OpenAI runs it, and this upstream does not"
    command = (made.command[0], *options, *made.command[1:])
    return Launch(command, made.environment, changed)


def _opencode(made: Launch, told: Bases) -> Launch:
    ours = {
        "provider": {
            "openai": {"options": {"baseURL": told.openai}},
            "anthropic": {"options": {"baseURL": f"{told.anthropic}/v1"}},
        }
    }
    try:
        given = json.loads(made.environment.get(OPENCODE_CONFIG) or "{}")
    except ValueError:
        given = {}
    merged = json.dumps(_merged(given if isinstance(given, dict) else {}, ours))
    return Launch(made.command, made.environment | {OPENCODE_CONFIG: merged})


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations in one; what is above wins."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _merged(old, value)
        found[key] = value
    return found


PROGRAMS: dict[str, Callable[[Launch, Bases], Launch]] = {"codex": _codex, "opencode": _opencode}
"""Programs that need more than the variables."""
