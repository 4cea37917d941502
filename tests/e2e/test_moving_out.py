"""`export`, `backup`, `restore`, `stats` and `reembed` as a user runs them."""

import asyncio
import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from library.kinds.filter import Filter
from library.library import Library
from library.runtime.options import LibraryOptions
from library.store.shelved.records import ANYBODY
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess, clean_environment, run_cli
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, user

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
PLAIN = clean_environment({"embedder": "none"})


@pytest.fixture
def own(start_gateway: StartGateway, upstream: StubUpstream) -> GatewayProcess:
    """A gateway whose library has an edited turn, a tool call, a pin, a budget, an insight."""
    gateway = start_gateway(embedder="hashing")
    with closing(Client(gateway.url)) as client:
        begun = [user("the blue key opens the boathouse")]
        client.chat(begun, session="one")
        begun.append(assistant("reply to the blue key opens the boathouse"))
        for words in ("and the green one?", "and the red key?"):
            client.chat([*begun, user(words)], session="one")
        client.chat(
            [
                user("look it up"),
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "under\tthe pot\n"},
            ]
        )
    gateway.cli("pin", "e1")
    answer = httpx.post(
        f"{gateway.origin}/library/insights",
        json={"text": "We deploy on Fridays.", "type": "rule", "importance": "critical"},
        timeout=10,
        verify=False,
    )
    assert answer.is_success, answer.text
    set_budget(gateway, "one", 3_000)
    return gateway


def set_budget(gateway: GatewayProcess, thread: str, tokens: int) -> None:
    answer = httpx.put(
        f"{gateway.origin}/library/threads/{thread}/budget",
        json={"budget_tokens": tokens},
        timeout=10,
        verify=False,
    )
    assert answer.is_success


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_library_that_was_exported_beside_a_gateway_is_taken_in_as_an_equal_one(
    own: GatewayProcess, tmp_path: Path
) -> None:
    """Issue 6: export writes everything and imports back to an equal library."""
    out, again = tmp_path / "out.jsonl", tmp_path / "again.jsonl"
    done = json.loads(own.cli("export", str(out), "--json").stdout)
    assert done == {"threads": 3, "messages": 11, "pins": 2, "archived": 0}
    assert os.stat(out).st_mode & 0o077 == 0
    new = tmp_path / "new.db"
    taken = json.loads(run_cli("import", str(out), "--db", str(new), "--json", env=PLAIN).stdout)
    assert (taken["added"], taken["renamed"], taken["problem_count"]) == (11, 0, 0)
    run_cli("export", str(again), "--db", str(new), env=PLAIN)
    assert lines(again) == lines(out)
    assert run_cli("verify", "--db", str(new)).returncode == 0
    found = json.loads(run_cli("search", "red key", "--db", str(new), "--json", env=PLAIN).stdout)
    assert "red key" in found["hits"][0]["text"]
    assert "We deploy on Fridays." in run_cli("pin", "--db", str(new), env=PLAIN).stdout
    refused = own.cli("export", str(out), check=False)
    assert (refused.returncode, "--force overwrites it" in refused.stderr) == (1, True)


NOTES = (
    "# Rules\n\n- one\n\n```python\ndef f():\n\tif x:\n\t\treturn 1\n```\n" + "words of it. " * 200
)


def shelve_everything(gateway: GatewayProcess) -> None:
    """Shelve records of every kind, changed, pinned, tagged and owned by a thread."""
    with httpx.Client(base_url=f"{gateway.origin}/library", timeout=20, verify=False) as http:

        def told(method: str, path: str, **more: Any) -> dict[str, Any]:
            answer = http.request(method, path, **more)
            assert answer.is_success, answer.text
            found: dict[str, Any] = answer.json()
            return found

        fact = {
            "text": "The mill has two wheels.",
            "type": "finding",
            "importance": "high",
            "tags": ["mill", "old house"],
            "project": "river",
            "author": "Ada",
            "source": "survey.md",
            "said_at": "2019-05-04T03:02:01Z",
        }
        insight = told("POST", "/insights", json=fact)
        for text in ("The mill has three wheels.", "The mill had three wheels."):
            told("PATCH", f"/insights/{insight['id']}", json={"text": text, "tags": ["mill"]})
        told("POST", "/insights", json={"text": "Only one knows the otter.", "thread": "one"})
        # Replaced by one that was there before it was worded anew.
        newer = told(
            "POST",
            "/insights",
            json={"text": "The otter left in May.", "replaces": [insight["id"]]},
        )
        told("PATCH", f"/insights/{insight['id']}", json={"text": "The mill lost its wheels."})
        told("PATCH", f"/insights/{newer['id']}", json={"text": "The otter left in June."})
        for content in ("An older edition.", NOTES):
            told(
                "PUT",
                "/documents",
                params={"source": "docs/rules.md", "project": "river", "tag": "law", "title": "R"},
                content=content.encode(),
            )
        told("PUT", "/chunks", params={"type": "debug", "title": "why"}, content=b"because\n\tof")


