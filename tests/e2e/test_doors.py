"""Who may come in, how many at once, and what a mere observer sees (DESIGN 8, 9; issue 2)."""

import threading

import httpx
import pytest

from tests.e2e.answers import Gate, said, stream
from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess, run_cli
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, small_talk, user

PATHS = ("/v1/models", "/library/status", "/library/threads", "/metrics")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_foreign_host_name_is_refused(gateway: GatewayProcess, path: str, host: str) -> None:
    """DESIGN 9: DNS rebinding."""
    answer = gateway.get(path, headers={"host": host})
    assert answer.status_code in {400, 403, 421}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_loopback_names_are_welcome(gateway: GatewayProcess, host: str) -> None:
    port = gateway.origin.rpartition(":")[2]
    assert gateway.get("/library/status", headers={"host": f"{host}:{port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"]
)
def test_a_foreign_page_can_neither_read_nor_post(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str, origin: str
) -> None:
    """DESIGN 9: Origin."""
    assert gateway.get("/library/threads", headers={"origin": origin}).status_code == 403
    posted = httpx.post(
        f"{gateway.url}/chat/completions",
        json={"model": "m", "messages": [user(topic)]},
        headers={"origin": origin},
    )
    assert posted.status_code == 403
    assert upstream.chats == []


def test_allowed_hosts_and_origins_are_let_in(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    gateway = start_gateway(allowed_hosts="lib.example", allowed_origins="https://app.example")
    headers = {"host": "lib.example", "origin": "https://app.example"}
    assert gateway.get("/library/status", headers=headers).status_code == 200


def test_an_open_bind_without_keys_refuses_to_start() -> None:
    """DESIGN 9."""
    done = run_cli("serve", "--host", "0.0.0.0", "--port", "0", check=False)
    assert done.returncode == 2
    assert "keys_file" in done.stderr


def test_overload_is_answered_429_before_memory_runs_out(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 8: with retry-after; those inside are served to their end."""
    gateway = start_gateway(max_inflight_requests=4)
    gates = [Gate() for _ in range(4)]
    upstream.script(*(stream([gate], before=()) for gate in gates))
    statuses: list[int] = []

    def post(number: int) -> None:
        client = Client(gateway.url)
        statuses.append(client.chat([user(f"{topic} {number}")], stream=True).status)

    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    upstream.wait_for_chats(4)
    client = Client(gateway.url)
    refused = client.chat([user(f"{topic} one too many")])
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json["error"]["type"]
    assert gateway.get("/health").status_code == 200
    for gate in gates:
        gate.open()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 4
    assert client.chat([user(f"{topic} now")]).status == 200


def test_an_observer_records_and_reports_and_changes_nothing(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """Issue 2, --observe."""
    gateway = start_gateway(observe="true", budget_tokens=1_000)
    client = Client(gateway.url)
    upstream.budget_tokens = None
    talk = [*small_talk(topic, turns=20), user("so?")]
    first = client.chat(talk)
    gateway.wait_indexed()
    talk += [assistant(first.text), user(f"{topic} question 2?")]
    second = client.chat(talk)
    assert upstream.last.messages == talk
    report = gateway.report(second.turn_id)
    assert report["is_observe"]
    assert report["prompt_tokens"] <= 1_000 < report["client_tokens"]
    assert report["paged_out_count"] > 0
    assert report["swapped_in"]
    assert len([r for r in gateway.events() if r["thread_id"] == second.thread_id]) == len(talk) + 1


def test_forgetting_a_thread_leaves_no_trace_in_any_file(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 9: events, passages, vectors, links, desks and caches; the test greps the files."""
    gateway = start_gateway()
    client = Client(gateway.url)
    secret, kept = "Xanthippe41", "Zenobia42"
    upstream.script(said(f"I will remember {secret}"))
    talk = [user(f"{topic} the word is {secret}"), assistant("ok"), *small_talk(topic, turns=16)]
    upstream.budget_tokens = 1_200
    gone = client.chat([*talk, user(f"say {secret}")], budget=1_200, session="gone")
    client.chat([user(f"{topic} the other word is {kept}")], session="kept")
    gateway.wait_indexed()
    client.chat(
        [*talk, user(f"say {secret}"), assistant(gone.text), user(f"what was {secret}?")],
        budget=1_200,
        session="gone",
    )
    gateway.wait_indexed()
    assert gateway.files_holding(secret)
    gateway.cli("forget", gone.thread_id, "--yes")
    assert gateway.files_holding(secret) == []
    assert gateway.files_holding(secret.lower()) == []
    assert gateway.files_holding(kept)
    again = client.chat([user(f"{topic} who said {secret[:9]}?")], session="gone")
    assert again.status == 200
    assert gateway.cli("verify").stdout.startswith("OK")


@pytest.mark.parametrize("path", ["/library/turns/none", "/library/threads/none/desk", "/nowhere"])
def test_what_does_not_exist_is_404_in_openais_shape(gateway: GatewayProcess, path: str) -> None:
    answer = gateway.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"].keys() >= {"message", "type", "code"}


def test_threads_and_desks_can_be_read(ask: Ask, gateway: GatewayProcess, topic: str) -> None:
    """Issue 2: /library/threads, /library/threads/{id}/desk."""
    talk = [user(f"{topic} the moa room is 77"), assistant("ok"), *small_talk(topic, turns=14)]
    first, _ = ask([*talk, user("so")], budget=1_200)
    gateway.wait_indexed()
    ask([*talk, user("so"), assistant(first.text), user("which is the moa room?")], budget=1_200)
    listed = gateway.get("/library/threads").json()
    assert first.thread_id in str(listed)
    assert topic in str(listed)
    desk = gateway.get(f"/library/threads/{first.thread_id}/desk")
    assert desk.status_code == 200
    assert "moa room is 77" in desk.text
