"""A transcript with its prices, and the prompt that a choice of its parts makes. Pure.

Order of a prompt: system text | pinned | recent window | desk | last user text | open tool loop.
Pins and desk stand inside user messages, in front of the words: that is legal under every chat
template, and the desk, which changes, is as near to the end as it can be. Desks of earlier turns
may stay in front of their messages; with the placement `system` one stands behind the system text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from governor.desk.rendering import SEPARATOR, shortened_text
from governor.errors import BudgetTooSmall
from governor.message import Message, Role
from governor.ring import Window
from governor.state import TRACE_MESSAGES_MAX, Trace, traced
from governor.transcript import Transcript, Unit
from governor.turn import Counter, Dialect, PlannedMessage, Policy

LEFT_OUT = "[Earlier messages of this conversation were left out to fit the context budget.]"
"""Stands where a prompt would otherwise begin with the assistant, in a chat without a user."""
RESULT_KEPT_CHARS_MIN = 200
"""A result shortened below this says nothing any more: the request is refused instead."""
CHARS_A_TOKEN_MAX = 12
"""Longer text than this many characters a token is cut before it is counted; only a saving."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What goes out, and what it counts."""

    plan: tuple[PlannedMessage, ...]
    costs: tuple[int, ...]
    fixed_tokens: int
    """Schemas and the overhead of a prompt; not in `costs`."""

    @property
    def tokens(self) -> int:
        return self.fixed_tokens + sum(self.costs)


