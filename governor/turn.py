"""One request on its way through the governor: what comes in, what is decided. Pure data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from governor.message import Message
from library.records import Follows, RecordedTurn, TurnState

Recall = Literal["off", "thread", "project", "team"]
"""How far a request recalls; each takes in the one before it."""
Placement = Literal["user", "system", "attached"]
"""Where a desk stands: in front of the last message of the user, and gone with the next one; behind
the system text; or in front of the message that it was laid for, as long as that is there."""
Replacement = Literal["every-turn", "focus", "interval", "on-request"]
"""When a new message of the user brings other records: when any is missing; when those that lie
there serve it too little; when they have lain for so long; or only when somebody asks. Where the
window jumps all is laid afresh anyway."""
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
REPLACEMENTS: tuple[Replacement, ...] = get_args(Replacement)


class Counter(Protocol):
    """Counts tokens as one model's tokenizer does, or no less than it does."""

    identity: str
    """Names the tokenizer and everything else that changes a count: part of cache keys."""
    is_exact: bool
    """False: an upper bound."""
    prompt_overhead_tokens: int
    """What a prompt costs beyond its messages and schemas (the start of the reply)."""

    @property
    def degraded(self) -> str:
        """What is missing at the moment (the upstream does not count); "" when all is well."""

    def count(self, text: str) -> int:
        """Return the tokens of `text`; cheap for a text seen before."""

    def message(self, message: Message) -> int:
        """Return the tokens of a message in a prompt, its template overhead, images and other
        parts included."""

    def schemas(self, schemas: tuple[str, ...]) -> int:
        """Return the tokens of tool and response schemas, given as compact JSON texts."""

    async def prime(self, texts: Sequence[str], schemas: Sequence[str] = ()) -> None:
        """Fetch the counts of texts and schemas where counting needs the upstream; else return
        at once. What could not be fetched is bounded, and `degraded` says so."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that govern one request, already resolved for its model."""

    budget_tokens: int = 8_000
    protected_tokens: int = 1_000
    desk_tokens: int = 2_000
    asked_budget_tokens: int | None = None
    """What the request itself names, before what its thread has; see `budget.settled`."""
    asked_desk_tokens: int | None = None
    key_budget_tokens: int | None = None
    """What the caller's key has, behind what the thread has."""
    window_tokens: int | None = None
    """The model's context window; None: unknown, so only `budget_tokens` limits."""
    reply_reserve_tokens: int = 1_024
    """Kept free of the window for the reply where the client sets no maximum."""
    window_low_water: float = 0.45
    """When the recent window overflows it is cut down, so that it and the desk fill this share of
    what pins leave them: the prompt's prefix then stays the same for several turns."""
    agent_low_water: float = 0.5
    """The same where tools have been called."""
    window_high_water: float = 1.0
    """It overflows at this share, and where the desk finds no room beside it."""
    placement: Placement = "attached"
    replacement: Replacement = "focus"
    desk_served_share: float = 0.2
    """With `focus`: the desk stays while so much of what a new one is worth lies on it, unless a
    question is asked."""
    desk_interval_s: float = 300.0
    """With `interval`: the desk stays for so long."""
    cache_idle_s: float = 3_600.0
    """After such a pause the provider's cache is cold, so that all may be laid afresh; 0: never."""
    recall: Recall = "thread"
    teams: tuple[str, ...] = ()
    """Whose shelves a request recalls from too, with `recall` at `team`."""
    minimum_relevance: float = 0.25
    """Records that score lower stay off the desk."""
    is_observe: bool = False
    """Record and report, but send requests out as they came."""
    is_strict_durability: bool = True
    is_strict_freshness: bool = False
    freshness_timeout_s: float = 5.0
    lookup_tokens: int = 0
    """Of the budget, kept free for what the model looks up by itself, where it may."""
    has_reasoning_of_old_turns: bool = True
    """False: reasoning fields of assistant messages before the last user text are left out."""

    @property
    def is_wide(self) -> bool:
        """Whether more is recalled than the thread's own past."""
        return self.recall in {"project", "team"}


