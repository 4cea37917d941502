"""What a new desk adds to those that lie there."""

from dataclasses import replace

import msgspec
import pytest

from governor.desk.attached import Attachment, Lying, missing, served_share
from governor.desk.laying import Desk, Laid
from governor.state import DeskEntry, LaidDesk
from tests.unit.governor.desk.test_laying import event


def laid(seq: int, *, score: float = 1.0, first: int = 0, last: int = 0) -> Laid:
    entry = DeskEntry(seq, first, last, 4, first * 10, last * 10 + 10)
    return Laid(entry, event(seq, f"words {seq}"), score, {}, 5)


def test_only_what_does_not_lie_there_is_added() -> None:
    there = Desk((laid(1), laid(2, first=0, last=2))).entries
    wanted = Desk((laid(3), laid(1), laid(2, first=1, last=1)))
    assert [one.entry.seq for one in missing(wanted, there).laid] == [3]


def test_a_longer_part_of_a_record_is_added_whole() -> None:
    there = Desk((laid(2, first=0, last=1),)).entries
    wanted = Desk((laid(2, first=1, last=3),))
    assert missing(wanted, there) == wanted


def test_what_a_new_record_replaces_comes_with_it_again() -> None:
    """CASES J8: what no longer holds never lies apart from what replaced it."""
    older = laid(1)
    newer = laid(5)
    named = msgspec.structs.replace(newer.entry, replaces=(older.event.id,))
    wanted = Desk((replace(newer, entry=named), older, laid(6)))
    there = Desk((older, laid(6))).entries
    assert [one.entry.seq for one in missing(wanted, there).laid] == [5, 1]


def test_a_desk_serves_by_the_worth_of_what_lies_there_and_wholly_where_nothing_is_wanted() -> None:
    there = Desk((laid(1), laid(2))).entries
    wanted = Desk((laid(1, score=0.6), laid(3, score=0.3), laid(2, score=0.1)))
    assert served_share(wanted, there) == pytest.approx(0.7)
    assert served_share(Desk(), there) == 1.0
    assert served_share(Desk((laid(3),)), ()) == 0.0


def test_what_lies_there_is_remembered_without_its_text() -> None:
    desk = Desk((laid(1),))
    lying = Lying(laid_desk := Desk((laid(2),)), (Attachment(9, 4, desk, "a block", 7),))
    assert lying.remembered(12) == (LaidDesk(9, desk.entries), LaidDesk(12, laid_desk.entries))
    assert lying.blocks == {4: "a block"}
    assert lying.together == Desk((*desk.laid, *laid_desk.laid))
