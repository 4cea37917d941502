"""The relay, with every side in the test's hand: no sockets, no sleeps."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway import relay
from gateway.relay import KEEP_ALIVE
from gateway.upstream.protocol import UpstreamFailed
from governor.errors import BudgetTooSmall
from governor.turn import Policy
from library.errors import StoreUnavailable
from library.records import TurnState
from tests.unit.gateway.peers import EVENTS, JSON, Stage, Upstream

DONE = b"data: [DONE]\n\n"


def chunk(finish_reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


HEL, LO, STOP = chunk(content="Hel"), chunk(content="lo"), chunk("stop")
WHOLE = json.dumps(
    {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
).encode()


async def test_chunks_are_forwarded_one_by_one_and_the_end_after_the_commit() -> None:
    """CASES D1 (litellm#26102); DESIGN 1.5."""
    stage = Stage(Upstream(HEL))
    stage.books.may_commit.clear()
    running = asyncio.ensure_future(stage.run())
    await stage.client.wait_for(b"Hel")
    for piece in (LO, STOP, DONE, None):
        stage.upstream.pieces.put_nowait(piece)
    await stage.books.is_committing.wait()
    assert stage.client.body == HEL + LO + STOP
    assert not stage.client.is_ended()
    stage.books.may_commit.set()
    await running
    assert stage.client.body == HEL + LO + STOP + DONE
    assert stage.client.is_ended()
    assert [one["body"] for one in stage.client.sent[1:]] == [HEL, LO, STOP, DONE]
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.DONE, False)
    assert [reply.text for reply in outcome.replies] == ["Hello"]


async def test_a_whole_answer_is_sent_in_one_piece_after_its_commit() -> None:
    stage = Stage(Upstream(WHOLE[:9], WHOLE[9:], None, headers=JSON), is_stream=False)
    await stage.run()
    assert stage.client.body == WHOLE
    assert stage.client.headers[b"content-length"] == str(len(WHOLE)).encode()
    assert stage.client.headers[b"x-library-turn"] == b"turn-1"
    assert stage.client.headers[b"x-library-session"] == b"thread-1"
    assert stage.books.outcome.finish_reason == "stop"


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_client_that_goes_before_the_first_byte_stops_the_upstream(is_stream: bool) -> None:
    """CASES D6 (litellm#30244, #37140), D8 (open-webui PR#20889)."""
    stage = Stage(Upstream(), is_stream=is_stream)
    stage.upstream.may_open.clear()
    running = asyncio.ensure_future(stage.run())
    await stage.upstream.is_asked.wait()
    stage.client.is_gone.set()
    await running
    assert stage.upstream.was_stopped
    assert stage.books.outcome.state is TurnState.ABANDONED
    assert stage.client.sent == []


async def test_a_client_that_goes_between_chunks_stops_the_upstream_and_what_came_is_kept() -> None:
    """CASES D6 (litellm#30244), D7 (litellm#14457)."""
    stage = Stage(Upstream(HEL))
    running = asyncio.ensure_future(stage.run())
    await stage.client.wait_for(b"Hel")
    stage.client.is_gone.set()
    await running
    assert stage.upstream.was_stopped
    assert stage.upstream.is_closed
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.ABANDONED, True)
    assert [reply.text for reply in outcome.replies] == ["Hel"]


async def test_a_client_that_goes_while_its_request_is_recorded_costs_no_upstream_call() -> None:
    """CASES D6 (litellm#37140)."""
    stage = Stage(Upstream())
    stage.books.may_prepare.clear()
    running = asyncio.ensure_future(stage.run())
    stage.client.is_gone.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stage.books.may_prepare.set()
    await running
    assert stage.upstream.asked == []
    assert stage.books.outcome.state is TurnState.ABANDONED


async def test_a_client_that_goes_during_the_commit_changes_nothing() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE, None))
    stage.books.may_commit.clear()
    running = asyncio.ensure_future(stage.run())
    await stage.books.is_committing.wait()
    stage.client.is_gone.set()
    await asyncio.sleep(0)
    stage.books.may_commit.set()
    await running
    assert stage.books.outcome.state is TurnState.DONE


