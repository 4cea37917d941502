"""The clients that most people use, as continuous integration runs them.

`scripts/clients` runs all of them. Each has an environment of its own at a pinned version, which is
made where it is missing (with --all).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.running.programs import PROGRAMS
from tests.e2e.answers import DONE, ROLE, call, chunk, error, stream
from tests.e2e.clients.conformance import RUN, STEPS, conform, run_started
from tests.e2e.clients.environments import Client, install, is_installed, listed_clients
from tests.e2e.clients.matrix import renewed
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.responses_answers import RESPONSES_PATH
from tests.e2e.stub_upstream import StubUpstream

PAIRS = [(one, protocol) for one in listed_clients().values() for protocol in one.protocols]
IN_CI = [pair for pair in PAIRS if pair[0].ci]


CHAT_PATH = "/v1/chat/completions"
CANARY = "sk-of-this-machine"
SETTINGS_OF_THIS_MACHINE = (
    "OPENAI_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
)


@pytest.fixture(autouse=True)
def machine_has_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, an organisation and addresses that no client may read."""
    for name in SETTINGS_OF_THIS_MACHINE:
        monkeypatch.setenv(name, f"http://{CANARY}" if "URL" in name else CANARY)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    started = ScriptedModel()
    started.start()
    yield started
    started.stop()


@pytest.mark.parametrize(
    ("client", "protocol"), IN_CI, ids=[f"{one.name}-{protocol}" for one, protocol in IN_CI]
)
def test_a_real_client_chats_past_the_budget_recalls_streams_calls_tools_fails_and_leaves(
    client: Client, protocol: str, model: ScriptedModel, request: pytest.FixtureRequest
) -> None:
    """Issue 5, proven with real clients."""
    if not is_installed(client):
        if not request.config.getoption("--all"):
            pytest.skip(f"`scripts/clients {client.name}` installs it")
        install(client)
    assert conform(client, protocol, model) == dict.fromkeys(client.steps(STEPS), "")
    for seen in model.requests:
        assert CANARY not in f"{seen.headers} {seen.body.decode()}", "a setting of this machine"


def test_codex_calls_a_tool_of_a_namespace_on_an_upstream_that_has_chat_completions_only(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It offers its sub-agents in one, and a web search of OpenAI's unless `run` starts it."""
    codex = listed_clients()["codex"]
    if not is_installed(codex):
        if not request.config.getoption("--all"):
            pytest.skip("`scripts/clients codex` installs it")
        install(codex)
    home = tmp_path / "home"
    home.mkdir()
    upstream = StubUpstream().start()
    asked = call("c1", "multi_agent_v1__close_agent", '{"target": "nobody"}')
    parts = [ROLE, chunk({"tool_calls": [{"index": 0, **asked}]}), chunk({}, finish="tool_calls")]
    try:
        upstream.script(error(404, {"error": {"message": "no such path"}}), path=RESPONSES_PATH)
        upstream.script(stream([*parts, DONE]), path=CHAT_PATH)
        done = run_started(
            codex, "responses", "Close it.", upstream=upstream.url, home=home,
            db=tmp_path / "library.db",
        )  # fmt: skip
    finally:
        upstream.stop()
    assert done.returncode == 0, done.stderr
    assert "web search is off" in done.stderr
    first, second = (seen.json for seen in upstream.requests if seen.path == CHAT_PATH)
    names = {tool["function"]["name"] for tool in first["tools"]}
    assert {"exec_command", "multi_agent_v1__spawn_agent"} <= names
    called, result = second["messages"][-2:]
    assert called["tool_calls"][0]["function"]["name"] == "multi_agent_v1__close_agent"
    assert "nobody" in result["content"], "Codex ran another tool, or none"


def test_every_client_has_a_program_and_pinned_versions() -> None:
    for client, protocol in PAIRS:
        assert protocol in ("chat", "responses", "messages")
        mark = "==" if client.kind == "python" else "@"
        assert all(mark in package[1:] for package in client.packages), client.packages


def test_every_program_that_run_knows_is_started_by_it() -> None:
    started = {words[0] for client, _ in PAIRS for words in client.run.values()}
    assert started >= {*PROGRAMS, "claude", "llm", "aider"}
    for client, _ in PAIRS:
        assert client.run.keys() <= {*client.protocols}


def test_a_run_of_some_clients_renews_their_rows_and_leaves_the_others() -> None:
    clients = listed_clients()
    openai, anthropic = clients["openai-python"], clients["anthropic-python"]
    rows = [(openai, "chat", dict.fromkeys((*STEPS, RUN), ""))]
    first = renewed(
        "a\n<!-- clients -->\n| gone | 1 | chat |\n<!-- /clients -->\nb\n", rows, clients
    )
    rows = [(anthropic, "messages", dict.fromkeys(STEPS[:-1], "") | {STEPS[-1]: "it hung"})]
    second = renewed(first, rows, clients)
    assert "gone" not in first
    table = second.partition("<!-- clients -->\n")[2].partition("<!-- /clients -->")[0].splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == ["| openai-python", "| anthropic-python"]
    assert table[2].count("passes") == len(STEPS) + 1
    assert table[3].endswith("| passes | fails | - |")
    assert (second[:2], second[-2:]) == ("a\n", "b\n")