class Layout:
    """Prices the parts of one transcript and puts chosen parts together."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        counter: Counter,
        schemas: tuple[str, ...],
        policy: Policy,
        dialect: Dialect,
    ) -> None:
        self.transcript = transcript
        self.last = len(transcript.units) - 1
        self.schema_tokens = counter.schemas(schemas)
        self.overhead_tokens = counter.prompt_overhead_tokens
        self.replaced: dict[int, str] = {}
        """Message index -> shortened text."""
        self.held: set[int] = set()
        """System messages from the midst of the transcript that stay without their units."""
        self.count = counter.count
        self._counter = counter
        self._policy = policy
        self._dialect = dialect
        self._costs = [counter.message(message) for message in transcript.messages]
        """One a message, as it came or as it was shortened."""
        self._held_tokens = 0
        self.system_tokens = sum(self._costs[: transcript.system_count])
        self._units = [sum(self._costs[unit.start : unit.stop]) for unit in transcript.units]

    # -- prices --------------------------------------------------------------------------------
    def unit_tokens(self, index: int) -> int:
        """Return the price of a unit as it came, or as it was shortened."""
        return self._units[index]

    def total_tokens(self) -> int:
        """Return the price of the whole transcript with all that goes with it."""
        return self.fixed_tokens + self._held_tokens + sum(self._units)

    @property
    def fixed_tokens(self) -> int:
        """What is sent whatever is chosen, messages of the units aside."""
        return self.overhead_tokens + self.schema_tokens + self.system_tokens

    def required(self) -> dict[str, int]:
        """Return the prices of the parts that must be sent."""
        question = self.transcript.question
        return {
            "system": self.system_tokens + self._held_tokens,
            "schemas": self.schema_tokens,
            "overhead": self.overhead_tokens,
            "question": self.unit_tokens(question) if question >= 0 else 0,
            "newest step": self.unit_tokens(self.last) if self.last not in (-1, question) else 0,
        }

    def whole_parts(self) -> dict[str, int]:
        """Return what a transcript that goes out whole spends its tokens on."""
        question = self.transcript.question
        asked = self._units[question] if question >= 0 else 0
        loop = sum(self._units[question + 1 :]) if question >= 0 else 0
        return {
            "system": self.system_tokens,
            "schemas": self.schema_tokens,
            "overhead": self.overhead_tokens,
            "pinned": 0,
            "desk": 0,
            "question": asked,
            "loop": loop,
            "window": sum(self._units) - asked - loop,
        }

    def trace(self, schemas: tuple[str, ...]) -> Trace:
        """Return the trace of a transcript that goes out whole."""
        keys = [message.key for message in self.transcript.messages[:TRACE_MESSAGES_MAX]]
        return traced(keys, self._costs, schemas=schemas, schema_tokens=self.schema_tokens)

    def hold_system_text(self, room_tokens: int) -> int:
        """Keep system messages from the midst of the transcript whatever becomes of their units,
        the newest that fit; return what they cost.

        Not all of them, as those at its start: some clients add a reminder with every turn.
        """
        always = {self.transcript.question, self.last}
        for index in range(self.last, -1, -1):
            unit = self.transcript.units[index]
            for at in range(unit.stop - 1, unit.start - 1, -1):
                is_system = self.transcript.messages[at].role == "system"
                cost = self._costs[at]
                if is_system and index not in always and self._held_tokens + cost <= room_tokens:
                    self.held.add(at)
                    self._held_tokens += cost
                    self._units[index] -= cost
        return self._held_tokens

    def left_tokens(
        self, budget_tokens: int, *, record_id: Callable[[int], str | None] = lambda _: None
    ) -> int:
        """Return what the required parts leave, shortening the newest results if they must be.

        `record_id` names the record that holds a message of the transcript.

        Raises:
            BudgetTooSmall: they do not fit, even with shortened tool results.

        """
        opening = {"opening": self._opening_tokens(budget_tokens)}
        parts = self.required() | opening
        left = budget_tokens - sum(parts.values())
        step = parts["newest step"]
        if left < 0 and step and self._shorten(step + left, record_id):
            parts = self.required() | opening
            left = budget_tokens - sum(parts.values())
        if left < 0:
            raise BudgetTooSmall(
                needed_tokens=sum(parts.values()), budget_tokens=budget_tokens, parts=parts
            )
        return left

    def _opening_tokens(self, budget_tokens: int) -> int:
        """Return the price of the user message that a shortened chat without one is given."""
        if self.transcript.question >= 0 or self.total_tokens() <= budget_tokens:
            return 0
        return self._counter.message(self._dialect.user_message(LEFT_OUT))

    def _shorten(self, room_tokens: int, record_id: Callable[[int], str | None]) -> bool:
        """Shorten the tool results of the newest unit until it fits; tell whether it does."""
        unit = self.transcript.units[self.last]
        results = [
            at for at in range(unit.start, unit.stop) if self.transcript.messages[at].role == "tool"
        ]
        chars = room_tokens * CHARS_A_TOKEN_MAX // max(1, len(results))
        while results and room_tokens > 0 and chars >= RESULT_KEPT_CHARS_MIN:
            for at in results:
                text = self.transcript.messages[at].text
                if len(text) > chars:
                    self.replaced[at] = shortened_text(
                        text, kept_chars=chars, record_id=record_id(at)
                    )
            self._price_again(unit)
            if self.unit_tokens(self.last) <= room_tokens:
                return True
            chars = chars * 4 // 5
        self.replaced.clear()
        self._price_again(unit)
        return False

    def _price_again(self, unit: Unit) -> None:
        """Take over what was shortened in the newest unit, or no longer is."""
        for at in range(unit.start, unit.stop):
            self._costs[at] = self._written_tokens(at)
        self._units[self.last] = sum(self._costs[unit.start : unit.stop])

    # -- putting together ----------------------------------------------------------------------
    def compose(
        self,
        window: Window,
        *,
        pinned: str = "",
        desk: str = "",
        attached: Mapping[int, str] | None = None,
    ) -> Prompt:
        """Return the prompt of the window's units with the blocks where they belong; `attached`
        are those of earlier desks and of steps, by the message that they stand in front of."""
        transcript = self.transcript
        chosen = list(range(transcript.system_count))
        for index, unit in enumerate(transcript.units):
            is_kept = window.holds(index) or index in (transcript.question, self.last)
            run = range(unit.start, unit.stop)
            chosen.extend(at for at in run if is_kept or at in self.held)
        in_system = desk if self._policy.placement == "system" and transcript.system_count else ""
        desk = "" if in_system else desk
        before = self._blocks(chosen, pinned=pinned, desk=desk, attached=attached or {})
        plan = [
            PlannedMessage(
                transcript.messages[at],
                before=before.get(at, ""),
                replaced=self.replaced.get(at),
                is_without_reasoning=self._is_without_reasoning(at),
            )
            for at in chosen
        ]
        costs = [self._planned_tokens(at, before.get(at, "")) for at in chosen]
        if in_system:
            at = transcript.system_count - 1
            longer = self._dialect.with_text_behind(transcript.messages[at], in_system)
            plan[at], costs[at] = PlannedMessage(longer), self._counter.message(longer)
        if transcript.question < 0 and (pinned or desk or window.start > 0):
            words = SEPARATOR.join(part for part in (pinned, desk) if part) or LEFT_OUT
            made = self._dialect.user_message(words)
            plan.insert(transcript.system_count, PlannedMessage(made))
            costs.insert(transcript.system_count, self._counter.message(made))
        return Prompt(tuple(plan), tuple(costs), self.overhead_tokens + self.schema_tokens)

    def left_out_count(self, units: Sequence[int], *, role: Role | None = None) -> int:
        """Return how many messages, of one role or of all, are in no prompt of these units."""
        kept, transcript = {*units}, self.transcript
        return sum(
            at not in self.held and role in {None, transcript.messages[at].role}
            for index, unit in enumerate(transcript.units)
            if index not in kept
            for at in range(unit.start, unit.stop)
        )

    def _planned_tokens(self, at: int, before: str) -> int:
        if not before:
            return self._costs[at]
        return self._written_tokens(at, before=before)

    def _written_tokens(self, at: int, *, before: str = "") -> int:
        """Return the price of a message as it goes out; its reasoning is paid for in any case."""
        message, replaced = self.transcript.messages[at], self.replaced.get(at)
        return self._counter.message(
            self._dialect.written(PlannedMessage(message, before=before, replaced=replaced))
        )

    def _blocks(
        self, chosen: list[int], *, pinned: str, desk: str, attached: Mapping[int, str]
    ) -> Mapping[int, str]:
        """Return what stands in front of which message: pins before the first user message, the
        desk before the last; one that belongs behind a system text that is not there, before the
        first."""
        messages = self.transcript.messages
        of_user = [at for at in chosen if messages[at].role == "user"]
        if not of_user:
            return {}
        assert attached.keys() <= {*chosen} - {of_user[-1]}, "an attached desk lost its message"
        place = of_user[0 if self._policy.placement == "system" else -1]
        blocks: dict[int, list[str]] = {}
        for at, words in ((of_user[0], pinned), *attached.items(), (place, desk)):
            if words:
                blocks.setdefault(at, []).append(words)
        return {at: SEPARATOR.join(words) for at, words in blocks.items()}

    def added_tokens(self, at: int, block: str) -> int:
        """Return what a block adds to a message."""
        return self._planned_tokens(at, block) - self._costs[at]

    def _is_without_reasoning(self, at: int) -> bool:
        if self._policy.has_reasoning_of_old_turns or self.transcript.question < 0:
            return False
        is_old = at < self.transcript.units[self.transcript.question].start
        return is_old and self._dialect.has_reasoning(self.transcript.messages[at])

    def question_message(self) -> Message | None:
        """Return the last message of the user."""
        if self.transcript.question < 0:
            return None
        unit = self.transcript.unit_messages(self.transcript.question)
        return next(message for message in reversed(unit) if message.role == "user")


def is_changed(plan: Sequence[PlannedMessage], messages: Sequence[Message]) -> bool:
    """Tell whether the plan is anything but the client's messages, one after the other."""
    return len(plan) != len(messages) or any(
        planned.message is not message
        or planned.before
        or planned.replaced is not None
        or planned.is_without_reasoning
        for planned, message in zip(plan, messages, strict=True)
    )
