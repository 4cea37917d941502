"""What it costs to know a re-sent transcript again: decode, digest, match and record it.

In this process and on a real file, without the rest of a request: the curve of overhead.py is the
whole of it, with receiving 4 MB, counting, paging and sending, and shows this beside it.
"""

import asyncio
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from gateway.wire.chat.request import decode
from gateway.wire.seen import SeenMessages
from governor.counting import Counters
from governor.recording import Recorder, stored_reply
from governor.turn import Outcome, Policy, SwapReport, TurnRequest
from library.records import TurnState
from library.store.sqlite import SqliteStore
from scripts.bench.conversations import Message, body
from scripts.bench.stub import REPLY


def identify_ms(transcripts: list[list[Message]]) -> list[float]:
    """Return CPU milliseconds, of all threads, for each transcript but the first; each must
    extend the one before it."""
    bodies = [json.dumps(body(talk)).encode() for talk in transcripts]
    with tempfile.TemporaryDirectory(prefix="bench-identify-") as folder:
        return asyncio.run(_identify(Path(folder), bodies))[1:]


async def _identify(folder: Path, bodies: list[bytes]) -> list[float]:
    store = await SqliteStore.open(folder / "library.db")
    recorder, seen = Recorder(store, lambda: datetime.now(UTC)), SeenMessages()
    counter = Counters().counter_for("bench", tokenizer="bound")
    answer = message_of({"role": "assistant", "content": REPLY})
    outcome = Outcome(TurnState.DONE, (answer,))
    took_ms = []
    for number, data in enumerate(bodies):
        started_s = time.process_time()
        chat = decode(data, seen)
        request = TurnRequest(
            turn_id=f"turn-{number}",
            collection="default",
            session_id=None,
            identified_by="content",
            model=chat.model,
            upstream="bench",
            messages=chat.messages,
            schemas=chat.schemas,
            reply_tokens=chat.reply_tokens,
            policy=Policy(),
            counter=counter,
            dialect=chat_dialect,
        )
        recorded = await recorder.record(request, SwapReport(request.turn_id))
        took_ms.append((time.process_time() - started_s) * 1e3)
        assert recorded is not None
        assert number == 0 or recorded.new_count == 1, "the transcript was not known again"
        await store.finish_turn(
            request.turn_id,
            state=TurnState.DONE,
            replies=[stored_reply(answer, outcome)],
            report=b"{}",
            prompt_state=None,
            ended_at=datetime.now(UTC),
        )
    await store.close()
    return took_ms
