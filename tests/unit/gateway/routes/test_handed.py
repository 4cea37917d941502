"""Turns of programs that call the model themselves, over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.serving import served


@pytest.mark.parametrize(
    ("field", "value"), [("session", "s" * 257), ("session", "a\nb"), ("event_id", "e" * 257)]
)
async def test_names_are_what_a_chats_headers_may_say(
    tmp_path: Path, field: str, value: str
) -> None:
    """DESIGN 4.2: at most 256 printable characters."""
    body: dict[str, Any] = {"session": "s", "message": "hello", field: value}
    async with (
        served(tmp_path) as client,
        client.post("/library/prepare", json=body) as answer,
    ):
        told = await answer.json()
        assert (answer.status, told["error"]["param"]) == (400, field)
