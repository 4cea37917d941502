"""The arithmetic of the prefix bench, and a replay of a small agent session."""

from pathlib import Path

from gateway.wire.chat.message import message_of
from governor.counting import Counters
from governor.message import Message
from scripts.bench.prefix import EVERY_TURN, IN_SYSTEM, MODEL, measured
from scripts.bench.prefix_prompts import PEERS, Piece, pieces, shared_tokens, tokens_of
from scripts.bench.prefix_sessions import Corpus, corpora

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
COUNTER = Counters().counter_for(MODEL)


def said(role: str, text: str) -> Message:
    return message_of({"role": role, "content": text})


def test_prompts_share_their_equal_messages_and_the_common_start_of_the_next() -> None:
    before = [Piece("system\0one", 5, b""), Piece("user\0two three", 6, b""), Piece("x", 1, b"")]
    now = [before[0], Piece("user\0two four", 6, b""), before[2]]
    assert shared_tokens(before, before, COUNTER) == 12
    assert 5 < shared_tokens(before, now, COUNTER) < 11
    assert shared_tokens([Piece("a", 1, b"")], [Piece("b", 1, b"")], COUNTER) == 0


def test_peers_keep_to_the_budget_and_the_system_text() -> None:
    talk = [said("system", "Be brief.")]
    for number in range(40):
        talk += [said("user", f"{number}: " + "word " * 60), said("assistant", "yes " * 40)]
    talk.append(said("user", "And now?"))
    for name, peer in PEERS.items():
        prompt = peer(talk, COUNTER, 1_000)
        assert prompt[0] == pieces(COUNTER, talk)[0] and prompt[-1].text.endswith("And now?"), name
        if name != "whole history":
            assert tokens_of(prompt) <= 1_000, name


def test_a_session_goes_through_the_governor_and_is_measured() -> None:
    found = {one.name: one for one in corpora(FIXTURES, sessions_max=1, questions_max=2)}
    [agent] = found["tau_airline joined"].sessions
    rows = measured(Corpus("one", (agent,)), [EVERY_TURN, "attached, focus"])
    assert {EVERY_TURN, "attached, focus", IN_SYSTEM, *PEERS} == {*rows}
    ours = rows["attached, focus"]
    assert ours["over_budget"] == 0 and ours["mean_prompt_tokens"] <= 8_000
    assert ours["shared_share"] > rows[IN_SYSTEM]["shared_share"]
