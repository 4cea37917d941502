"""A gateway that serves real requests is killed with SIGKILL at random moments, again and again.

Several clients chat at once over HTTP, streamed; each goes on where it was after every restart, as
people do: the message that got no answer is sent again. After each kill the file is opened by
others (SQLite's own check, `verify`); every reply whose end a client saw must be there, and nothing
twice. At the end the index must be the one that an undisturbed gateway makes of the same talks.

`scripts/crash --rounds 200` is the long form.
"""

import contextlib
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.answers import Answer, Json, Pause, stream, streamed
from tests.e2e.gateway_process import GatewayProcess, events, rows
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import MODEL, assistant, filler, user

CLIENTS = 6
TRAFFIC_MAX_S = 0.6
ANSWER_MAX_S = 60.0
"""On a machine at a load of fifteen the first answers after a start took ten, for one of CPU."""
SETTINGS = {"budget_tokens": 2_000}
INDEX = """
    SELECT event.body AS body, spans, identity, hex(rows) AS rows
    FROM indexed JOIN event ON event.seq = indexed.seq
    LEFT JOIN vector ON vector.seq = event.seq LEFT JOIN embedder ON no = embedder_no
"""


def answer_slowly(seen: Seen) -> Answer:
    """Stream what hangs on the question alone, with gaps for the kill to fall into."""
    question = str(seen.messages[-1]["content"]).rpartition("\n")[2]
    whole = streamed(f"about {question[-80:]}")
    gap = Pause(0.001 + seen.number % 5 / 500)
    return stream(list(itertools.chain.from_iterable((step, gap) for step in whole.steps)))


