"""Where the messages of a transcript stand in the store, and which are in a prompt."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from governor.layout import Layout
from governor.recording import Placed
from governor.ring import Window


@dataclass(frozen=True, slots=True)
class Located:
    """A transcript with its places in the store."""

    layout: Layout
    places: Sequence[Placed | None]
    """One for each message of the transcript; None: nowhere (system text, repairs)."""

    def unit_places(self, index: int) -> list[Placed]:
        """Return where the messages of a unit stand in the store."""
        return [place for at in self.run(index) if (place := self.places[at]) is not None]

    def kept(self, window: Window) -> list[int]:
        """Return the units that are in the prompt."""
        always = {self.layout.transcript.question, self.layout.last}
        count = len(self.layout.transcript.units)
        return [index for index in range(count) if window.holds(index) or index in always]

    def seqs(self, units: Sequence[int]) -> set[int]:
        """Return the events of some units."""
        return {place.seq for index in units for place in self.unit_places(index)}

    def question_seq(self) -> int | None:
        """Return the event of the last user message."""
        index = self.layout.transcript.question
        places = self.unit_places(index) if index >= 0 else []
        return places[-1].seq if places else None

    def newest_seq(self) -> int | None:
        """Return the event of the last message that is one."""
        return next((place.seq for place in reversed(self.places) if place is not None), None)

    def bearers(self, seqs: Collection[int | None]) -> dict[int, int]:
        """Return where the messages stand that are these events, of those that a desk may stand in
        front of: the user's, and results of tools."""
        found: dict[int, int] = {}
        left = {*seqs} - {None}
        for at in range(len(self.places) - 1, -1, -1):
            if not left:
                break
            place = self.places[at]
            if place is not None and place.seq in left:
                left.discard(place.seq)
                if self.layout.transcript.messages[at].role in {"user", "tool"}:
                    found[place.seq] = at
        return found

    def newest_result(self) -> tuple[int, int] | None:
        """Return where the newest result of an open tool loop stands, and which event it is."""
        newest = self.run(self.layout.last) if self.layout.last >= 0 else range(0)
        for at in reversed(newest):
            place = self.places[at]
            if place is not None and self.layout.transcript.messages[at].role == "tool":
                return at, place.seq
        return None

    def unit_of(self, at: int) -> int:
        """Return the unit that a message of the transcript is in."""
        return next(
            index
            for index, unit in enumerate(self.layout.transcript.units)
            if unit.start <= at < unit.stop
        )

    def digests(self, window: Window) -> frozenset[bytes]:
        """Return the identities of all messages in the prompt."""
        return frozenset(
            message.digest
            for index in self.kept(window)
            for message in self.layout.transcript.unit_messages(index)
        )

    def run(self, index: int) -> range:
        """Return the messages of a unit."""
        unit = self.layout.transcript.units[index]
        return range(unit.start, unit.stop)
