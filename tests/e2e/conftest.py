"""Fixtures: one scripted upstream for all, one gateway for most, a gateway of its own for some."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.answers import Json
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import CHAT, Protocol
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import Client, Reply

BUDGET_TOKENS = 4_000
StartGateway = Callable[..., GatewayProcess]
Ask = Callable[..., tuple[Reply, Seen]]


@pytest.fixture(scope="session")
def upstream_process() -> Iterator[StubUpstream]:
    server = StubUpstream().start()
    yield server
    server.stop()


@pytest.fixture
def upstream(upstream_process: StubUpstream) -> Iterator[StubUpstream]:
    """The upstream, empty; every chat it gets must be legal and within the budget."""
    upstream_process.reset()
    upstream_process.budget_tokens = BUDGET_TOKENS
    yield upstream_process
    assert upstream_process.violations == []


@pytest.fixture(scope="session")
def shared_gateway(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    db = tmp_path_factory.mktemp("shared") / "library.db"
    gateway = GatewayProcess(
        db=db, upstream=upstream_process.url, settings={"budget_tokens": BUDGET_TOKENS}
    )
    yield gateway
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def gateway(shared_gateway: GatewayProcess, upstream: StubUpstream) -> GatewayProcess:
    """The common gateway: budget 4,000, no keys, an upstream that is `upstream`."""
    assert shared_gateway.process.poll() is None, shared_gateway.stderr
    return shared_gateway


@pytest.fixture(autouse=True)
def clients_are_closed() -> Iterator[None]:
    yield
    while Client.opened:
        Client.opened.pop().close()


@pytest.fixture
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """What the clients of a test speak: chat completions, unless the test is `in_each_protocol`."""
    chosen = getattr(request, "param", CHAT)
    assert isinstance(chosen, Protocol)
    return chosen


@pytest.fixture
def client(gateway: GatewayProcess, protocol: Protocol) -> Client:
    return Client(gateway.url, protocol)


@pytest.fixture
def ask(client: Client, upstream: StubUpstream) -> Ask:
    """Post a chat that must succeed; return the reply and what the upstream got for it."""

    def post(messages: list[Json], *, budget: int | None = None, **more: Any) -> tuple[Reply, Seen]:
        upstream.budget_tokens = budget or BUDGET_TOKENS
        reply = client.chat(messages, budget=budget, **more)
        assert reply.status == 200, reply.content
        return reply, upstream.last

    return post


@pytest.fixture
def start_gateway(upstream: StubUpstream, tmp_path: Path) -> Iterator[StartGateway]:
    """Start gateways with settings of their own; they are stopped at the end of the test."""
    started: list[GatewayProcess] = []

    def start(
        *, db: Path | None = None, config: Path | None = None, url: str | None = None, **given: Any
    ) -> GatewayProcess:
        environment = given.pop("environment", None)
        place = db or tmp_path / "own" / "library.db"
        place.parent.mkdir(exist_ok=True)
        gateway = GatewayProcess(
            db=place,
            upstream=url or upstream.url,
            settings={"budget_tokens": BUDGET_TOKENS} | given,
            config=config,
            environment=environment,
        )
        started.append(gateway)
        return gateway

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture(scope="session")
def fast_failing_process(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    db = tmp_path_factory.mktemp("failing") / "library.db"
    gateway = GatewayProcess(db=db, upstream=upstream_process.url, settings={"upstream_retries": 0})
    yield gateway
    gateway.stop()


@pytest.fixture
def fast_failing(fast_failing_process: GatewayProcess, upstream: StubUpstream) -> GatewayProcess:
    """A gateway that does not try again, for errors that would be worth a retry."""
    return fast_failing_process


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name no other test uses, so that tests on one gateway never share a thread."""
    return "topic" + "".join(c for c in request.node.nodeid.rpartition("::")[2] if c.isalnum())
