"""What `doctor` asks the upstream: whether it answers, and how long its models' windows are.

Only `GET /models`, which costs nothing anywhere. A window smaller than the budget is the one fault
that shows late and far from its cause - a local server cuts the prompt without a word - so it is
looked for here, in the fields by which servers tell it.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from gateway.cli.checks import Finding
from gateway.configuration import without_credentials
from gateway.settings import Settings
from gateway.upstream.discovery import Chosen

TIMEOUT_S = 5.0
WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""vLLM, OpenRouter, Groq, LM Studio; llama.cpp has meta.n_ctx. Source: their /v1/models."""
MODELS_MAX = 5
"""Findings to print; a provider may list hundreds."""


def check_upstream(chosen: Chosen, environ: Mapping[str, str]) -> list[Finding]:
    """Return whether the upstream answers, and whether its windows hold the budget."""
    settings = chosen.settings
    row = settings.upstreams.get(settings.upstream)
    target = row.url if row else settings.upstream
    if not target.startswith("http"):
        return [Finding("upstream", f"{target} ({chosen.reason or 'as set'})")]
    shown = without_credentials(target)
    key = environ.get(row.api_key_env, "") if row and row.api_key_env else ""
    if row and row.api_key_env and not key:
        fix = f"export {row.api_key_env}=..."
        return [Finding("upstream", f"{shown}: {row.api_key_env} is not set", fix)]
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
        assert row is not None
        return [Finding("upstream", f"{shown} refuses its key", f"mend {row.api_key_env}")]
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
