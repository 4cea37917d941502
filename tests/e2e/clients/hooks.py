"""`scripts/hooks`: Claude Code itself, with our hooks installed and a recorder beside them.

It runs in an empty home against a scripted model, without a gateway, so that what is stored is what
the hooks stored. What they are worth is asked of the model: whether a prompt holds the briefing and
the reminder, and whether the library had the conversation when the compaction was asked for.
`--write` renews tests/fixtures/hooks with what Claude Code gave them, which tests/e2e/test_hooks.py
feeds to them.
"""

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.answers import Answer
from tests.e2e.clients.environments import Client, install, listed_clients, search_path
from tests.e2e.clients.model import (
    CALL_ID,
    PROTOCOLS,
    Asked,
    Reply,
    ScriptedModel,
    answered,
    decided,
    read,
)
from tests.e2e.clients.programs.talk import FACT, FACT_NUMBER, KEY, QUESTION
from tests.e2e.gateway_process import COMMAND, ROOT
from tests.e2e.stub_upstream import Seen

FIXTURES = ROOT / "tests" / "fixtures" / "hooks"
MODEL = "claude-sonnet-4-5"
RULE, TODO = "Never deploy on a Friday.", "Finish the migration."
WRITES = "Write it into your files."
AGAIN = "And once more?"
MEMORY_FILE, OTHER_FILE = "CLAUDE.md", "notes.txt"
USED_TOKENS = 190_000
"""What the model says of a prompt, so that Claude Code compacts by itself before the next."""
AUTO = ("--autocompact", "100000")
EVENTS = ("SessionStart", "PreCompact", "PostToolUse")
RUN_TIMEOUT_S = 120
REQUESTS_MAX = 60
"""An agent that asks on and on is ended."""
KEPT_CHARACTERS = 200
_RECORDER = """\
import json, pathlib, shutil, sys, time
given, folder = sys.stdin.buffer.read(), pathlib.Path(sys.argv[1])
name = str(time.time_ns())
(folder / f"{name}.json").write_bytes(given)
transcript = pathlib.Path(json.loads(given)["transcript_path"])
if transcript.is_file():
    shutil.copyfile(transcript, folder / f"{name}.jsonl")
"""
Json = dict[str, Any]


@dataclass(slots=True)
class Place:
    """Where one run happens."""

    home: Path
    project: Path
    inputs: Path
    db: Path
    environment: dict[str, str]

    def claude(self, prompt: str, *options: str) -> str:
        """Return what Claude Code says to a prompt."""
        command = ("claude", "--print", "--model", MODEL, "--allowed-tools", "Write,Edit", *options)
        return _run([*command, "--", prompt], self.environment, self.project)

    def library(self, *words: str) -> str:
        return _run([*COMMAND, *words], self.environment, self.project)

    def stored(self) -> list[str]:
        """Return the bodies of all messages in the library."""
        if not self.db.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as connection:
            return [str(body) for (body,) in connection.execute("SELECT body FROM event")]


def _run(command: list[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        command,
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-500:]}{done.stderr[-500:]}"
    return done.stdout


@dataclass(slots=True)
class Told:
    """What the model was sent, by what was asked for."""

    prompts: dict[str, list[str]] = field(default_factory=dict)
    stored: list[list[str]] = field(default_factory=list)
    """What the library held whenever a compaction was asked for."""


