"""What `doctor` asks each upstream: whether it answers, and how long its models' windows are.

Only `GET /models`, which costs nothing anywhere. A window smaller than the budget is the one fault
that shows late and far from its cause - a local server cuts the prompt without a word - so it is
looked for here, in the fields by which servers tell it.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from gateway.cli.checking.checks import Finding
from gateway.configuration import without_credentials
from gateway.routing import places
from gateway.settings import LITELLM, OFFLINE, Settings
from gateway.upstream.discovery import Chosen
from gateway.upstream.litellm import missing_keys

TIMEOUT_S = 5.0
WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""vLLM, OpenRouter, Groq, LM Studio; llama.cpp has meta.n_ctx. Source: their /v1/models."""
MODELS_MAX = 5
"""Findings to print; a provider may list hundreds."""


def check_upstreams(chosen: Chosen, environ: Mapping[str, str]) -> list[Finding]:
    """Return of every upstream that a request can go to whether it answers, and whether its
    windows hold the budget; the default first."""
    settings = chosen.settings
    return [
        finding
        for place in places(settings)
        for finding in _check(
            place, settings, environ, reason=chosen.reason if place == settings.upstream else ""
        )
    ]


def _check(
    place: str, settings: Settings, environ: Mapping[str, str], *, reason: str
) -> list[Finding]:
    row = settings.upstreams.get(place)
    target = row.url if row else place
    shown = without_credentials(target)
    if row:
        shown = f"{place} at {shown}"
    if reason:
        shown += f" ({reason})"
    if target == OFFLINE:
        return [Finding("upstream", shown)]
    key = environ.get(row.api_key_env, "") if row and row.api_key_env else ""
    if row and row.api_key_env and not key:
        fix = f"export {row.api_key_env}=..."
        return [Finding("upstream", f"{shown}: {row.api_key_env} is not set", fix)]
    if target.startswith(LITELLM):
        missing = [] if key else missing_keys(target.removeprefix(LITELLM))
        if missing:
            fix = f"export {missing[0]}=..., or let each client send its own key"
            return [Finding("upstream", f"{shown}: {', '.join(missing)} is not set", fix)]
        return [Finding("upstream", shown)]
    return _asked(target, shown, settings, key=key, key_name=row.api_key_env if row else "")


def _asked(
    target: str, shown: str, settings: Settings, *, key: str, key_name: str
) -> list[Finding]:
    try:
        reply = httpx.get(
            f"{target.rstrip('/')}/models",
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=TIMEOUT_S,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        fix = "start it, or name another with --upstream (`offline` always answers)"
        return [Finding("upstream", f"{shown} cannot be reached: {error}", fix)]
    if key and reply.status_code in (401, 403):
        return [Finding("upstream", f"{shown} refuses its key", f"mend {key_name}")]
    if reply.status_code >= 500:
        return [Finding("upstream", f"{shown} answers {reply.status_code}", "see its own log")]
    return [Finding("upstream", f"{shown} answers"), *_check_windows(settings, _listed(reply))]


def _listed(reply: httpx.Response) -> list[dict[str, Any]]:
    try:
        rows = reply.json()["data"]
        return [row for row in rows if isinstance(row.get("id"), str)]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


def _check_windows(settings: Settings, models: list[dict[str, Any]]) -> list[Finding]:
    findings = []
    for model in models:
        name, told = model["id"], told_window(model)
        own = settings.for_model(name)
        needed = own.budget_tokens + own.reply_reserve_tokens
        if told is not None and own.window_tokens is None and told < needed:
            text = f"{name} holds {told:,} tokens; budget and reply may need {needed:,}"
            fix = f'in the settings file: [models."{name}"] window_tokens = {told}'
            findings.append(Finding("window", text, fix))
    return findings[:MODELS_MAX]


def told_window(model: Mapping[str, Any]) -> int | None:
    """Return the context window that a server tells of a model."""
    meta = model.get("meta")
    values = [model.get(name) for name in WINDOW_FIELDS]
    values += [meta.get("n_ctx")] if isinstance(meta, dict) else []
    return next((value for value in values if isinstance(value, int) and value > 0), None)
