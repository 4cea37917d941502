"""The table of an exchange's life, walked in every order that the outside can produce."""

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.exchange import (
    COMMITS,
    END_STATES,
    TABLE,
    Command,
    Event,
    Exchange,
    IllegalEvent,
    State,
)

TO_CLIENT = {
    Command.SEND_HEAD,
    Command.FORWARD,
    Command.RELEASE,
    Command.SEND_ERROR,
    Command.SEND_ERROR_EVENT,
}
ENDS_CLIENT = {Command.RELEASE, Command.SEND_ERROR, Command.SEND_ERROR_EVENT}
UPSTREAM_EVENTS = (
    Event.BODY_BEGAN,
    Event.STREAM_BEGAN,
    Event.CHUNK,
    Event.OVERGROWN,
    Event.ENDED,
    Event.ENDED_AS_ERROR,
    Event.UPSTREAM_FAILED,
)


class ExchangeLife(RuleBasedStateMachine):
    """Drives an exchange with any legal order of events, and keeps its own books."""

    def __init__(self) -> None:
        super().__init__()
        self.exchange = Exchange()
        self.done: list[Command] = []
        self.is_prepared = False
        self.is_client_gone = False
        self.is_upstream_open = False
        self.was_cancelled = False

    @property
    def is_ended(self) -> bool:
        return self.exchange.state in END_STATES

    def feed(self, event: Event) -> None:
        was_ended = self.is_ended
        commands = self.exchange.step(event)
        assert not (was_ended and commands), "nothing is done after an end state"
        for command in commands:
            if command in ENDS_CLIENT and event is not Event.REFUSED:
                assert event in {Event.COMMITTED, Event.COMMIT_FAILED}, (
                    "the client's end comes only with the commit's outcome"
                )
            if command is Command.OPEN_UPSTREAM:
                self.is_upstream_open = True
            if command is Command.CANCEL_UPSTREAM:
                self.was_cancelled = True
        self.done += commands
        if event in {Event.ENDED, Event.ENDED_AS_ERROR, Event.UPSTREAM_FAILED}:
            self.is_upstream_open = False

    def accepts(self, event: Event) -> bool:
        return event in TABLE.get(self.exchange.state, {})

    @rule()
    @precondition(lambda self: self.accepts(Event.PREPARED))
    def prepared(self) -> None:
        self.is_prepared = True
        self.feed(Event.PREPARED)

    @rule()
    @precondition(lambda self: self.accepts(Event.REFUSED))
    def refused(self) -> None:
        self.feed(Event.REFUSED)

    @rule(event=strategies.sampled_from(UPSTREAM_EVENTS))
    def upstream(self, event: Event) -> None:
        if self.accepts(event):
            self.feed(event)

    @rule()
    def client_gone(self) -> None:
        was_open = self.is_upstream_open and not self.is_ended
        self.feed(Event.CLIENT_GONE)
        self.is_client_gone = True
        if was_open:
            assert self.was_cancelled, "a gone client always cancels the upstream"
            self.is_upstream_open = False

    @rule()
    def cut(self) -> None:
        was_open = self.is_upstream_open and not self.is_ended
        self.feed(Event.CUT)
        if was_open:
            assert self.was_cancelled
            self.is_upstream_open = False

    @rule(event=strategies.sampled_from((Event.COMMITTED, Event.COMMIT_FAILED)))
    def commit_ran(self, event: Event) -> None:
        if self.accepts(event):
            self.feed(event)

    @invariant()
    def is_committed_exactly_once(self) -> None:
        commits = sum(command in COMMITS for command in self.done)
        assert commits <= int(self.is_prepared)
        if self.is_ended:
            assert commits == int(self.is_prepared)

    @invariant()
    def the_client_is_ended_at_most_once(self) -> None:
        ends = [index for index, command in enumerate(self.done) if command in ENDS_CLIENT]
        assert len(ends) <= 1
        if ends:
            assert not TO_CLIENT & {*self.done[ends[0] + 1 :]}

    @invariant()
    def an_error_status_is_sent_only_when_no_head_was(self) -> None:
        if Command.SEND_HEAD in self.done:
            assert Command.SEND_ERROR not in self.done
        if Command.SEND_ERROR_EVENT in self.done or Command.FORWARD in self.done:
            assert Command.SEND_HEAD in self.done
        assert self.done.count(Command.SEND_HEAD) <= 1

    @invariant()
    def the_reply_is_shown_whole_only_when_it_was_committed(self) -> None:
        if self.exchange.state is State.DONE:
            assert Command.COMMIT_DONE in self.done
            assert self.done[-1] is Command.RELEASE


ExchangeLife.TestCase.settings = settings(max_examples=300, stateful_step_count=14, deadline=None)
TestExchangeLife = ExchangeLife.TestCase


def run(*events: Event) -> tuple[State, list[Command]]:
    exchange = Exchange()
    commands = [command for event in events for command in exchange.step(event)]
    return exchange.state, commands


def test_a_stream_is_forwarded_and_its_end_waits_for_the_commit() -> None:
    exchange = Exchange()
    for event in (Event.PREPARED, Event.STREAM_BEGAN, Event.CHUNK, Event.CHUNK):
        exchange.step(event)
    assert exchange.step(Event.ENDED) == (Command.COMMIT_DONE,)
    assert exchange.step(Event.COMMITTED) == (Command.RELEASE,)
    assert exchange.state is State.DONE


def test_a_client_that_goes_while_its_request_is_recorded_never_reaches_the_upstream() -> None:
    state, commands = run(Event.CLIENT_GONE, Event.PREPARED, Event.COMMITTED)
    assert state is State.ABANDONED
    assert commands == [Command.COMMIT_ABANDONED]


def test_a_client_that_goes_after_the_whole_answer_came_still_has_it_committed_as_done() -> None:
    state, commands = run(
        Event.PREPARED, Event.STREAM_BEGAN, Event.ENDED, Event.CLIENT_GONE, Event.COMMITTED
    )
    assert state is State.DONE
    assert Command.COMMIT_DONE in commands


def test_a_reply_that_could_not_be_committed_is_not_shown() -> None:
    """DESIGN 1.5; the owner who prefers the answer chooses `durability = "relaxed"`."""
    state, commands = run(Event.PREPARED, Event.BODY_BEGAN, Event.ENDED, Event.COMMIT_FAILED)
    assert state is State.FAILED
    assert commands[-1] is Command.SEND_ERROR


def test_a_refused_request_is_answered_and_nothing_is_committed() -> None:
    assert run(Event.REFUSED) == (State.REFUSED, [Command.SEND_ERROR])


def test_end_states_accept_nothing_but_what_comes_from_outside() -> None:
    for state in END_STATES:
        exchange = Exchange()
        exchange.state = state
        assert exchange.step(Event.CLIENT_GONE) == ()
        assert exchange.step(Event.CUT) == ()
        with pytest.raises(IllegalEvent):
            exchange.step(Event.CHUNK)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.RECEIVED}
    while True:
        further = {row[0] for state in reached for row in TABLE.get(state, {}).values()} - reached
        if not further:
            break
        reached |= further
    assert reached == {*State}
    assert {*State} - {*TABLE} == END_STATES
