"""Turns of programs that call the model themselves, over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from gateway.auth import add_key
from gateway.routes import handed
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


async def test_who_prepares_many_turns_takes_no_others_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 1.8."""
    monkeypatch.setattr(handed, "WAITING_MAX", 2)
    file = tmp_path / "keys.json"
    keys = {name: add_key(file, key_id=name, collection=name)[1] for name in ("ann", "ben")}
    async with served(tmp_path, keys_file=str(file)) as client:

        async def posted(name: str, path: str, **body: str) -> tuple[int, Any]:
            headers = {"authorization": f"Bearer {keys[name]}"}
            async with client.post(f"/library/{path}", json=body, headers=headers) as answer:
                return answer.status, await answer.json()

        _, anns = await posted("ann", "prepare", session="s", message="hello")
        bens = [await posted("ben", "prepare", session="s", message=f"{at}") for at in range(3)]
        ended = [("ann", anns), *(("ben", one) for _, one in bens)]
        codes = [
            (await posted(name, "commit", session="s", content="hi", turn_id=one["turn_id"]))[0]
            for name, one in ended
        ]
        assert codes == [200, 404, 404, 200]


async def test_an_answer_that_nothing_waits_for_is_refused(tmp_path: Path) -> None:
    """A misspelt session made a thread of an answer alone, and an answer committed twice stood
    twice."""
    async with served(tmp_path) as client:

        async def posted(path: str, **body: str) -> tuple[int, Any]:
            async with client.post(f"/library/{path}", json=body) as answer:
                return answer.status, await answer.json()

        await posted("prepare", session="notes", message="hello")
        assert (await posted("commit", session="notse", content="hi"))[0] == 404
        assert (await posted("commit", session="notes", content="hi"))[0] == 200
        status, told = await posted("commit", session="notes", content="hi again")
        assert status == 404
        assert "no turn without an answer in session 'notes'" in told["error"]["message"]
        async with client.get("/library/threads") as answer:
            [thread] = (await answer.json())["threads"]
        assert (thread["session_id"], thread["event_count"]) == ("notes", 2)
