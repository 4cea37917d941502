"""What the gateway's tests share: an upstream that does as it is told, one a module."""

from collections.abc import Iterator

import pytest

from tests.e2e.stub_upstream import StubUpstream


@pytest.fixture(scope="module")
def server() -> Iterator[StubUpstream]:
    """Reset it before use: it remembers what earlier tests of the module sent."""
    stub = StubUpstream().start()
    yield stub
    stub.stop()