class HookedModel(ScriptedModel):
    """The scripted model, which also writes files when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.place: Place | None = None
        self.told = Told()
        self._count = 0

    def _choose(self, seen: Seen) -> Answer:
        if seen.path not in PROTOCOLS:
            return super()._choose(seen)
        assert self.place is not None
        asked = read(seen)
        self._count += 1
        assert self._count < REQUESTS_MAX, "the agent asks on and on"
        reply = self._reply(asked, seen.body.decode())
        steps = [one for one in answered(asked, reply).steps if isinstance(one, bytes)]
        # Ids that came before are taken for the same call and the same answer.
        steps = [
            one.replace(CALL_ID.encode(), b"call_%d" % self._count).replace(
                b'"msg_model"', b'"msg_%d"' % self._count
            )
            for one in steps
        ]
        if asked.question.strip().endswith((QUESTION, AGAIN)):
            used = b'"input_tokens": %d' % USED_TOKENS
            steps = [one.replace(b'"input_tokens": 11', used) for one in steps]
        return Answer(tuple(steps), headers=answered(asked, reply).headers)

    def _reply(self, asked: Asked, body: str) -> Reply:
        assert self.place is not None
        for subject in (FACT, WRITES, QUESTION):
            if subject in asked.question:
                self.told.prompts.setdefault(subject, []).append(body)
        if "Tool calls will be rejected" in body:  # So it asks for a summary, and else never.
            self.told.stored.append(self.place.stored())
            return Reply(text="<summary>A locker was spoken of.</summary>")
        if WRITES in asked.question:
            calls = list(_writes(self.place.project))
            count = len(asked.results)
            return Reply(call=calls[count]) if count < len(calls) else Reply(text="It is written.")
        return decided(asked)


def _writes(project: Path) -> Iterator[tuple[str, Json]]:
    """Yield the calls that write files, one after the other."""
    memory = str(project / MEMORY_FILE)
    yield "Write", {"file_path": memory, "content": "- The blue key opens the boathouse.\n"}
    yield "Edit", {"file_path": memory, "old_string": "blue", "new_string": "red"}
    yield "Write", {"file_path": str(project / OTHER_FILE), "content": "nothing to keep\n"}


# -- one run -------------------------------------------------------------------------------------
def placed(folder: Path, client: Client, model: HookedModel) -> Place:
    """Return a home with the recorder in Claude Code's settings, and ours behind it."""
    home, project, inputs = (folder / name for name in ("home", "project", "inputs"))
    for made in (home / ".claude", project, inputs):
        made.mkdir(parents=True)
    recorder = folder / "recorder.py"
    recorder.write_text(_RECORDER, encoding="utf-8")
    own = {"type": "command", "command": f"{sys.executable} {recorder} {inputs}"}
    settings = {"hooks": {event: [{"matcher": "*", "hooks": [own]}] for event in EVENTS}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    environment = {
        "PATH": os.pathsep.join([*client.search_path, search_path()]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "LIBRARY_OF_CONTEXT_EMBEDDER": "none",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": model.url.removesuffix("/v1"),
        "ANTHROPIC_SMALL_FAST_MODEL": MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    return Place(home, project, inputs, folder / "library.db", environment)


def tried(client: Client, folder: Path) -> tuple[dict[str, str], Place]:
    """Run Claude Code with our hooks; return of each step "" or what was wrong, and where."""
    model = HookedModel()
    model.start()
    try:
        place = model.place = placed(folder, client, model)
        return _steps(place, model.told), place
    finally:
        model.stop()


def _steps(place: Place, told: Told) -> dict[str, str]:
    settings = place.home / ".claude" / "settings.json"
    before = json.loads(settings.read_text(encoding="utf-8"))
    at = ("--db", str(place.db))
    place.library("remember", RULE, "--type", "rule", "--importance", "critical", *at)
    place.library("remember", TODO, "--type", "todo", *at)
    place.library("hook", "install", "--language", "en", *at)
    place.claude(FACT)
    place.claude(WRITES, "--continue")
    place.claude("/compact keep the numbers", "--continue")
    place.claude(QUESTION, "--continue", *AUTO)
    place.claude(AGAIN, "--continue", *AUTO)
    place.claude("And now?", "--continue", *AUTO)
    place.library("hook", "uninstall")
    [first], written = told.prompts[FACT][:1], told.prompts[WRITES]
    after = [told.prompts[QUESTION][0]] if QUESTION in told.prompts else []
    manual, auto = [*told.stored, [], []][:2]
    reminded = f"{MEMORY_FILE} was changed"
    return {
        "briefed at the start": _unless(RULE in first and TODO in first, first),
        "briefed after a compaction": _unless(bool(after) and RULE in after[0], after),
        "reminded of a memory file": _unless(reminded in written[-1], written[-1]),
        "not reminded of others": _unless(f"{OTHER_FILE} was changed" not in written[-1], written),
        "saved before /compact": _unless(any(FACT_NUMBER in one for one in manual), manual),
        "saved before it compacts itself": _unless(any(QUESTION in one for one in auto), auto),
        "uninstalled": _unless(json.loads(settings.read_text(encoding="utf-8")) == before, before),
    }


def _unless(is_well: bool, seen: object) -> str:
    return "" if is_well else f"not in {str(seen)[-2_000:]!r}"


# -- what was recorded ---------------------------------------------------------------------------
def recorded(place: Place) -> dict[str, str]:
    """Return what Claude Code gave the hooks, by the name of a fixture: the first input of each
    kind, and the transcript as it was before each compaction. Paths are neutral ones."""
    found: dict[str, str] = {}
    for file in sorted(place.inputs.glob("*.json")):
        given = json.loads(file.read_bytes())
        name = _name(given)
        if f"{name}.json" in found:
            continue
        found[f"{name}.json"] = neutral(json.dumps(given, indent=2) + "\n", place)
        transcript = file.with_suffix(".jsonl")
        if given["hook_event_name"] == "PreCompact" and transcript.exists():
            # Before long texts are cut, which might cut a path.
            rows = neutral(transcript.read_text(encoding="utf-8"), place).splitlines()
            found[f"{name}.transcript.jsonl"] = "".join(
                json.dumps(_shown(json.loads(row)), ensure_ascii=False) + "\n" for row in rows
            )
    return found


def _name(given: Json) -> str:
    match given["hook_event_name"]:
        case "SessionStart":
            return f"session-start.{given['source']}"
        case "PreCompact":
            return f"pre-compact.{given['trigger']}"
        case _:
            file = Path(given["tool_input"]["file_path"]).name.partition(".")[0].lower()
            return f"post-tool-use.{given['tool_name'].lower()}-{file}"


def _shown(row: Json) -> Json:
    """Return a line of a transcript: what was said whole, and of what the program tells of itself
    (its instructions, its tools) the beginning, since those texts are not ours to publish."""
    return row if row.get("type") in ("user", "assistant") else _cut(row)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > KEPT_CHARACTERS:
        return f"{value[:40]}... ({len(value)} characters)"
    if isinstance(value, list):
        return [_cut(one) for one in value[:5]]
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    return value


def neutral(text: str, place: Place) -> str:
    """Return a text with the paths of nobody's machine, as a path and as Claude Code's name of a
    folder, which has a dash for what is neither letter nor digit."""
    paths = {
        str(place.project): "/home/ada/project",
        str(place.home): "/home/ada",
        str(place.home.parent): "/tmp/run",
        str(Path(sys.executable).parent): "/usr/bin",
        str(ROOT): "/opt/library-of-context",
    }
    for path, stand_in in paths.items():
        text = text.replace(path, stand_in)
        as_name = re.sub(r"[^A-Za-z0-9]", "-", path)
        text = text.replace(as_name, stand_in.replace("/", "-"))
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the recorded input")
    given = parser.parse_args()
    client = listed_clients()["claude-code"]
    install(client)
    with tempfile.TemporaryDirectory(prefix="hooks-", ignore_cleanup_errors=True) as folder:
        problems, place = tried(client, Path(folder).resolve())
        for step, problem in problems.items():
            sys.stdout.write(f"claude-code {client.version} {step}: {problem or 'ok'}\n")
        if given.write:
            own = FIXTURES / f"claude-code-{client.version}"
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            for name, text in recorded(place).items():
                (own / name).write_text(text, encoding="utf-8")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
