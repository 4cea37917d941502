"""Texts that go on, at any length and budget: what goes out, counted by another library."""

import random
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import orjson
import pytest

from gateway.wire.completions.wire import COMPLETIONS
from governor import Clock, Governor, Policy, TurnRequest
from governor.counting import Counters
from governor.errors import BudgetTooSmall
from governor.turn import SwapReport
from library.library import Library
from library.runtime.options import LibraryOptions
from tests.e2e.legality import text_tokens
from tests.unit.gateway.wire.completions.test_cutting import prose

COUNTERS = Counters()
CLOSING = "</reading_desk>\n\n"


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    options = LibraryOptions(db=tmp_path / "library.db", embedder="none")
    opened = await Library.open(options)
    yield opened
    await opened.close()


async def sent(library: Library, text: str, budget_tokens: int) -> tuple[str, SwapReport]:
    """Return the prompt that goes out for a text, and its report."""
    request = COMPLETIONS.decode(orjson.dumps({"model": "gpt-4o", "prompt": text}), None)
    clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
    turn = await Governor(library, clock, COUNTERS).prepare(
        TurnRequest(
            turn_id=uuid4().hex,
            collection="test",
            session_id=None,
            identified_by="content",
            model="gpt-4o",
            upstream="test",
            messages=request.messages,
            schemas=(),
            reply_tokens=None,
            policy=Policy(
                budget_tokens=budget_tokens,
                desk_tokens=budget_tokens // 4,
                protected_tokens=budget_tokens // 8,
                placement="system",
                is_strict_freshness=True,
            ),
            counter=COUNTERS.counter_for("gpt-4o", is_text=True),
            dialect=COMPLETIONS.dialect,
            is_whole=True,
        )
    )
    return orjson.loads(COMPLETIONS.encode(request, turn.plan))["prompt"], turn.report


async def test_no_text_is_over_its_budget_and_what_is_sent_is_its_head_and_its_newest_part(
    library: Library,
) -> None:
    """DESIGN 1.1, counted anew; what is kept of a text is kept character for character."""
    chance = random.Random(7)
    paged_count = refused_count = 0
    for seed in range(30):
        text, budget = prose(seed % 4, chance.randrange(1, 250)), chance.choice((900, 2_000, 4_000))
        ending = f"{chance.choice(('', 'And then', '漢字' * 40))}{seed}"
        try:
            prompt, report = await sent(library, text + ending, budget)
        except BudgetTooSmall:
            refused_count += 1
            continue
        assert text_tokens(prompt) <= report.prompt_tokens <= budget
        if not report.is_paged:
            assert prompt == text + ending
            continue
        paged_count += 1
        head = COMPLETIONS.decode(orjson.dumps({"prompt": text + ending}), None).messages[0].text
        assert prompt.startswith(head)
        _, mark, rest = prompt.partition(CLOSING)
        rest = rest if mark else prompt.removeprefix(head)
        assert rest
        assert (text + ending).endswith(rest)
    assert paged_count > 5
    assert refused_count < 15
