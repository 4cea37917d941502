"""A name for the state of what can be found, so that a cached ranking needs no check.

Every change of what a collection's searches can find gives it a new random token, and every change
of the indexes gives one to all of them (the weight of a word is counted over the whole index). A
ranking's key holds the tokens it was made under (library/cache/rankings.py). They are random, not
counted: a store that was restored from a copy goes on from the copy's token, and no number is ever
used for two states.

Where they live: in this process, which owns the database, so that no search reads anything for
them. A clean end leaves them in the store; the next start takes them from there, durably, before
anything changes, and goes on with them. After any other end there is nothing to take, and every
ranking of before is lost: so a token that could be wrong is never read. Counting in each
transaction instead was rejected: it costs every write an UPDATE, for rankings after a crash.

Where several processes write to one store the token has to come from the store with what each
request reads there anyway, the result of recording it.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from library.records import Path, RecordedTurn
from library.runtime.tokens import random_token

TOKEN_BYTES = 12
MOST_COLLECTIONS = 1_024
MOST_TIPS = 4_096
"""Threads whose place is remembered; of another one every turn counts as a change."""


def _random_token() -> str:
    return random_token(TOKEN_BYTES)


class Generations:
    """The tokens of one store; see the module's docstring."""

    def __init__(self, *, new_token: Callable[[], str] = _random_token) -> None:
        self._new_token = new_token
        self._all = new_token()
        self._own: OrderedDict[int, str] = OrderedDict()
        self._tips: OrderedDict[int, Path] = OrderedDict()
        self._deleted_count = 0
        self._deletions = 0
        """Under way."""
        self._doubt_count = 0
        self._is_in_doubt = False

    @property
    def deleted_count(self) -> int | None:
        """Counts the times at which something may have been deleted; None: it is not known now."""
        return None if self._is_in_doubt or self._deletions else self._deleted_count

    def of(self, collection_id: int) -> tuple[str, str] | None:
        """Return what names the state of a collection; None: it is not known just now."""
        if self._is_in_doubt:
            return None
        if collection_id not in self._own:
            self._renew(collection_id)
        self._own.move_to_end(collection_id)
        return self._all, self._own[collection_id]

    def changed(self, collection_id: int) -> None:
        """Note that a collection's searches may find something else from now on."""
        self._renew(collection_id)

    def all_changed(self) -> None:
        """Note the same of every collection."""
        self._all = self._new_token()

    def deleted(self) -> None:
        """Note that something was deleted."""
        self._deleted_count += 1
        self.all_changed()

    @contextmanager
    def deleting(self) -> Iterator[None]:
        """Hold around a deletion: the store does it portion by portion and rewrites its file at
        last, which may take minutes, and nobody may be shown meanwhile what is gone."""
        self._deletions += 1
        try:
            yield
        finally:
            self._deletions -= 1
            self.deleted()

    def moves(self, recorded: RecordedTurn) -> bool:
        """Tell whether recording this turn changed what can be found, and note it if so.

        A turn without a new event may: it makes the branch it stands on the live one.
        """
        is_same = self._tips.get(recorded.thread_no) == recorded.path
        self._tips[recorded.thread_no] = recorded.path
        self._tips.move_to_end(recorded.thread_no)
        if len(self._tips) > MOST_TIPS:
            self._tips.popitem(last=False)
        if is_same and not recorded.new_count and not recorded.has_forked:
            return False
        self.changed(recorded.collection_id)
        return True

    def replied(self, collection_id: int, thread_no: int) -> None:
        """Note that replies were added to a thread."""
        self._tips.pop(thread_no, None)
        self.changed(collection_id)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold around a write to the store.

        One that fails, or whose caller is cancelled, may be carried out all the same and later: no
        token is valid until a write that was begun after it has ended, since the store does what it
        is told in order.
        """
        doubt_count = self._doubt_count
        try:
            yield
        except BaseException:
            self._doubt_count += 1
            self._is_in_doubt = True
            raise
        if self._is_in_doubt and doubt_count == self._doubt_count:
            self._is_in_doubt = False
            self._tips.clear()
            self.deleted()

    def left(self) -> str:
        """Return what to leave for the next start."""
        return "" if self._is_in_doubt else json.dumps([self._all, list(self._own.items())])

    def take(self, left: str | None) -> None:
        """Go on from what an earlier process left, which must be gone from the store by now."""
        if left:
            self._all, own = json.loads(left)
            self._own = OrderedDict((collection_id, token) for collection_id, token in own)

    def _renew(self, collection_id: int) -> None:
        self._own[collection_id] = self._new_token()
        self._own.move_to_end(collection_id)
        if len(self._own) > MOST_COLLECTIONS:
            self._own.popitem(last=False)