class Dialect(Protocol):
    """What the governor needs of a client protocol: to read a stored message, and to write one."""

    def message_of(self, raw: Mapping[str, Any]) -> Message:
        """Return the message in a stored body.

        Raises:
            MalformedTranscript: it is none; the index is 0.

        """

    def user_message(self, text: str) -> Message:
        """Return a message of the user's role that holds `text` and is nobody's words."""

    def has_reasoning(self, message: Message) -> bool:
        """Tell whether the message carries reasoning beside its words."""

    def written(self, planned: "PlannedMessage") -> Message:
        """Return the message as it goes out; itself where nothing of it changes."""

    def filled(self, message: Message, words: str) -> Message:
        """Return a message without its pieces that say nothing, or with words that say so where
        nothing else is said."""

    def renamed(self, message: Message, call_ids: Sequence[str]) -> Message:
        """Return a message whose calls have other ids, one a call in order."""

    def answering(self, result: Message, call_id: str) -> Message:
        """Return a tool's result as that of another call."""

    def interrupted(self, call_id: str) -> Message:
        """Return the result of a call that has none; it is nobody's words."""

    def with_text_behind(self, message: Message, text: str) -> Message:
        """Return a system message that says `text` behind its own words."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One decoded request."""

    turn_id: str
    collection: str
    session_id: str | None
    identified_by: str
    """What named the session: a header's or field's name, or `content`."""
    model: str
    upstream: str
    messages: tuple[Message, ...]
    """The transcript in the client's order, system messages included."""
    schemas: tuple[str, ...]
    """Tools, tool_choice and response_format as compact JSON."""
    reply_tokens: int | None
    """The client's own maximum for the reply."""
    policy: Policy
    counter: Counter
    dialect: Dialect
    event_id: str | None = None
    """Caller's id for the newest message."""
    follows: Follows | None = None
    """The client sends only what is new, and says what it follows; None: that is found out."""
    instruction_count: int = 0
    """So many messages at the start are system text for this request alone, not for one that goes
    on from its reply."""
    is_whole: bool = False
    """The messages are all there is: never only what is new."""
    focus: str | None = None
    """What to lay the desk out for; None: the question, and the latest step of a tool loop."""
    is_recorded: bool = True
    """False: nothing of it is stored; it is governed by itself, with no thread and no past."""
    lookups: tuple[str, ...] = ()
    """Tools of the gateway's own, as `schemas`, that the model is offered where they leave the
    prompt enough room."""


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """One message of the outgoing prompt."""

    message: Message
    before: str = ""
    """Blocks to put in front of its text, already rendered; "" for none."""
    replaced: str | None = None
    """Stands instead of its text (a shortened tool result)."""
    is_without_reasoning: bool = False


@dataclass(slots=True)
class SwapReport:
    """What came in, went out and stayed, why, and at what cost. Serialised as one JSON line."""

    turn_id: str
    thread_id: str = ""
    branch_id: int = 0
    collection: str = ""
    identified_by: str = ""
    matched_by: str = ""
    has_forked: bool = False
    model: str = ""
    upstream: str = ""
    tokenizer: str = ""
    is_exact: bool = False
    is_paged: bool = False
    is_observe: bool = False
    is_recorded: bool = True
    """False: the client asked that nothing of it is stored."""
    budget_tokens: int = 0
    client_tokens: int = 0
    """What the client's whole transcript would have cost."""
    prompt_tokens: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """Tokens of: system, schemas, pinned, window, desk, question, loop, overhead."""
    messages_in: int = 0
    messages_out: int = 0
    events_new: int = 0
    paged_out_count: int = 0
    lookups: list[dict[str, Any]] = field(default_factory=list)
    """What the model looked up by itself before it answered: tool, query or record, ids found,
    tokens of the result, and of the prompt that brought it."""
    system_left_out: int = 0
    """System messages from the midst of the transcript that are not in the prompt."""
    swapped_in: list[dict[str, Any]] = field(default_factory=list)
    """Records now on the desk that were not: id, part, tokens, score, reason (signals)."""
    swapped_out: list[str] = field(default_factory=list)
    retained: list[str] = field(default_factory=list)
    pinned: list[str] = field(default_factory=list)
    pins_left_out: list[str] = field(default_factory=list)
    plan: str = ""
    """The event with the agent's latest plan, where it is older than the window: it is among
    `pinned`, or among `pins_left_out` where it had no room."""
    shortened: list[str] = field(default_factory=list)
    """Events whose tool result was shortened."""
    repaired: list[str] = field(default_factory=list)
    """What was repaired in a broken transcript, a sentence each."""
    placement: str = ""
    """Where records stand in this thread's prompts, and, in the next, when others come."""
    replacement: str = ""
    desk_because: str = ""
    """Why the desk was kept, added to or laid afresh."""
    prefix_share: float | None = None
    """Share of this prompt's tokens that extend the last prompt's prefix; None: no last prompt."""
    steps_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    """The upstream's own numbers."""
    cached_tokens: int | None = None
    """Of the prompt, what the upstream said it read out of its cache; None: it said nothing."""
    reply_tokens: int | None = None
    is_reply_tokens_estimated: bool = False
    finish_reason: str | None = None
    state: str = "prepared"
    error: str | None = None
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A recorded request and the prompt that was decided for it."""

    turn_id: str
    recorded: RecordedTurn | None
    """None: it was not to be stored, or the store could not write and the durability is relaxed."""
    plan: tuple[PlannedMessage, ...] | None
    """None: the request goes out as it came."""
    report: SwapReport
    prompt_state: bytes | None
    counter: Counter
    has_lookups: bool = False
    """The tools of `TurnRequest.lookups` are counted in, and go out too."""
    used_seqs: tuple[int, ...] = ()
    """Events that were laid on the desk for it."""
    pinned_seqs: tuple[int, ...] = ()
    """Events that stand in the prompt as pinned."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an exchange with the upstream ended."""

    state: TurnState
    replies: tuple[Message, ...] = ()
    """One a choice, as the client would send it back; empty when nothing came."""
    is_partial: bool = False
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    error: str | None = None
    has_hidden_prompt: bool = False
    """The upstream read more than the prompt: its count of it teaches nothing about ours."""
    names: tuple[str, ...] = ()
    """What the client's protocol calls the reply: from now on it is found by these."""
