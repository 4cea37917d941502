"""Who may name an upstream in the path, and what becomes of the request."""

from typing import Any

import pytest

from gateway.addressing.door import ToDoor
from gateway.auth import LOCAL
from gateway.middleware import VISIT, Room, Visit, visit_of
from gateway.refusals import AddressForbidden
from gateway.settings import Settings
from gateway.telemetry import Telemetry


def scope(client: tuple[str, int] | None, path: str = "/to/https://openrouter.ai/api/v1/x") -> Any:
    room = Room(Telemetry(logs_text=False), requests_max=9, body_bytes_max=9)
    visit = Visit(LOCAL, room.enter(), "r")
    return {"type": "http", "client": client, VISIT: visit, "path": path, "raw_path": path.encode()}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_a_caller_on_this_machine_may_name_a_listed_host(host: str) -> None:
    let_in = ToDoor(Settings()).let_in(scope((host, 1)), "/v1")
    assert (let_in["path"], let_in["raw_path"]) == ("/v1/x", b"/v1/x")
    assert visit_of(let_in).principal.address == "https://openrouter.ai/api/v1"


@pytest.mark.parametrize("client", [("10.0.0.2", 1), ("::ffff:10.0.0.2", 1), None, ("/a/s", 0)])
def test_a_caller_from_elsewhere_may_not_unless_the_setting_says_so(
    client: tuple[str, int] | None,
) -> None:
    with pytest.raises(AddressForbidden, match="to_remote_callers"):
        ToDoor(Settings()).let_in(scope(client), "/v1")
    ToDoor(Settings(to_remote_callers=True)).let_in(scope(client), "/v1")


def test_a_host_that_is_not_listed_may_not_be_named() -> None:
    with pytest.raises(AddressForbidden, match="to_hosts"):
        ToDoor(Settings()).let_in(scope(("::1", 1), "/to/https://evil.example/v1/x"), "/v1")