class Chatter:
    """One user. Knows what it said, and which replies it saw to their end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.talk: list[Json] = []
        self.seen: list[str] = []

    def chat(self, url: str, stop: threading.Event, replied: threading.Semaphore) -> None:
        """Chat until told to stop (one turn at least), or until the gateway is gone."""
        with httpx.Client(
            base_url=url, timeout=ANSWER_MAX_S, trust_env=False, verify=False
        ) as http:
            while True:
                self._next_question()
                try:
                    text = self._ask(http)
                except httpx.HTTPError:
                    return
                if text is None:
                    return
                self.seen.append(text)
                self.talk.append(assistant(text))
                replied.release()
                if stop.is_set():
                    return

    def _next_question(self) -> None:
        if not self.talk or self.talk[-1]["role"] == "assistant":
            turn = len(self.talk) // 2
            words = filler(f"{self.name}{turn}", words=30)
            self.talk.append(user(f"{words}\n{self.name} turn {turn}"))

    def _ask(self, http: httpx.Client) -> str | None:
        """Return the reply if its end was seen."""
        body = {"model": MODEL, "messages": self.talk, "stream": True}
        with http.stream("POST", "/chat/completions", json=body) as response:
            received = b"".join(response.iter_raw())
        if b"data: [DONE]" not in received:
            return None
        chunks = [
            json.loads(line[6:]) for line in received.split(b"\n\n") if line.startswith(b"data: {")
        ]
        return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)


@contextlib.contextmanager
def upstream_running() -> Iterator[StubUpstream]:
    upstream = StubUpstream().start()
    upstream.respond = answer_slowly
    upstream.budget_tokens = SETTINGS["budget_tokens"]
    yield upstream
    assert upstream.violations == []
    upstream.stop()


def run_round(
    chatters: list[Chatter], gateway: GatewayProcess, *, traffic_s: float | None, replies: int = 0
) -> None:
    """Let all chat; `traffic_s` after so many replies kill the gateway, or (None) let all end."""
    stop, replied = threading.Event(), threading.Semaphore(0)
    threads = [threading.Thread(target=c.chat, args=(gateway.url, stop, replied)) for c in chatters]
    for thread in threads:
        thread.start()
    for _ in range(replies):
        assert replied.acquire(timeout=2 * ANSWER_MAX_S), gateway.stderr[-4_000:]
    if traffic_s is not None:
        threads[0].join(traffic_s)
        gateway.kill()
    stop.set()
    for thread in threads:
        thread.join(ANSWER_MAX_S)
        assert not thread.is_alive()


def check_file(db: Path, chatters: list[Chatter]) -> None:
    """Look at the file as it was left, before any gateway opens it again."""
    assert rows(db, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    stored = Counter(row["text"] for row in events(db))
    assert max(stored.values(), default=1) == 1, stored.most_common(3)
    missing = [text for chatter in chatters for text in chatter.seen if text not in stored]
    assert missing == []


def index_of(db: Path) -> list[tuple[Any, ...]]:
    """Return what is indexed, by content: no sequence, id or time."""
    return sorted(
        (json.loads(row["body"])["content"], row["spans"], row["identity"], row["rows"])
        for row in rows(db, INDEX)
    )


def best(gateway: GatewayProcess, words: str) -> str:
    """Return the best hit; of the many that are alike further down, either order is right."""
    return found(gateway, words)[0]


def found(gateway: GatewayProcess, words: str) -> list[str]:
    """Return hits, in one line each. The texts are of few words, and what stands beside a find
    counts, too: of a hundred such texts about one is not the best find of its own words."""
    answer = gateway.get("/library/search", params={"q": words, "limit": 20}).json()
    return [str(hit["text"]).replace("\n", " ") for hit in answer["hits"]]


def test_no_kill_loses_doubles_or_damages_anything(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Issue 2, durability: crash test."""
    rounds = request.config.getoption("--rounds")
    chance = random.Random(rounds)
    chatters = [Chatter(f"client{n}") for n in range(CLIENTS)]
    db = tmp_path / "disturbed" / "library.db"
    db.parent.mkdir()
    with upstream_running() as upstream:
        for number in range(rounds):
            gateway = GatewayProcess(db=db, upstream=upstream.url, settings=SETTINGS)
            # On a slow machine a kill by the clock alone always falls before the first reply.
            replies = 2 if number % 2 else 0
            traffic_s = chance.uniform(0.02, TRAFFIC_MAX_S)
            run_round(chatters, gateway, traffic_s=traffic_s, replies=replies)
            check_file(db, chatters)
        last = GatewayProcess(db=db, upstream=upstream.url, settings=SETTINGS)
        run_round(chatters, last, traffic_s=None)
        last.wait_indexed()
        assert last.status()["quarantined"] == []
        check_file(db, chatters)
        assert last.cli("verify").stdout.startswith("OK")
        compare_with_undisturbed(chatters, last, upstream, tmp_path)
        assert last.stop() == 0
    assert sum(len(c.seen) for c in chatters) > rounds


def compare_with_undisturbed(
    chatters: list[Chatter], disturbed: GatewayProcess, upstream: StubUpstream, tmp_path: Path
) -> None:
    db = tmp_path / "undisturbed" / "library.db"
    db.parent.mkdir()
    other = GatewayProcess(db=db, upstream=upstream.url, settings=SETTINGS)
    for chatter in chatters:
        again = Chatter(chatter.name)
        again.talk = chatter.talk[:-1]
        with httpx.Client(base_url=other.url, timeout=ANSWER_MAX_S, trust_env=False) as http:
            assert again._ask(http) == chatter.talk[-1]["content"]
    other.wait_indexed()
    assert sorted(r["text"] for r in other.events()) == sorted(
        r["text"] for r in disturbed.events()
    )
    undisturbed, found_there = index_of(db), index_of(disturbed.db)
    differing = [row[:3] for row in {*undisturbed} ^ {*found_there}]
    assert sorted(differing) == []
    assert undisturbed == found_there
    last_question = str(chatters[2].talk[-2]["content"]).replace("\n", " ")
    for words in ("about client1 turn 0", last_question):
        assert best(other, words) == best(disturbed, words)
        assert any(words in text for text in found(disturbed, words))
    assert "about client1 turn 0" in best(disturbed, "about client1 turn 0")
    assert other.stop() == 0
