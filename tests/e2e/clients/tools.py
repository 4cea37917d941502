"""`scripts/conform`: programs of other people that test whether a server keeps to its protocols.

They need nothing but an address. Each looks at the gateway three times: in front of the built-in
upstream, which makes the answers of two protocols itself; in front of a server that speaks all
three, whose answers are relayed; and in front of one that has chat completions only, whose answers
are translated.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.clients.environments import environment, install, node
from tests.e2e.gateway_process import GatewayProcess

MODEL = "offline"
BUDGET_TOKENS = 32_000
"""Above what an image costs where its model is not known."""
TIMEOUT_S = 300
FORMATS = ("openai-chat", "open-responses", "anthropic")
"""llm-comply's; Google's protocols are not ours."""
TOOLS = ("llm-comply", "compatcanary")
ARRANGEMENTS = ("own answers", "relayed", "translated")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of a tool."""

    tool: str
    check: str
    status: str
    """`passed`, `warned`, `skipped` or `failed`."""
    words: str = ""


def scanned(url: str) -> Iterator[Finding]:
    """Yield what every tool finds at a server."""
    for form in FORMATS:
        yield from _comply(url, form)
    yield from _canary(url)


def _comply(url: str, form: str) -> Iterator[Finding]:
    command = str(environment("llm-comply").folder / "bin" / "llm-comply")
    arguments = ("-u", url, "-k", "sk-nobody", "-m", MODEL, "--format", form, "--json")
    for row in _told([command, *arguments])["results"]:
        words = "; ".join((row.get("errors") or []) + (row.get("warnings") or []))
        is_warned = row["status"] == "passed" and row.get("warnings")
        status = "warned" if is_warned else row["status"]
        yield Finding(f"llm-comply {form}", row["id"], status, words)


def _canary(url: str) -> Iterator[Finding]:
    script = environment("compatcanary").folder / "node_modules" / "compatcanary" / "src" / "cli.js"
    arguments = ("scan", "--base-url", url, "--model", MODEL, "--format", "json")
    names = {"pass": "passed", "warn": "warned", "fail": "failed", "skip": "skipped"}
    for row in _told([node(), str(script), *arguments])["results"]:
        yield Finding("compatcanary", row["id"], names[row["status"]], row["summary"])


def _told(command: list[str]) -> dict[str, Any]:
    """Return the JSON that a tool writes; its exit code only says whether all passed."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@contextmanager
def arranged(arrangement: str, folder: Path) -> Iterator[str]:
    """Serve a gateway of an arrangement; yield its address."""
    settings = {"budget_tokens": BUDGET_TOKENS}
    behind = GatewayProcess(db=folder / "behind.db", upstream="offline", settings=settings)
    gateway = behind
    try:
        if arrangement != "own answers":
            spoken = ["chat"] if arrangement == "translated" else ["chat", "messages", "responses"]
            config = folder / "library-of-context.toml"
            config.write_text(
                f'[upstreams.behind]\nurl = "{behind.url}"\nspeaks = {json.dumps(spoken)}\n',
                encoding="utf-8",
            )
            gateway = GatewayProcess(
                db=folder / "front.db", upstream="behind", config=config, settings=settings
            )
        yield gateway.url
    finally:
        gateway.stop()
        if gateway is not behind:
            behind.stop()


def findings(arrangement: str) -> list[Finding]:
    """Return what every tool finds at a gateway of an arrangement."""
    with tempfile.TemporaryDirectory(prefix="conform-") as name:
        folder = Path(name)
        with arranged(arrangement, folder) as url:
            return list(scanned(url))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arrangements", nargs="*", metavar="ARRANGEMENT", help=str(ARRANGEMENTS))
    given = parser.parse_args()
    unknown = {*given.arrangements} - {*ARRANGEMENTS}
    if unknown:
        parser.error(f"no arrangement is called {', '.join(sorted(unknown))}")
    for tool in TOOLS:
        install(environment(tool))
    failed = 0
    for arrangement in given.arrangements or ARRANGEMENTS:
        for one in findings(arrangement):
            failed += one.status == "failed"
            line = f"{arrangement:<12} {one.tool:<27} {one.check:<30} {one.status:<8} {one.words}"
            sys.stdout.write(f"{line.rstrip()}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
