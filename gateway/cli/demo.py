"""`library-of-context demo`: the same conversation with and without the gateway, for all to see.

A model of this machine with a window of 8,192 tokens that refuses anything longer, over real HTTP.
One client talks to it directly, another through a gateway with a database of its own; both send
their whole transcript every time, as clients do. Nothing in the output depends on the clock or on
chance, so that the README can show it and a test can hold it to that.
"""

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import httpx
from starlette.applications import Starlette

from gateway.app import build_app
from gateway.cli import swap_report
from gateway.cli.ports import bound_socket
from gateway.cli.serving import background
from gateway.cli.tables import one_line, print_table
from gateway.served import ModelSettings
from gateway.settings import Settings
from gateway.upstream.offline import MODEL, offline_app

WINDOW_TOKENS = 8_192
BUDGET_TOKENS = 4_000
DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""When everything is said: recalled records carry their date, and a date costs tokens."""
ANSWER_TIMEOUT_S = 30.0
SAID_CELLS = 23
"""What 80 columns leave."""

FACTS = (
    "My sister Ingrid keeps the boathouse key under the blue flowerpot.",
    "Project Heron ships on the 14th of March, and its budget is 42,500 euros.",
    "Please remember that I am allergic to walnuts.",
)
QUESTIONS = {
    "Where is the boathouse key?": "blue flowerpot",
    "When does Project Heron ship?": "14th of March",
    "What am I allergic to?": "walnuts",
}
"""What is asked at the end, and the words that a right answer holds."""
TOPICS = (
    *("tea", "bridges", "glaciers", "typewriters", "beekeeping", "tides", "maps", "sourdough"),
    *("lighthouses", "orchids", "clocks", "kites", "volcanoes", "violins"),
)
NOTES = (
    "The oldest source on {topic} that I could find is a letter from {year}, and it is incomplete.",
    "Chapter {number} compares {topic} in the north with {topic} in the south, page by page.",
    "A footnote says that {number} people wrote on {topic} that year, and most disagreed.",
    "The table lists {number} kinds, but the drawing beside it shows only a few of them.",
    "Somebody has crossed out the paragraph on {topic} and written a better one in the margin.",
    "By {year} the interest in {topic} had moved to the cities, where it stayed for a generation.",
)
NOTES_A_TURN = 5
"""Rounds through NOTES in one message: about 600 tokens."""


@dataclass(slots=True)
class Client:
    """A client with its growing transcript, as any SDK user writes it."""

    http: httpx.AsyncClient
    messages: list[dict[str, str]] = field(default_factory=list)

    async def say(self, text: str) -> httpx.Response:
        """Send the whole transcript and keep what comes back."""
        self.messages.append({"role": "user", "content": text})
        reply = await self.http.post(
            "/v1/chat/completions", json={"model": MODEL, "messages": self.messages}
        )
        if reply.is_success:
            self.messages.append(reply.json()["choices"][0]["message"])
        return reply


@dataclass(frozen=True, slots=True)
class Turn:
    """What happened to one message on both ways."""

    number: int
    said: str
    straight: str
    through: str
    report: dict[str, Any]


def script() -> Iterator[tuple[str, str]]:
    """Yield what the client says and the words it waits for; "" for none."""
    for fact in FACTS:
        yield fact, ""
    for place, topic in enumerate(TOPICS):
        notes = " ".join(
            note.format(topic=topic, year=1700 + 13 * place + 7 * part, number=3 + place + part)
            for part in range(NOTES_A_TURN)
            for note in NOTES
        )
        yield f"My notes on {topic}: {notes}", ""
    yield from QUESTIONS.items()


def outcome(reply: httpx.Response, wanted: str) -> str:
    """Return what became of a message, in a word or two."""
    if not reply.is_success:
        return "refused"
    if not wanted:
        return "answered"
    text = reply.json()["choices"][0]["message"]["content"]
    return "fact found" if wanted in text else "fact missing"


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[Client, Client, httpx.AsyncClient]]:
    """Run the small model and a gateway to it; yield a client of each, and the gateway itself."""
    async with background(offline_app(window_tokens=WINDOW_TOKENS), _listener()) as model:
        listener = _listener()
        settings = Settings(
            db=str(folder / "library.db"),
            upstream=f"{model}/v1",
            budget_tokens=BUDGET_TOKENS,
            protected_tokens=BUDGET_TOKENS // 8,
            desk_tokens=BUDGET_TOKENS // 4,
            # What is found must not depend on how fast this machine is, nor on a model.
            strict_freshness=True,
            embedder="none",
            log_level="error",
            models={"*": ModelSettings(window_tokens=WINDOW_TOKENS)},
        )
        app: Starlette = build_app(settings, base_url=None, now=lambda: DAY)
        async with (
            background(app, listener) as origin,
            _http(model) as straight,
            _http(origin) as through,
        ):
            yield Client(straight), Client(through), through


def _listener() -> Any:
    return bound_socket("127.0.0.1", 0)


def _http(origin: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=origin, timeout=ANSWER_TIMEOUT_S, trust_env=False)


async def talk(folder: Path) -> tuple[list[Turn], list[str]]:
    """Hold the conversation on both ways; return its turns and the lines of the last swap
    report."""
    turns: list[Turn] = []
    async with running(folder) as (straight, through, gateway):
        for number, (text, wanted) in enumerate(script(), 1):
            first = outcome(await straight.say(text), wanted)
            reply = await through.say(text)
            report = (await gateway.get(f"/library/turns/{reply.headers['x-library-turn']}")).json()
            turns.append(Turn(number, text, first, outcome(reply, wanted), report))
            if sys.stderr.isatty():
                click.echo(f"\rturn {number} ", nl=False, err=True)
        path = f"/library/threads/{report['thread_id']}/events"
        events = (await gateway.get(path, params={"limit": 1_000})).json()["events"]
    names = {event["id"]: f"message {event['position']}" for event in events}
    texts = {names[event["id"]]: event["text"] for event in events}
    return turns, swap_report.lines(timeless(turns[-1], names), texts)


def timeless(turn: Turn, names: dict[str, str]) -> dict[str, Any]:
    """Return a turn's report without what differs from run to run; `names` names the events."""
    report = turn.report
    shown = {**report, "turn_id": turn.number, "thread_id": "demo", "upstream": ""}
    shown |= {"started_at": "", "steps_ms": {}}
    for part in ("swapped_out", "retained", "pinned", "pins_left_out"):
        shown[part] = [names[event_id] for event_id in report[part]]
    shown["swapped_in"] = [{**row, "id": names[row["id"]]} for row in report["swapped_in"]]
    return shown


@click.command()
def demo() -> None:
    """Show, on this machine alone and within a minute, what the gateway does.

    One conversation with a model of 8,192 tokens, once straight and once through a gateway: facts
    first, then more talk than the model can take, then questions about the facts.
    """
    # A terminated demo cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with tempfile.TemporaryDirectory(prefix="library-of-context-demo-") as folder:
        turns, last_report = asyncio.run(talk(Path(folder)))
    if sys.stderr.isatty():
        click.echo("\r", nl=False, err=True)
    print_table(
        ("turn", "the client says", "it sends", "straight", "forwarded", "through"),
        [
            (
                str(turn.number),
                one_line(turn.said, size=SAID_CELLS),
                f"{turn.report['client_tokens']:,}",
                turn.straight,
                f"{turn.report['prompt_tokens']:,}",
                turn.through,
            )
            for turn in turns
        ],
        right=("turn", "it sends", "forwarded"),
    )
    click.echo(f"\nA model of {WINDOW_TOKENS:,} tokens, a budget of {BUDGET_TOKENS:,}.")
    click.echo("The last swap report:\n")
    click.echo("\n".join(last_report))
