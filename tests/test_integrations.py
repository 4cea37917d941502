"""The templates under deploy/integrations, read as the programs do that they are for."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from gateway.mcp.endpoint import PATH
from gateway.mcp.names import TOOLS
from gateway.settings import Settings

FOLDER = Path(__file__).parent.parent / "deploy" / "integrations"
URL = f"http://{Settings().host}:{Settings().port}{PATH}"


def servers(file: Path) -> dict[str, dict[str, object]]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        found: dict[str, dict[str, object]] = json.loads(text)["mcpServers"]
    else:
        found = tomllib.loads(text)["mcp_servers"]
    return found


@pytest.mark.parametrize("name", ["claude-code/mcp.stdio.json", "codex/config.stdio.toml"])
def test_a_template_starts_our_command(name: str) -> None:
    [server] = servers(FOLDER / name).values()
    assert (server["command"], server["args"]) == ("library-of-context", ["mcp"])


@pytest.mark.parametrize("name", ["claude-code/mcp.http.json", "codex/config.http.toml"])
def test_a_template_asks_the_default_address(name: str) -> None:
    [server] = servers(FOLDER / name).values()
    assert server["url"] == URL


def test_the_agents_text_names_tools_that_exist() -> None:
    text = (FOLDER / "codex" / "AGENTS.library.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)`", text)) - {"library", "replaces"}
    assert named and named <= {*TOOLS}


def test_every_template_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.parent != FOLDER]
    assert files
    assert all(path.relative_to(FOLDER).as_posix() in listed for path in files)
