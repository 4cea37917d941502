"""Secrets-looking text replaced before it is stored (`mask_secrets`). Pure.

Only shapes that are secrets by their form: a rule that also catches ordinary hexadecimal or a
password-like word would damage code and logs that the library exists to give back unchanged. The
mask tells the kind and nothing else, not even the length: `[masked openai key]`.
"""

import re
from collections.abc import Mapping
from typing import Any

_SHAPES = {
    "private_key": (
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"[\s\S]{0,20000}?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    ),
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "anthropic_key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "openai_key": r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}",
    "stripe_key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "github_token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    "gitlab_token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "slack_token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "aws_access_key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "aws_secret_key": (
        r"(?i:(?<=aws_secret_access_key)|(?<=secretaccesskey)|(?<=secret_access_key))"
        r"[\\\"'\s:=]{1,8}[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=])"
    ),
    "google_key": r"\bAIza[A-Za-z0-9_-]{35}",
    "google_oauth": r"\bya29\.[A-Za-z0-9_-]{20,}",
    "huggingface_token": r"\bhf_[A-Za-z0-9]{30,}",
    "npm_token": r"\bnpm_[A-Za-z0-9]{36}",
    "pypi_token": r"\bpypi-[A-Za-z0-9_-]{50,}",
    "groq_key": r"\bgsk_[A-Za-z0-9]{40,}",
    "xai_key": r"\bxai-[A-Za-z0-9]{40,}",
    "bearer_token": r"(?i:\bbearer)[ \t]+[A-Za-z0-9._~+/-]{20,}=*",
    "url_password": r"(?<=://)[^\s:/@]{1,64}:[^\s/@]{3,128}(?=@)",
}
_PATTERN = "|".join(f"(?P<{kind}>{shape})" for kind, shape in _SHAPES.items())
_SECRET = re.compile(_PATTERN)
_LOWER_CASE_SECRET = re.compile(_PATTERN, re.IGNORECASE)


def mask(text: str) -> str:
    """Return `text` with everything that has the shape of a secret replaced by its kind."""
    return _SECRET.sub(_kind, text)


def mask_tag(tag: str) -> str:
    """Return the same of a tag, which was made lower case, the secret in it too."""
    return _LOWER_CASE_SECRET.sub(_kind, tag)


def _kind(found: re.Match[str]) -> str:
    return f"[masked {str(found.lastgroup).replace('_', ' ')}]"


def mask_message(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with every string in it masked; a name that is the end of its source is cut
    from the masked one, since half a secret has no form to be known by."""
    masked: dict[str, Any] = mask_body(body)
    name, source = body.get("name"), body.get("source")
    if isinstance(name, str) and name and isinstance(source, str) and source.endswith(name):
        masked["name"] = masked["source"][-len(name) :]
    return masked


def mask_body(value: Any) -> Any:
    """Return a JSON value with every string in it masked; keys are left alone."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {key: mask_body(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_body(item) for item in value]
    return value
