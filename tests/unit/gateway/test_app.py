"""The app in this process, where a blocking call of ours on the event loop is an error."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from blockbuster import blockbuster_ctx

from gateway.app import build_app
from gateway.cli.ports import bound_socket
from gateway.cli.serving import background
from gateway.settings import Settings
from gateway.upstream.offline import offline_app

BUDGET_TOKENS = 700
PACKAGES = ["gateway", "governor", "library"]


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    with blockbuster_ctx(PACKAGES):
        yield


@pytest_asyncio.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway whose upstream is the offline one, over real sockets."""
    async with background(offline_app(), bound_socket("127.0.0.1", 0)) as upstream:
        settings = Settings(
            db=str(tmp_path / "library.db"),
            upstream=f"{upstream}/v1",
            budget_tokens=BUDGET_TOKENS,
            desk_tokens=BUDGET_TOKENS // 4,
            protected_tokens=BUDGET_TOKENS // 8,
            strict_freshness=True,
            embedder="none",
        )
        app = build_app(settings, base_url=None, environ={})
        async with (
            background(app, bound_socket("127.0.0.1", 0)) as origin,
            httpx.AsyncClient(base_url=origin, timeout=30, trust_env=False) as opened,
        ):
            yield opened


async def streamed(http: httpx.AsyncClient, messages: list[dict[str, Any]]) -> httpx.Response:
    body = {"model": "gpt-4o-mini", "messages": messages, "stream": True}
    answer = await http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.text.endswith("data: [DONE]\n\n")
    return answer


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def test_a_streamed_paged_recorded_conversation_never_blocks_the_event_loop(
    http: httpx.AsyncClient,
) -> None:
    """STYLE, tests: `blockbuster`, SQLite and index files included."""
    talk = [said("The locker of the night shift has the number 5582.")]
    for turn in range(12):
        answer = await streamed(http, talk)
        talk.append({"role": "assistant", "content": f"Noted, {turn}."})
        talk.append(said(f"Note {turn}: " + f"the weather of day {turn} was dull. " * 12))
    talk[-1] = said("What number has the locker of the night shift?")
    answer = await streamed(http, talk)
    report = (await http.get(f"/library/turns/{answer.headers['x-library-turn']}")).json()
    assert report["is_paged"]
    assert report["swapped_in"]
    assert "5582" in answer.text


async def test_no_other_route_blocks_the_event_loop(http: httpx.AsyncClient) -> None:
    """STYLE, tests: every page of a gateway that has something to show, and a refused request."""
    answer = await streamed(http, [said("The locker has the number 5582.")])
    thread = answer.headers["x-library-session"]
    [event, _] = (await http.get(f"/library/threads/{thread}/events")).json()["events"]
    pages = ["/health", "/livez", "/readyz", "/metrics", "/v1/models"]
    pages += ["/library/status", "/library/threads", "/library/turns", "/library/search?q=locker"]
    pages += [f"/library/threads/{thread}/desk"]
    for page in pages:
        assert (await http.get(page)).status_code == 200, page
    pinned = await http.post("/library/pins", json={"event_id": event["id"]})
    assert pinned.status_code < 300, pinned.text
    assert (await http.get("/library/pins")).status_code == 200
    assert (await http.delete(f"/library/pins/{event['id']}")).status_code < 300
    assert (await http.post("/library/outbox/retry")).status_code < 300
    body = {"model": "gpt-4o-mini", "messages": [said("word " * 2_000)]}
    assert (await http.post("/v1/chat/completions", json=body)).status_code == 400
    forgotten = await http.delete(f"/library/threads/{thread}")
    assert forgotten.status_code < 300, forgotten.text
