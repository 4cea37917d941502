"""The life of one exchange of client, governor and upstream, as a table. Pure: no I/O.

The driver (gateway/relay.py) says what happened (`Event`), the table answers with what must be done
(`Command`), and only that is done. So the promises that matter - a prepared exchange is committed
exactly once, nothing is forwarded after an end, a client that is gone always stops the upstream,
the client's end waits for the commit - are statements about this table, and a state test walks it.

Events carry no data: the driver knows which bytes an event brought, the table knows what may be
done with them. That keeps a step at one dictionary look-up, once per relayed chunk. All three are
strings, since a plain `Enum` is hashed by a Python function.

    received -> prepared -> reading (a whole body) or streaming -> a state that waits for the
    commit -> done | failed | abandoned | refused

Rejected: a coroutine that awaits its way through the cases. Every `await` in it is a place where
the client may go or the server may stop, and the cases multiply out of sight.
"""

from enum import StrEnum

from library.records import TurnState


class State(StrEnum):
    """Where an exchange stands."""

    RECEIVED = "received"
    """Being recorded and governed; the upstream knows nothing yet."""
    LEFT = "left"
    """The client went, or the server stops, while it was being recorded."""
    PREPARED = "prepared"
    """Recorded; the upstream is being asked."""
    READING = "reading"
    """The answer is collected; nothing has been sent to the client."""
    STREAMING = "streaming"
    """The head has been sent, and chunks are forwarded as they come."""
    COMMITTING_ANSWER = "committing answer"
    """The whole answer is here, nothing of it was sent; its commit is running."""
    COMMITTING_END = "committing end"
    """All but the stream's end was sent; the commit is running."""
    COMMITTING_REJECTION = "committing rejection"
    """The upstream's own error answer is here; the failure is being committed."""
    COMMITTING_FAILURE = "committing failure"
    """No answer came, nothing was sent; the failure is being committed."""
    COMMITTING_BREAK = "committing break"
    """The stream broke off after its head was sent; what came is being committed."""
    COMMITTING_REST = "committing rest"
    """Nobody is there to read any more; what came is being committed."""
    DONE = "done"
    FAILED = "failed"
    ABANDONED = "abandoned"
    REFUSED = "refused"


class Event(StrEnum):
    """What happened."""

    PREPARED = "prepared"
    REFUSED = "refused"
    """The governor or the library said no; there is nothing to commit."""
    BODY_BEGAN = "body began"
    """The upstream's head came, and its body is to be read whole."""
    STREAM_BEGAN = "stream began"
    """The upstream's head came, and its body is to be relayed as it arrives."""
    CHUNK = "chunk"
    OVERGROWN = "overgrown"
    """The collected body passed the limit."""
    ENDED = "ended"
    """The answer is complete."""
    ENDED_AS_ERROR = "ended as error"
    """The answer is complete, and it is the upstream's own error."""
    UPSTREAM_FAILED = "upstream failed"
    """No answer, or it broke off."""
    CLIENT_GONE = "client gone"
    CUT = "cut"
    """The server stops and cannot wait any longer."""
    COMMITTED = "committed"
    COMMIT_FAILED = "commit failed"


class Command(StrEnum):
    """What the driver must do."""

    OPEN_UPSTREAM = "open upstream"
    SEND_HEAD = "send head"
    FORWARD = "forward"
    """Send what has come and may be shown."""
    HOLD = "hold"
    """Keep what has come."""
    COMMIT_DONE = "commit done"
    COMMIT_FAILED = "commit failed"
    COMMIT_ABANDONED = "commit abandoned"
    CANCEL_UPSTREAM = "cancel upstream"
    RELEASE = "release"
    """Send what is held - the head too where it was not sent - and end the response."""
    SEND_ERROR = "send error"
    """Answer with an error of ours; nothing was sent before."""
    SEND_ERROR_EVENT = "send error event"
    """Say in the stream's own form that it failed, and end it without `[DONE]`."""


COMMITS: dict[Command, TurnState] = {
    Command.COMMIT_DONE: TurnState.DONE,
    Command.COMMIT_FAILED: TurnState.FAILED,
    Command.COMMIT_ABANDONED: TurnState.ABANDONED,
}
END_STATES = frozenset({State.DONE, State.FAILED, State.ABANDONED, State.REFUSED})

Row = tuple[State, tuple[Command, ...]]