@pytest.mark.parametrize("phase", ["preparing", "opening", "streaming", "committing"])
async def test_a_server_that_cancels_a_request_still_gets_it_committed(phase: str) -> None:
    """CASES D8 (open-webui PR#20889); DESIGN 8, shutdown."""
    stage = Stage(Upstream(HEL))
    running = asyncio.ensure_future(stage.run())
    if phase == "preparing":
        stage.books.may_prepare.clear()
        await asyncio.sleep(0)
    elif phase == "opening":
        stage.upstream.may_open.clear()
        await stage.upstream.is_asked.wait()
    else:
        await stage.client.wait_for(b"Hel")
    if phase == "committing":
        stage.books.may_commit.clear()
        stage.upstream.pieces.put_nowait(STOP + DONE)
        stage.upstream.pieces.put_nowait(None)
        await stage.books.is_committing.wait()
    running.cancel()
    await asyncio.sleep(0)
    stage.books.may_prepare.set()
    stage.books.may_commit.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    outcome = stage.books.outcome
    if phase == "committing":
        assert outcome.state is TurnState.DONE
        assert stage.client.body.endswith(DONE)
    elif phase == "streaming":
        assert (outcome.state, outcome.is_partial) == (TurnState.FAILED, True)
        assert b"shutting down" in stage.client.body
        assert DONE not in stage.client.body
    elif phase == "opening":
        assert outcome.state is TurnState.FAILED
        assert stage.client.status == 503
    assert stage.ended


async def test_a_refused_request_is_answered_and_nothing_is_committed() -> None:
    stage = Stage(Upstream())
    stage.books.prepare_error = BudgetTooSmall(
        needed_tokens=9, budget_tokens=5, parts={"system": 9}
    )
    await stage.run()
    assert stage.client.status == 400
    error = json.loads(stage.client.body)["error"]
    assert error["code"] == "context_length_exceeded"
    assert "maximum context length" in error["message"]
    assert stage.books.outcomes == []
    assert stage.upstream.asked == []


async def test_a_request_that_cannot_be_recorded_is_answered_503() -> None:
    stage = Stage(Upstream())
    stage.books.prepare_error = StoreUnavailable("full")
    await stage.run()
    assert stage.client.status == 503
    assert stage.client.headers[b"retry-after"]
    assert stage.ended[0].store_error is stage.books.prepare_error


async def test_an_upstream_that_cannot_be_reached_is_answered_with_its_status() -> None:
    """CASES D9 (any-llm PR#847)."""
    stage = Stage(Upstream())
    stage.upstream.failure = UpstreamFailed("timeout", "no answer", status=504)
    await stage.run()
    assert stage.client.status == 504
    assert json.loads(stage.client.body)["error"]["code"] == "upstream_timeout"
    assert stage.books.outcome.state is TurnState.FAILED
    assert stage.books.outcome.error == "no answer"


@pytest.mark.parametrize("failure", [UpstreamFailed("broken", "lost it"), None])
async def test_a_stream_that_breaks_ends_in_an_error_event(failure: UpstreamFailed | None) -> None:
    """CASES D7 (bifrost#6972), D9 (Bamboo-agent PR#405): no false stop."""
    stage = Stage(Upstream(HEL, LO[:20], failure))
    await stage.run()
    body = stage.client.body
    assert body.startswith(HEL)
    assert body.rstrip().rpartition(b"\n\n")[2].startswith(b'data: {"error":')
    assert body.count(LO[:20]) == (2 if failure is None else 1), "no half line but at the end"
    assert DONE not in body
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.FAILED, True)


async def test_an_error_event_after_half_an_event_stands_by_itself() -> None:
    stage = Stage(Upstream(HEL + b"event: note\n", UpstreamFailed("broken", "lost it")))
    await stage.run()
    assert b'event: note\n\n\ndata: {"error":' in stage.client.body


async def test_an_upstream_that_tells_its_error_in_the_stream_is_recorded_as_failed() -> None:
    """CASES D9 (any-llm PR#847)."""
    told = b'data: {"error": {"message": "GPU lost"}}\n\n'
    stage = Stage(Upstream(HEL, told, DONE, None))
    await stage.run()
    assert stage.client.body == HEL + told + DONE
    assert stage.books.outcome.state is TurnState.FAILED
    assert stage.books.outcome.error == "GPU lost"


