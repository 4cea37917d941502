"""Gateway keys: made, found, revoked, and never shown again."""

import os
import sys
from pathlib import Path

import pytest

from gateway.auth import (
    CHECK_EVERY_S,
    KeyNameTaken,
    Keyring,
    KeysFileUnusable,
    Principal,
    add_key,
    list_keys,
    presented_key,
    revoke_key,
)
from gateway.refusals import KeyRequired


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


async def test_a_key_opens_its_own_collection(file: Path) -> None:
    _, clear = add_key(file, key_id="ada", collection="ada", scopes=("thread",), budget_tokens=900)
    ring = Keyring(file, monotonic_s=Clock())
    assert await ring.principal(clear) == Principal(
        "ada", name="ada", scopes=("thread",), budget_tokens=900, is_keyed=True
    )
    for wrong in (None, "", clear[:-1], clear + "x", clear.upper()):
        with pytest.raises(KeyRequired):
            await ring.principal(wrong)


def test_the_file_keeps_a_hash_and_is_the_owners_alone(file: Path) -> None:
    key, clear = add_key(file, key_id="ada", collection="ada")
    assert clear not in file.read_text(encoding="utf-8")
    assert clear not in repr(key)
    assert list_keys(file) == (key,)
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


async def test_a_key_is_in_the_teams_that_the_file_says(file: Path) -> None:
    """Issue 6: membership comes from gateway keys."""
    _, clear = add_key(file, key_id="ada", collection="ada", teams=("core", "ops"))
    found = await Keyring(file, monotonic_s=Clock()).principal(clear)
    assert found == Principal("ada", name="ada", teams=("core", "ops"), is_keyed=True)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"collection": "ada"', '"collection": "team:core"'),
        ('"teams": ["core"]', '"teams": ["../core"]'),
        ('"thread", "project"', '"thread"'),
    ],
)
def test_a_file_with_a_key_that_may_not_be_is_unusable(file: Path, was: str, now: str) -> None:
    """A team's shelf as somebody's own; no name of a team; a team for one thread alone."""
    add_key(file, key_id="ada", collection="ada", teams=("core",))
    compact = " ".join(file.read_text(encoding="utf-8").split())
    text = compact.replace("[ ", "[").replace(" ]", "]")
    assert was in text
    file.write_text(text.replace(was, now), encoding="utf-8")
    with pytest.raises(KeysFileUnusable):
        list_keys(file)


def test_two_keys_cannot_have_one_name(file: Path) -> None:
    add_key(file, key_id="ada", collection="ada")
    with pytest.raises(KeyNameTaken):
        add_key(file, key_id="ada", collection="ada")


async def test_a_running_gateway_sees_new_and_revoked_keys(file: Path) -> None:
    _, first = add_key(file, key_id="ada", collection="ada")
    clock = Clock()
    ring = Keyring(file, monotonic_s=clock)
    _, second = add_key(file, key_id="ben", collection="ben")
    assert revoke_key(file, "ada")
    assert not revoke_key(file, "ada")
    clock.now_s += CHECK_EVERY_S * 1.01
    with pytest.raises(KeyRequired):
        await ring.principal(first)
    assert (await ring.principal(second)).collection == "ben"


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing on Windows")
async def test_a_file_that_others_can_read_is_refused_and_opens_nothing(file: Path) -> None:
    _, clear = add_key(file, key_id="ada", collection="ada")
    clock = Clock()
    ring = Keyring(file, monotonic_s=clock)
    os.chmod(file, 0o644)
    with pytest.raises(KeysFileUnusable, match="chmod 600"):
        list_keys(file)
    clock.now_s += CHECK_EVERY_S * 1.01
    with pytest.raises(KeyRequired):
        await ring.principal(clear)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"keys": [{"id": 3}]}'])
def test_a_file_of_something_else_is_refused(file: Path, content: str) -> None:
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(KeysFileUnusable, match="keys file"):
        list_keys(file)


def test_no_file_is_no_keys(file: Path) -> None:
    assert list_keys(file) == ()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"authorization": "Bearer k"}, "k"),
        ({"authorization": "bearer  k "}, "k"),
        ({"authorization": "Basic eDp5"}, None),
        ({"x-api-key": "k"}, "k"),
        ({"api-key": "k"}, "k"),
        ({}, None),
    ],
)
def test_a_key_may_come_in_any_of_the_usual_headers(
    headers: dict[str, str], expected: str | None
) -> None:
    assert presented_key(headers) == expected
