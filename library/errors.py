"""What can go wrong in the library, told apart by who can act.

* LibraryError
  x StoreUnavailable      nothing can be written now (full, read-only, locked too long, busy)
  x StoreCorrupt          the file is damaged; retrying does not help
  x OtherSchema           the file was made by a version with another schema
  x StoreOwned            another process owns the database
  x UnsuitableFileSystem  the database lies where SQLite's locks cannot be trusted
  x EventConflict         a caller-given event id is taken by other content
  x TooManyPins           a thread, or a collection, has all the pins it may have
  x BadPattern            what to grep for is no pattern
  x Unacceptable          what was given is not what it must be
  x UnknownRecord         no such thread, event, turn or response in this collection
    x UnknownCollection   no collection of that name

A broken invariant of our own is an `assert`, not a member of this tree.
"""

from collections.abc import Sequence


class LibraryError(Exception):
    """Base of every error the library raises on purpose."""


class StoreUnavailable(LibraryError):
    """The store cannot write now; `reason` is `full`, `read-only`, `locked`, `io-error`,
    `busy` (too many calls wait), `replaced` (the file was deleted or put in another's place) or
    `closed`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"the store cannot write ({reason}){': ' + detail if detail else ''}")
        self.reason = reason


class StoreCorrupt(LibraryError):
    """The database file is damaged."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the database is damaged: {detail}")
        self.detail = detail


class OtherSchema(LibraryError):
    """The database was made by another version, under the same numbers; it `lacks` what is used."""

    def __init__(self, lacks: Sequence[str]) -> None:
        more = f" and {len(lacks) - 3} more" if len(lacks) > 3 else ""
        super().__init__(
            f"the database has another schema than this version makes: no {', '.join(lacks[:3])}"
            f"{more}; choose another --db, and move over with `export` of the version that made "
            "it and `import` of this one"
        )
        self.lacks = lacks


class StoreOwned(LibraryError):
    """Another process holds the owner lock of this database."""

    def __init__(self, *, path: str, owner: str) -> None:
        super().__init__(f"{path} is in use by {owner}; stop it, or choose another --db")
        self.path = path
        self.owner = owner


class UnsuitableFileSystem(LibraryError):
    """The database path is a symlink or lies on a file system whose locks are not reliable."""

    def __init__(self, *, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot hold the database: {reason}")
        self.path = path
        self.reason = reason


class EventConflict(LibraryError):
    """Event `event_id` was recorded before with other content."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event id {event_id!r} was used before for other content")
        self.event_id = event_id


class TooManyPins(LibraryError):
    """There are `limit` pins already that hold for the same threads."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"there are {limit} pins already; take one away first")
        self.limit = limit


class BadPattern(LibraryError):
    """`pattern` is no regular expression, or too long."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"the pattern {pattern!r}: {reason}")
        self.pattern = pattern
        self.reason = reason


class Unacceptable(LibraryError):
    """What was given as `name` must be something else."""

    def __init__(self, name: str, must: str) -> None:
        super().__init__(f"{name!r} must be {must}")
        self.name = name


class UnknownRecord(LibraryError):
    """`kind` (thread, event, turn, ...) `name` does not exist in the caller's collection."""

    def __init__(self, *, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name!r} in this collection")
        self.kind = kind
        self.name = name


class UnknownCollection(UnknownRecord):
    """There is no collection `name`; `others` are called nearly so, or are all there are."""

    def __init__(self, name: str, others: Sequence[str]) -> None:
        super().__init__(kind="collection", name=name)
        self.others = others

    def __str__(self) -> str:
        others = f"; there is {', '.join(map(repr, self.others))}" if self.others else ""
        return f"there is no collection {self.name!r}{others}"
