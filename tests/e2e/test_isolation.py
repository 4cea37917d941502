"""Keys, collections and isolation over HTTP (DESIGN 1.8, 9; CASES H3)."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.answers import Json
from tests.e2e.gateway_process import GatewayProcess, run_cli
from tests.e2e.protocols import CHAT, Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, Reply, assistant, filler, texts, user

OWNERS = ("ada", "ben", "cyd")
LEAVER = "dan"
"""His key is revoked by a test."""


class Household:
    """One gateway with a key for each of three people, a collection each."""

    def __init__(
        self, gateway: GatewayProcess, keys: dict[str, str], protocol: Protocol = CHAT
    ) -> None:
        self.gateway = gateway
        self.keys = keys
        self.keys_file = gateway.db.with_name("keys.json")
        self.client = Client(gateway.url, protocol)

    def headers(self, owner: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.keys[owner]}"}

    def chat(self, owner: str, messages: list[Json], **more: object) -> Reply:
        return self.client.chat(messages, headers=self.headers(owner), **more)  # type: ignore[arg-type]


def add_key(keys_file: Path, owner: str) -> str:
    """Make a key as a user does, and return it from what is printed once."""
    done = run_cli("keys", "add", owner, "--collection", owner, "--keys-file", str(keys_file))
    return max(done.stdout.split(), key=len)


@pytest.fixture(scope="module")
def kept(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GatewayProcess, dict[str, str]]]:
    """The gateway and its keys, for all tests here: each has threads of its own."""
    folder = tmp_path_factory.mktemp("household")
    keys = {owner: add_key(folder / "keys.json", owner) for owner in (*OWNERS, LEAVER)}
    gateway = GatewayProcess(
        db=folder / "library.db",
        upstream=upstream_process.url,
        settings={"keys_file": folder / "keys.json", "recall": "project"},
    )
    yield gateway, keys
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def household(
    kept: tuple[GatewayProcess, dict[str, str]], upstream: StubUpstream, protocol: Protocol
) -> Household:
    return Household(*kept, protocol)


def test_no_key_and_a_wrong_key_are_refused(
    household: Household, upstream: StubUpstream, topic: str
) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eDp5"}):
        reply = household.client.chat([user(topic)], headers=headers)
        assert reply.status == 401
        assert reply.json["error"]["code"] == "invalid_api_key"
        for path in ("/library/threads", "/library/status", "/v1/models", "/v1/files"):
            assert household.gateway.get(path, headers=headers).status_code == 401
    assert upstream.requests == []


def test_health_needs_no_key(household: Household) -> None:
    assert household.gateway.get("/health").status_code == 200


def test_a_gateway_key_is_stored_hashed_and_never_sent_on(
    household: Household, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 9."""
    reply = household.chat("ada", [user(topic)])
    assert reply.status == 200
    key = household.keys["ada"]
    assert all(key not in value for _, value in upstream.last.headers)
    assert key not in household.keys_file.read_text(encoding="utf-8")
    assert household.gateway.files_holding(key) == []
    assert key not in household.gateway.stderr


def test_a_revoked_key_is_refused(household: Household, topic: str) -> None:
    """Issue 2: `keys revoke`; a running gateway sees it."""
    assert household.chat(LEAVER, [user(topic)]).status == 200
    run_cli("keys", "revoke", LEAVER, "--keys-file", str(household.keys_file))
    until = time.monotonic() + 5
    while household.chat(LEAVER, [user(topic)]).status == 200 and time.monotonic() < until:
        time.sleep(0.05)
    assert household.chat(LEAVER, [user(topic)]).status == 401
    assert household.chat("ada", [user(topic)]).status == 200


@in_each_protocol
def test_a_session_id_counts_only_inside_its_own_keys_collection(
    household: Household, upstream: StubUpstream, topic: str
) -> None:
    """CASES H3 (claude-code-hub PR#793)."""
    one = household.chat("ada", [user(f"{topic} hers")], session=topic)
    two = household.chat("ben", [user(f"{topic} his")], session=topic)
    three = household.chat("ben", [user("what did I say?")], session=topic)
    assert {one.status, two.status, three.status} == {200}
    assert "hers" not in texts(upstream.last.messages)
    assert f"{topic} his" in texts(upstream.last.messages)
    rows = household.gateway.events()
    assert {r["collection"] for r in rows if r["text"] == f"{topic} hers"} == {"ada"}
    assert {r["collection"] for r in rows if r["text"] == f"{topic} his"} == {"ben"}


@in_each_protocol
def test_equal_transcripts_of_two_keys_are_two_threads(household: Household, topic: str) -> None:
    """CASES H3, by content."""
    first = household.chat("ada", [user(topic)])
    second = household.chat("ben", [user(topic)])
    assert first.thread_id != second.thread_id


@pytest.mark.parametrize("seed", range(3))
def test_no_request_of_one_key_ever_shows_text_of_another(
    household: Household, upstream: StubUpstream, topic: str, seed: int
) -> None:
    """DESIGN 1.8: random talks with one vocabulary; every prompt, header and page is searched."""
    chance = random.Random(seed)
    talks: dict[tuple[str, str], list[Json]] = {}
    threads: dict[str, set[str]] = {owner: set() for owner in OWNERS}
    turns: dict[str, list[str]] = {owner: [] for owner in OWNERS}
    upstream.budget_tokens = 900
    for step in range(48):
        owner, session = chance.choice(OWNERS), chance.choice([f"{topic}1", f"{topic}2", ""])
        talk = talks.setdefault((owner, session), [])
        subject = chance.choice(["ledger", "harbour", "violin"])
        talk.append(
            user(f"{subject} of owner-{owner}: {filler(f'{seed}{step}', words=40)} {subject}?")
        )
        budget = chance.choice([900, 500])
        reply = household.chat(owner, talk, session=session or None, budget=budget)
        assert reply.status == 200
        talk.append(assistant(reply.text))
        threads[owner].add(reply.thread_id)
        turns[owner].append(reply.turn_id)
        seen = upstream.last.body.decode()
        assert not any(f"owner-{other}" in seen for other in OWNERS if other != owner)
        if step % 15 == 0:
            household.gateway.wait_indexed()
    for owner in OWNERS:
        mine = household.gateway.get("/library/threads", headers=household.headers(owner)).text
        for other in OWNERS:
            if other == owner:
                continue
            assert f"owner-{other}" not in mine
            assert not any(thread in mine for thread in threads[other])
            for turn in turns[other][:3]:
                path = f"/library/turns/{turn}"
                answer = household.gateway.get(path, headers=household.headers(owner))
                assert answer.status_code == 404
            for thread in threads[other]:
                path = f"/library/threads/{thread}/desk"
                answer = household.gateway.get(path, headers=household.headers(owner))
                assert answer.status_code == 404


def test_an_answers_id_is_known_in_its_own_collection_only(
    household: Household, topic: str
) -> None:
    """CASES H3: neither to go on from, nor to be read, nor to be deleted."""
    http, as_ben = household.client.http, household.headers("ben")
    body = {"model": MODEL, "input": f"the secret of {topic}"}
    mine = http.post("/responses", json=body, headers=household.headers("ada")).json()["id"]
    theirs = http.post("/responses", json={**body, "previous_response_id": mine}, headers=as_ben)
    assert theirs.json()["error"]["code"] == "previous_response_not_found"
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items")):
        answer = http.request(method, f"/responses/{mine}{path}", headers=as_ben)
        assert answer.status_code == 404
        assert topic not in answer.text
    assert http.get(f"/responses/{mine}", headers=household.headers("ada")).status_code == 200
