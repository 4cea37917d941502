"""Teams over HTTP and MCP: membership is in the keys file, and nowhere else (issue 6, scopes)."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx2 import AsyncClient
from mcp.client.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from tests.e2e.answers import Json, calls
from tests.e2e.answers import call as call_of
from tests.e2e.gateway_process import GatewayProcess, run_cli, wait_until
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, Reply, texts, user

MEMBERS = {"ann": ("core",), "ben": ("core", "sales"), "cyd": ("sales",), "dan": ()}
"""Of each key, its teams; the collection has the key's name."""
RECALL = "x-library-recall"
LOOKING = "gpt-4o-looking"
"""A model that may look things up."""


class Teams:
    """One gateway with keys in teams."""

    def __init__(self, gateway: GatewayProcess, keys: dict[str, str]) -> None:
        self.gateway = gateway
        self.keys = keys
        self.client = Client(gateway.url)

    def headers(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.keys[name]}"}

    def ask(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        return httpx.request(
            method,
            f"{self.gateway.origin}/library{path}",
            headers=self.headers(name),
            timeout=30,
            trust_env=False,
            verify=False,
            **options,
        )

    def remember(self, name: str, text: str, **more: object) -> Json:
        answer = self.ask(name, "POST", "/insights", json={"text": text, **more})
        assert answer.status_code == 201, answer.text
        found: Json = answer.json()
        return found

    def promote(self, name: str, record: str, **more: object) -> httpx.Response:
        return self.ask(name, "POST", "/promotions", json={"record": record, **more})

    def found(self, name: str, words: str, path: str = "/search") -> list[str]:
        """Return what is found that holds the first of the words."""
        rows = self.ask(name, "GET", path, params={"q": words}).json()
        found = [row["text"] for row in rows["hits" if path == "/search" else "lines"]]
        return [text for text in found if words.split()[0] in text]

    def chat(self, name: str, text: str, *, session: str, **headers: str) -> Reply:
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.client.chat([user(text)], session=session, headers=self.headers(name) | headers)


def add_key(file: Path, name: str, teams: tuple[str, ...]) -> str:
    named = [word for team in teams for word in ("--team", team)]
    done = run_cli("keys", "add", name, "--collection", name, *named, "--keys-file", str(file))
    return max(done.stdout.split(), key=len)


@pytest.fixture(scope="module")
def kept(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GatewayProcess, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("teams")
    keys = {name: add_key(folder / "keys.json", name, teams) for name, teams in MEMBERS.items()}
    config = folder / "library-of-context.toml"
    config.write_text(f'[models."{LOOKING}"]\nlookup_rounds = 2\n', encoding="utf-8")
    gateway = GatewayProcess(
        db=folder / "library.db",
        upstream=upstream_process.url,
        config=config,
        settings={"keys_file": folder / "keys.json", "recall": "team"},
    )
    yield gateway, keys
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def teams(kept: tuple[GatewayProcess, dict[str, str]], upstream: StubUpstream) -> Teams:
    return Teams(*kept)


def test_a_promoted_record_is_found_with_the_keys_of_its_team_alone(teams: Teams) -> None:
    text = "The teams-a staging port is 7741."
    insight = teams.remember("ann", text, type="decision", author="Ann")
    done = teams.promote("ann", insight["id"])
    assert done.status_code == 201
    copy = done.json()
    assert (copy["scope"], copy["team"], copy["state"]) == ("team", "core", "new")
    assert copy["origin"]["of"] == insight["id"]
    assert copy["origin"]["by"] == "ann"
    assert teams.found("ben", "teams-a staging port") == [text]
    assert teams.found("ben", "7741", "/grep") == [text]
    listed = teams.ask("ben", "GET", "/insights").json()["insights"]
    assert [one["text"] for one in listed if one["team"] == "core"] == [text]
    assert teams.ask("ben", "GET", f"/records/{copy['id']}").json()["text"] == text
    for stranger in ("cyd", "dan"):
        assert teams.found(stranger, "teams-a staging port") == []
        assert teams.found(stranger, "7741", "/grep") == []
        for path in (f"/records/{copy['id']}", f"/insights/{copy['id']}", "/events/e1"):
            assert teams.ask(stranger, "GET", path).status_code == 404
    assert teams.promote("ann", insight["id"]).status_code == 200


def test_no_word_of_the_caller_makes_a_member(teams: Teams) -> None:
    insight = teams.remember("cyd", "The teams-b ledger is green.")
    assert teams.promote("cyd", insight["id"], team="core").status_code == 403
    assert teams.promote("cyd", insight["id"], team="../core").status_code == 403
    assert teams.promote("dan", insight["id"], team="sales").status_code == 403
    assert teams.promote("dan", insight["id"]).status_code == 400
    assert teams.promote("ben", insight["id"]).status_code == 400, "which of two teams?"
    assert teams.promote("ben", insight["id"], team="sales").status_code == 404, "not ben's"
    for path in ("/search?q=x", "/insights", "/grep?q=x"):
        named = f"{path}{'&' if '?' in path else '?'}collection=team:core"
        shown = teams.ask("cyd", "GET", named)
        assert shown.status_code == 403 or "team" not in shown.text
    sent = teams.chat("dan", "teams-b?", session="teams-b", **{RECALL: "team"})
    assert sent.status == 403


def test_a_chat_recalls_from_the_teams_of_its_key_as_far_as_it_is_told(
    teams: Teams, upstream: StubUpstream
) -> None:
    text = "The teams-c kestrel flies at dawn over the harbour."
    insight = teams.remember("ann", text, author="Ann")
    teams.promote("ann", insight["id"], team="core")
    teams.gateway.wait_indexed()
    asked = "When does the teams-c kestrel fly over the harbour?"
    for recall, is_there in (("team", True), ("project", False), ("off", False), ("", True)):
        more = {RECALL: recall} if recall else {}
        reply = teams.chat("ben", asked, session=f"teams-c{recall}", **more)
        assert reply.status == 200
        assert ("flies at dawn" in texts(upstream.last.messages)) is is_there, recall
    assert teams.chat("cyd", asked, session="teams-c").status == 200
    assert "flies at dawn" not in upstream.last.body.decode()
    shown = next(one.body for one in upstream.requests if b"flies at dawn" in one.body)
    assert b"team core" in shown


def test_a_models_look_ups_read_the_shelves_of_its_callers_teams_and_no_others(
    teams: Teams, upstream: StubUpstream
) -> None:
    """Issue 5, look-ups; DESIGN 1.8: by search, and by an id that somebody gave away."""
    texts_of = {
        "core": "The teams-h beacon of the quay answers to magnolia.",
        "sales": "Spare lamps for that teams-h beacon: persimmon, and two more in the quay house.",
    }
    ids = {}
    for team, text in texts_of.items():
        insight = teams.remember("ben", text)
        ids[team] = teams.promote("ben", insight["id"], team=team).json()["id"]
    teams.gateway.wait_indexed()
    searching = [call_of("c", "library_search", json.dumps({"query": "teams-h beacon quay"}))]
    opening = [
        call_of(f"o{team}", "library_open", json.dumps({"id": record}))
        for team, record in ids.items()
    ]
    for name, recall, shelves in (
        ("ann", "team", {"core"}),
        ("cyd", "team", {"sales"}),
        ("ben", "team", {"core", "sales"}),
        ("ann", "project", set()),
        ("dan", "project", set()),
    ):
        for asked in (searching, opening):
            upstream.script(calls(*asked))
            reply = teams.client.chat(
                [user("Good morning.")],
                model=LOOKING,
                session=f"teams-h-{name}-{recall}-{len(asked)}",
                headers=teams.headers(name) | {RECALL: recall, "x-library-desk-tokens": "0"},
            )
            assert reply.status == 200
            first, second = upstream.chats[-2:]
            assert "library_search" in str(first.json["tools"])
            told = texts(second.messages)
            assert not any(text in texts(first.messages) for text in texts_of.values())
            assert {team for team, text in texts_of.items() if text in told} == shelves
            refused_count = len(ids) - len(shelves) if asked is opening else 0
            assert told.count("in this collection") == refused_count


def test_what_a_chat_has_on_its_desk_goes_with_the_promotion(
    teams: Teams, upstream: StubUpstream
) -> None:
    text = "The teams-d violin is kept in the granite cellar."
    insight = teams.remember("ann", text)
    copy = teams.promote("ann", insight["id"], team="core").json()
    teams.gateway.wait_indexed()
    asked = "Where is the teams-d violin kept?"
    first = teams.chat("ben", asked, session="teams-d")
    assert "granite cellar" in texts(upstream.last.messages)
    desk = teams.ask("ben", "GET", f"/threads/{first.thread_id}/desk").json()["desk"]
    assert [row["text"] for row in desk if "teams-d" in row["text"]] == [text]
    for name in ("ben", "cyd"):
        assert teams.ask(name, "DELETE", f"/promotions/{copy['id']}").status_code == 404
    undone = teams.ask("ann", "DELETE", f"/promotions/{insight['id']}")
    assert undone.json() == {"taken_back_count": 1}
    assert teams.chat("ben", asked, session="teams-d").status == 200
    assert "granite cellar" not in texts(upstream.last.messages)
    assert teams.found("ann", "teams-d violin") == [text]


def test_who_leaves_a_team_is_shown_nothing_of_it_any_more(
    teams: Teams, upstream: StubUpstream
) -> None:
    text = "The teams-e lantern hangs behind the copper door."
    insight = teams.remember("ann", text)
    teams.promote("ann", insight["id"], team="core")
    teams.gateway.wait_indexed()
    file = teams.gateway.db.with_name("keys.json")
    teams.keys["eve"] = add_key(file, "eve", ("core",))
    headers = teams.headers("eve")
    wait_until(lambda: teams.ask("eve", "GET", "/threads").status_code == 200, "eve may read")
    asked = "Where does the teams-e lantern hang?"
    assert teams.chat("eve", asked, session="teams-e").status == 200
    assert "copper door" in texts(upstream.last.messages)
    rows = json.loads(file.read_text(encoding="utf-8"))
    for row in rows["keys"]:
        if row["id"] == "eve":
            row["teams"] = []
    file.write_text(json.dumps(rows), encoding="utf-8")
    wait_until(lambda: text not in teams.found("eve", "teams-e lantern"), "eve has left")
    assert teams.headers("eve") == headers
    assert teams.chat("eve", asked, session="teams-e").status == 200
    assert "copper door" not in upstream.last.body.decode()


def test_no_key_can_have_a_teams_shelf_as_its_own(tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    for wrong in (
        ("--collection", "team:core"),
        ("--team", "a b"),
        ("--team", "core", "--scope", "thread"),
    ):
        done = run_cli("keys", "add", "x", *wrong, "--keys-file", file, check=False)
        assert done.returncode == 2, wrong
    run_cli("keys", "add", "x", "--team", "core", "--team", "ops", "--keys-file", file)
    listed = json.loads(run_cli("keys", "list", "--json", "--keys-file", file).stdout)
    assert listed[0]["teams"] == ["core", "ops"]


@asynccontextmanager
async def agent(teams: Teams, name: str) -> AsyncIterator[McpClient]:
    async with (
        AsyncClient(headers=teams.headers(name), timeout=30, trust_env=False) as http,
        McpClient(
            streamable_http_client(f"{teams.gateway.origin}/mcp", http_client=http)
        ) as client,
    ):
        yield client


async def call(client: McpClient, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, result
    return result.structured_content


async def test_agents_promote_recall_and_take_back_over_mcp(teams: Teams) -> None:
    text = "The teams-f orbit decays in spring."
    async with agent(teams, "ann") as ann, agent(teams, "ben") as ben, agent(teams, "cyd") as cyd:
        told = await call(ann, "remember", text=text)
        done = await call(ann, "promote", record=told["insight"]["id"])
        assert (done["scope"], done["team"], done["state"]) == ("team", "core", "new")
        recalled = await call(ben, "recall", subject="teams-f orbit")
        best = recalled["insights"][0]
        assert (best["text"], best["team"]) == (text, "core")
        newest = await call(ben, "recall")
        assert text in [one["text"] for one in newest["insights"]]
        assert (await call(ben, "open", record=done["id"]))["text"] == text
        desk = await call(ben, "desk_refresh", subject="teams-f orbit", session="teams-f")
        assert text in desk["block"]
        for tool in ("consult", "recall"):
            assert text not in str(await call(cyd, tool, subject="teams-f orbit"))
        assert text not in str(await call(cyd, "grep", pattern="teams-f"))
        assert (await call(ann, "demote", record=done["id"]))["taken_back"] == 1
        assert text not in (await call(ben, "desk_get", session="teams-f"))["block"]
        assert text in str(await call(ann, "consult", subject="teams-f orbit"))


def test_the_command_line_promotes_and_takes_back(teams: Teams) -> None:
    insight = teams.remember("ann", "The teams-g anchor is velvet.")
    gateway, name = teams.gateway, insight["id"]
    done = gateway.cli("promote", name, "--team", "core", "--collection", "ann", "--json")
    assert json.loads(done.stdout)["team"] == "core"
    assert teams.found("ben", "teams-g anchor") == ["The teams-g anchor is velvet."]
    assert "took back 1" in gateway.cli("promote", name, "--undo").stdout
    assert teams.found("ben", "teams-g anchor") == []
    assert gateway.cli("promote", name, "--undo", check=False).returncode == 1
    assert gateway.cli("promote", name, check=False).returncode == 2