async def test_an_overflow_told_in_the_stream_is_said_as_openai_says_it() -> None:
    """CASES B5 (litellm#28063)."""
    told = b'data: {"error": {"message": "prompt is too long", "type": "x"}}\n\n'
    stage = Stage(Upstream(told[:30], told[30:], DONE, None))
    await stage.run()
    assert b'"code":"context_length_exceeded"' in stage.client.body
    assert b"maximum context length" in stage.client.body


@pytest.mark.parametrize("status", [400, 500, 200])
async def test_an_overflow_answer_becomes_a_400_of_openais_form(status: int) -> None:
    """CASES B5 (ik_llama.cpp PR#2051)."""
    body = b'{"error": {"message": "the request exceeds the available context size"}}'
    stage = Stage(Upstream(body, None, status=status, headers=JSON))
    await stage.run()
    assert stage.client.status == 400
    error = json.loads(stage.client.body)["error"]
    assert error["code"] == "context_length_exceeded"
    assert "the request exceeds the available context size" in error["message"]
    assert stage.client.headers[b"content-length"] == str(len(stage.client.body)).encode()


async def test_any_other_error_is_relayed_byte_for_byte() -> None:
    """CASES D9 (any-llm PR#847)."""
    body = b'{ "detail":"loading" }\n'
    stage = Stage(Upstream(body, None, status=503, headers=[*JSON, (b"retry-after", b"7")]))
    await stage.run()
    assert (stage.client.status, stage.client.body) == (503, body)
    assert stage.client.headers[b"retry-after"] == b"7"
    assert stage.books.outcome.state is TurnState.FAILED


async def test_a_reply_that_cannot_be_committed_has_no_end() -> None:
    """CASES C2 (letta#3151)."""
    stage = Stage(Upstream(HEL, STOP, DONE, None))
    stage.books.commit_error = StoreUnavailable("full")
    await stage.run()
    assert DONE not in stage.client.body
    assert b'"code":"store_unavailable"' in stage.client.body


async def test_with_relaxed_durability_it_is_shown_and_said_to_be_unrecorded() -> None:
    """CASES C2 (letta#3151)."""
    stage = Stage(Upstream(HEL, STOP, DONE, None), policy=Policy(is_strict_durability=False))
    stage.books.commit_error = StoreUnavailable("full")
    await stage.run()
    assert stage.client.body.endswith(DONE)
    report = stage.ended[0].report
    assert report is not None
    assert report.degraded == ["unrecorded"]


async def test_what_follows_done_is_relayed_too() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE, b": bye\n\n", None))
    await stage.run()
    assert stage.client.body == HEL + STOP + DONE + b": bye\n\n"


async def test_an_upstream_that_does_not_hang_up_after_done_is_not_waited_for() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE))
    await stage.run()
    assert stage.client.body == HEL + STOP + DONE
    assert stage.upstream.is_closed


async def test_a_body_over_the_limit_is_relayed_and_recorded_as_cut() -> None:
    pieces = [WHOLE[:40], b" " * 300, b" " * 300, WHOLE[40:]]
    stage = Stage(Upstream(*pieces, headers=JSON), is_stream=False, max_reply_bytes=200)
    stage.books.may_commit.clear()
    running = asyncio.ensure_future(stage.run())
    await stage.client.wait_for(b" " * 300)
    stage.upstream.pieces.put_nowait(None)
    await stage.books.is_committing.wait()
    assert stage.client.body == b"".join(pieces[:-1])
    stage.books.may_commit.set()
    await running
    assert stage.client.body == b"".join(pieces)
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.DONE, True)
    assert "not stored" in outcome.replies[0].text


async def test_a_stream_over_the_limit_is_relayed_and_recorded_as_cut() -> None:
    long = [chunk(content="x" * 100) for _ in range(9)]
    stage = Stage(Upstream(*long, STOP, DONE, None), max_reply_bytes=500)
    await stage.run()
    assert stage.client.body == b"".join(long) + STOP + DONE
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.DONE, True)
    assert outcome.finish_reason == "stop"
    assert "not stored" in outcome.replies[0].text


