"""What `doctor` says of clients: whether one that is started from this shell finds the gateway, is
let in, and reaches it directly."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gateway.addressing.address import PREFIX
from gateway.auth import KeysFileUnusable, hashed, list_keys
from gateway.cli.checking.checks import Finding
from gateway.cli.ports import origin
from gateway.cli.running.programs import ANTHROPIC_VARIABLES, OPENAI_KEY, OPENAI_VARIABLES
from gateway.configuration import without_credentials
from gateway.settings import Settings
from library.lock import Owner

_PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def check_clients(
    settings: Settings, environ: Mapping[str, str], owner: Owner | None
) -> list[Finding]:
    """Return what was found of the variables that clients read."""
    base = f"{origin(settings.host, settings.port or Settings().port)}/v1"
    if owner is not None and owner.base_url:
        base = owner.base_url
    expected = dict.fromkeys(OPENAI_VARIABLES, base)
    expected |= dict.fromkeys(ANTHROPIC_VARIABLES, base.removesuffix("/v1"))
    given = [name for name in expected if environ.get(name)]
    findings = [_base_url(name, environ[name], expected[name]) for name in given]
    if not given:
        fix = f"export {OPENAI_VARIABLES[0]}={base}"
        run = "or `library-of-context run -- PROGRAM`"
        findings = [Finding("client", f"no base URL is set here; for clients: {fix}, {run}")]
    findings += _proxy(environ, urlsplit(base).hostname or "")
    findings += _key(settings, environ)
    return findings


def _base_url(name: str, given: str, expected: str) -> Finding:
    """Whether a variable leads to the gateway."""
    fix = f"export {name}={expected}"
    shown = without_credentials(given)
    bare = given.rstrip("/").replace("//localhost", "//127.0.0.1", 1)
    own = expected.replace("//localhost", "//127.0.0.1", 1)
    root = own.removesuffix("/v1")
    if bare == own or bare.startswith(root + PREFIX):
        return Finding("client", f"{name} is {shown}")
    if bare == root:
        return Finding("client", f"{name} is {shown}, which lacks /v1", fix)
    if bare == f"{root}/v1":
        return Finding("client", f"{name} is {shown}: its clients add /v1 themselves", fix)
    return Finding("client", f"{name} is {shown}, which is not the gateway", fix)


def _proxy(environ: Mapping[str, str], host: str) -> list[Finding]:
    """Whether a proxy stands between clients of this shell and the gateway."""
    proxy = next((name for name in _PROXIES if environ.get(name)), None)
    if proxy is None:
        return []
    excepted = f"{environ.get('NO_PROXY', '')},{environ.get('no_proxy', '')}"
    if host in excepted or "*" in excepted.split(","):
        return []
    text = f"{proxy} is set: clients send what is for {host} to that proxy"
    return [Finding("client", text, f"export NO_PROXY={host} no_proxy={host}")]


def _key(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Whether the key of this shell is one of the gateway's, where it has keys."""
    key = environ.get(OPENAI_KEY)
    if not settings.keys_file or not key:
        return []
    try:
        known = {one.sha256 for one in list_keys(Path(settings.keys_file))}
    except KeysFileUnusable:
        return []  # `check_keys_file` says so.
    if not known or hashed(key) in known:
        return []
    fix = f"export {OPENAI_KEY}=KEY, which `library-of-context keys add` showed"
    return [Finding("client", f"{OPENAI_KEY} is no key of this gateway", fix)]