def known_of(db: Path) -> dict[str, Any]:
    """Return all that a library says of its records, in its own words."""

    async def read() -> dict[str, Any]:
        library = await Library.open(LibraryOptions(db))
        try:
            own = await library.store.collection_id("default")
            records, count = await library.store.kinds.records(
                own, Filter(), owner_no=ANYBODY, limit=99, offset=0
            )
            assert len(records) == count
            found: dict[str, Any] = {}
            for one in records:
                parts = await library.store.kinds.parts(one.no, limit=99)
                versions = await library.store.kinds.versions(one.no)
                facts = replace(one.facts, owner_no=None)
                times = (one.created_at, one.updated_at, one.said_at)
                found[one.id] = (
                    *(facts, one.owner_id, one.version, one.told_count, one.is_pinned, times),
                    [(part.id, part.body, part.text, part.occurred_at) for part in parts],
                    [(each.id, each.text, each.occurred_at) for each in versions],
                )
            heads = await library.store.kinds.heads([one.no for one in records])
            found["replaced"] = await library.store.replacements(
                [one.seq for one in heads.values()]
            )
            held = await library.store.archive.holdings(collection_id=own, limit=99)
            found["held"] = [replace(one, no=0, owner_no=None) for one in held]
            pins = await library.store.pinned(collection_id=own, thread_id=None)
            found["pins"] = [pin.id for pin in pins]
            return found
        finally:
            await library.close()

    return asyncio.run(read())


def test_records_of_every_kind_come_back_with_all_that_is_known_of_them(
    own: GatewayProcess, tmp_path: Path
) -> None:
    """Issue 6: documents, insights with their versions, chunks; tags, times, pins, importance,
    owners, the lines of a source, what is archived and how often it was wanted."""
    shelve_everything(own)
    own.wait_indexed()
    parts = httpx.get(
        f"{own.origin}/library/search",
        params={"q": "words of it", "kind": "document"},
        verify=False,
    ).json()["hits"]
    own.cli("pin", parts[0]["id"], "--everywhere")
    own.cli("open", parts[0]["id"])
    chunk = httpx.get(f"{own.origin}/library/chunks", verify=False).json()["chunks"][0]["id"]
    own.cli("retention", "archive", "one", chunk)
    out, again, new = tmp_path / "all.jsonl", tmp_path / "twice.jsonl", tmp_path / "new.db"
    own.cli("export", str(out))
    pages = tmp_path / "pages"
    own.cli("export", str(pages), "--format", "markdown")
    own.stop()
    before = known_of(own.db)
    records = [one for name, one in before.items() if name not in {"pins", "replaced", "held"}]
    assert sorted(one[0].kind for one in records) == ["chunk", "document", *["insight"] * 4]
    assert (len(before["pins"]), len(before["replaced"])) == (3, 1)
    assert {len(one[7]) for one in records} == {1, 2, 4}
    assert sum(one.archived_at is not None for one in before["held"]) == 2
    assert sum(one.used_count for one in before["held"]) > 0
    for _ in range(2):
        answer = run_cli("import", str(out), "--db", str(new), "--json", env=PLAIN)
        assert json.loads(answer.stdout)["problem_count"] == 0
    assert known_of(new) == before
    run_cli("export", str(again), "--db", str(new), env=PLAIN)
    assert lines(again) == lines(out)
    assert run_cli("verify", "--db", str(new), env=PLAIN).returncode == 0
    written = "".join(path.read_text() for path in pages.iterdir())
    for text in ("The mill has two wheels.", "The mill had three wheels.", "\n\t\treturn 1\n"):
        assert text in written