async def test_a_silent_stream_carries_comments_between_events_only() -> None:
    """CASES D10 (litellm#31877)."""
    stage = Stage(Upstream(HEL), keepalive_comment_s=0.01)
    running = asyncio.ensure_future(stage.run())
    await stage.client.wait_for(HEL + KEEP_ALIVE)
    for piece in (STOP, DONE, None):
        stage.upstream.pieces.put_nowait(piece)
    await running
    assert stage.client.body.replace(KEEP_ALIVE, b"") == HEL + STOP + DONE


async def test_a_stream_that_was_not_asked_for_is_relayed_as_one() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE, None), is_stream=False)
    await stage.run()
    assert stage.client.body == HEL + STOP + DONE


async def test_json_in_place_of_a_stream_is_relayed_as_it_is() -> None:
    stage = Stage(Upstream(WHOLE, None, headers=JSON))
    await stage.run()
    assert stage.client.body == WHOLE
    assert stage.books.outcome.state is TurnState.DONE


async def test_a_bug_of_ours_is_not_swallowed_and_the_upstream_is_closed() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE, None))
    stage.books.commit_error = RuntimeError("broken invariant")
    with pytest.raises(RuntimeError, match="broken invariant"):
        await stage.run()
    assert stage.upstream.is_closed


async def test_drain_waits_for_exchanges_that_are_still_committing() -> None:
    stage = Stage(Upstream(HEL, STOP, DONE, None))
    stage.books.may_commit.clear()
    running = asyncio.ensure_future(stage.run())
    await stage.books.is_committing.wait()
    draining = asyncio.ensure_future(stage.relay.drain(5))
    await asyncio.sleep(0)
    assert not draining.done()
    stage.books.may_commit.set()
    await draining
    assert stage.ended
    await running


@pytest.mark.parametrize("is_stream", [True, False])
async def test_no_more_of_an_answer_is_counted_than_may_be_kept(is_stream: bool) -> None:
    """DESIGN 1.13: what has no end took the room of all other answers, who were refused."""
    counted: list[int] = []

    def has_room_for(size_bytes: int) -> bool:
        counted.append(size_bytes)
        return True

    pieces = [chunk(content="x" * 20_000)] * 10 if is_stream else [b"x" * 20_000] * 10
    upstream = Upstream(*pieces, STOP, DONE, None, headers=EVENTS if is_stream else JSON)
    stage = Stage(upstream, is_stream=is_stream, max_reply_bytes=50_000)
    stage.turn = replace(stage.turn, has_room_for=has_room_for)
    await stage.run()
    assert len(stage.client.body) > 200_000
    assert 40_000 < sum(counted) < 90_000


async def test_a_client_that_stops_reading_is_let_go_and_what_came_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CASES D6 (litellm#37140): it would hold an upstream, a place and buffers without end."""
    monkeypatch.setattr(relay, "SEND_TIMEOUT_S", 0.01)
    stage = Stage(Upstream(HEL, LO))
    never = asyncio.Event()

    async def send(message: Any) -> None:
        stage.client.sent.append(message)
        if b"lo" in message.get("body", b""):
            await never.wait()

    async with asyncio.timeout(5):
        await stage.relay.run(stage.turn, stage.client.receive, send)
    assert stage.upstream.is_closed
    outcome = stage.books.outcome
    assert (outcome.state, outcome.is_partial) == (TurnState.ABANDONED, True)
    assert [reply.text for reply in outcome.replies] == ["Hello"]


async def test_a_client_that_takes_no_comment_is_let_go_though_the_upstream_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CASES D6 (litellm#37140), D10: neither its going nor a shutdown was seen any more."""
    monkeypatch.setattr(relay, "SEND_TIMEOUT_S", 0.01)
    stage = Stage(Upstream(HEL), keepalive_comment_s=0.01)
    never = asyncio.Event()

    async def send(message: Any) -> None:
        stage.client.sent.append(message)
        if message.get("body") == KEEP_ALIVE:
            await never.wait()

    async with asyncio.timeout(5):
        await stage.relay.run(stage.turn, stage.client.receive, send)
    assert stage.upstream.was_stopped
    assert stage.books.outcome.state is TurnState.ABANDONED