TABLE: dict[State, dict[Event, Row]] = {
    State.RECEIVED: {
        Event.PREPARED: (State.PREPARED, (Command.OPEN_UPSTREAM,)),
        Event.REFUSED: (State.REFUSED, (Command.SEND_ERROR,)),
        Event.CLIENT_GONE: (State.LEFT, ()),
        Event.CUT: (State.LEFT, ()),
    },
    State.LEFT: {
        Event.PREPARED: (State.COMMITTING_REST, (Command.COMMIT_ABANDONED,)),
        Event.REFUSED: (State.REFUSED, (Command.SEND_ERROR,)),
    },
    State.PREPARED: {
        Event.BODY_BEGAN: (State.READING, ()),
        Event.STREAM_BEGAN: (State.STREAMING, (Command.SEND_HEAD,)),
        Event.UPSTREAM_FAILED: (State.COMMITTING_FAILURE, (Command.COMMIT_FAILED,)),
        Event.CLIENT_GONE: (
            State.COMMITTING_REST,
            (Command.CANCEL_UPSTREAM, Command.COMMIT_ABANDONED),
        ),
        Event.CUT: (State.COMMITTING_FAILURE, (Command.CANCEL_UPSTREAM, Command.COMMIT_FAILED)),
    },
    State.READING: {
        Event.CHUNK: (State.READING, (Command.HOLD,)),
        Event.OVERGROWN: (State.STREAMING, (Command.SEND_HEAD, Command.FORWARD)),
        Event.ENDED: (State.COMMITTING_ANSWER, (Command.COMMIT_DONE,)),
        Event.ENDED_AS_ERROR: (State.COMMITTING_REJECTION, (Command.COMMIT_FAILED,)),
        Event.UPSTREAM_FAILED: (
            State.COMMITTING_FAILURE,
            (Command.CANCEL_UPSTREAM, Command.COMMIT_FAILED),
        ),
        Event.CLIENT_GONE: (
            State.COMMITTING_REST,
            (Command.CANCEL_UPSTREAM, Command.COMMIT_ABANDONED),
        ),
        Event.CUT: (State.COMMITTING_FAILURE, (Command.CANCEL_UPSTREAM, Command.COMMIT_FAILED)),
    },
    State.STREAMING: {
        Event.CHUNK: (State.STREAMING, (Command.FORWARD,)),
        Event.ENDED: (State.COMMITTING_END, (Command.COMMIT_DONE,)),
        Event.ENDED_AS_ERROR: (State.COMMITTING_REJECTION, (Command.COMMIT_FAILED,)),
        Event.UPSTREAM_FAILED: (
            State.COMMITTING_BREAK,
            (Command.CANCEL_UPSTREAM, Command.COMMIT_FAILED),
        ),
        Event.CLIENT_GONE: (
            State.COMMITTING_REST,
            (Command.CANCEL_UPSTREAM, Command.COMMIT_ABANDONED),
        ),
        Event.CUT: (State.COMMITTING_BREAK, (Command.CANCEL_UPSTREAM, Command.COMMIT_FAILED)),
    },
    State.COMMITTING_ANSWER: {
        Event.COMMITTED: (State.DONE, (Command.RELEASE,)),
        Event.COMMIT_FAILED: (State.FAILED, (Command.SEND_ERROR,)),
    },
    State.COMMITTING_END: {
        Event.COMMITTED: (State.DONE, (Command.RELEASE,)),
        Event.COMMIT_FAILED: (State.FAILED, (Command.SEND_ERROR_EVENT,)),
    },
    # An error is told whether or not it could be written down: no reply is lost with it.
    State.COMMITTING_REJECTION: {
        Event.COMMITTED: (State.FAILED, (Command.RELEASE,)),
        Event.COMMIT_FAILED: (State.FAILED, (Command.RELEASE,)),
    },
    State.COMMITTING_FAILURE: {
        Event.COMMITTED: (State.FAILED, (Command.SEND_ERROR,)),
        Event.COMMIT_FAILED: (State.FAILED, (Command.SEND_ERROR,)),
    },
    State.COMMITTING_BREAK: {
        Event.COMMITTED: (State.FAILED, (Command.SEND_ERROR_EVENT,)),
        Event.COMMIT_FAILED: (State.FAILED, (Command.SEND_ERROR_EVENT,)),
    },
    State.COMMITTING_REST: {
        Event.COMMITTED: (State.ABANDONED, ()),
        Event.COMMIT_FAILED: (State.ABANDONED, ()),
    },
}

_AT_ANY_TIME = frozenset({Event.CLIENT_GONE, Event.CUT})
"""Come from outside the exchange, so they are legal everywhere; where the table has no row for
them, there is nothing left to stop."""


class IllegalEvent(AssertionError):
    """The driver reported something that cannot happen in this state: a bug of ours."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{event.value!r} cannot happen to an exchange that is {state.value!r}")
        self.state = state
        self.event = event


class Exchange:
    """One exchange's place in the table."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State.RECEIVED

    def step(self, event: Event) -> tuple[Command, ...]:
        """Move on, and return what must be done now, in order.

        Raises:
            IllegalEvent: the table has no such row.

        """
        row = TABLE.get(self.state, {}).get(event)
        if row is None:
            if event in _AT_ANY_TIME:
                return ()
            raise IllegalEvent(self.state, event)
        self.state, commands = row
        return commands