def test_one_thread_goes_to_standard_output_and_to_another_collection(
    own: GatewayProcess, tmp_path: Path
) -> None:
    out = own.cli("export", "-", "--thread", "one")
    kinds = [json.loads(line)["kind"] for line in out.stdout.splitlines()]
    assert kinds == ["library", "thread", *["event"] * 6, "pin"]
    path = tmp_path / "one.jsonl"
    path.write_text(out.stdout)
    for added in (6, 0):
        done = json.loads(own.cli("import", str(path), "--collection", "team", "--json").stdout)
        assert done["added"] == added
    collections = {row["collection"] for row in json.loads(own.cli("threads", "--json").stdout)}
    assert collections == {"default", "team"}


def test_a_damaged_export_is_told_by_its_lines(own: GatewayProcess, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    own.cli("export", str(out))
    rows = out.read_text().splitlines()
    first = next(at for at, row in enumerate(rows) if '"kind":"event"' in row)
    rows[first] = rows[first].replace("blue", "green")
    out.write_text("\n".join(rows))
    answer = run_cli("import", str(out), "--db", str(tmp_path / "n.db"), env=PLAIN, check=False)
    assert answer.returncode == 1
    assert f"{out}, line {first + 1}: " in answer.stderr
    assert "its role or digest is not that of its body" in answer.stderr


def test_markdown_has_every_message_word_for_word(own: GatewayProcess, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    own.cli("export", str(folder), "--format", "markdown")
    pages = {path.name: path.read_text() for path in folder.iterdir()}
    assert len(pages) == 3
    [one] = [text for name, text in pages.items() if "-one-" in name]
    assert "the blue key opens the boathouse" in one
    assert "> follows e2" in one
    assert any("\nunder\tthe pot\n" in text for text in pages.values())


def test_a_backup_is_put_back_and_what_came_after_it_is_put_aside(
    own: GatewayProcess, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    own.cli("backup", str(copy))
    assert run_cli("verify", "--db", str(copy)).returncode == 0
    before = json.loads(own.cli("threads", "--json").stdout)
    with closing(Client(own.url)) as client:
        client.chat([user("said after the backup")], session="two")
    running = own.cli("restore", str(copy), "--force", check=False)
    assert (running.returncode, "is in use by" in running.stderr) == (3, True)
    own.stop()
    there = own.cli("restore", str(copy), check=False)
    assert (there.returncode, "--force puts it aside" in there.stderr) == (1, True)
    done = json.loads(own.cli("restore", str(copy), "--force", "--json").stdout)
    assert json.loads(own.cli("threads", "--json").stdout) == before
    assert "boathouse" in own.cli("search", "boathouse").stdout
    aside = json.loads(run_cli("threads", "--db", done["put_aside"], "--json").stdout)
    assert len(aside) == len(before) + 1


def test_a_damaged_backup_is_not_restored(own: GatewayProcess, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    own.cli("backup", str(copy))
    own.stop()
    data = copy.read_bytes()
    copy.write_bytes(data.replace(b"the blue key", b"the grey key"))
    answer = own.cli("restore", str(copy), "--force", check=False)
    assert answer.returncode == 1
    assert "is damaged: digest" in answer.stderr
    assert json.loads(own.cli("threads", "--json").stdout)
    other = own.cli("restore", str(Path(__file__)), "--force", check=False)
    assert "is no backup of this program" in other.stderr


def test_what_is_stored_is_counted(own: GatewayProcess) -> None:
    found = json.loads(own.cli("stats", "--json").stdout)
    [row] = found["collections"]
    assert (row["threads"], row["branches"], row["turns"], row["events"]) == (3, 4, 4, 11)
    assert row["by_role"] == {"user": 4, "assistant": 5, "tool": 1, "insight": 1}
    assert row["pins"] == 2
    assert "default" in own.cli("stats").stdout


def test_everything_is_embedded_anew(own: GatewayProcess) -> None:
    own.wait_indexed()
    before = own.rows("SELECT seq, rows FROM vector ORDER BY seq")
    assert before
    done = json.loads(own.cli("reembed", "--all", "--json").stdout)
    assert (done["owed_count"], done["embedded_seq"]) == (0, 11)
    assert own.rows("SELECT seq, rows FROM vector ORDER BY seq") == before
    other = own.cli("reembed", check=False)
    assert other.returncode == 0


def test_without_an_embedder_there_is_nothing_to_embed(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"role": "user", "content": "x"}')
    run_cli("import", str(path), "--db", str(tmp_path / "l.db"), env=PLAIN)
    answer = run_cli("reembed", "--db", str(tmp_path / "l.db"), env=PLAIN, check=False)
    assert (answer.returncode, "no embedder is set" in answer.stderr) == (1, True)
