"""Who asks: gateway keys, each hashed in one private file, and what a key may reach.

A key is 256 random bits, so one SHA-256 of it is as hard to reverse as a slow hash of a password
would be, and costs a microsecond. Keys are compared in constant time. The file is read again when
it changes; whether it did is asked a few times a second at most, off the event loop, and a revoked
key dies within that time.

Without a keys file there is one caller, who may do everything: the gateway then listens on loopback
only (gateway/settings.py sees to it).
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gateway.refusals import KeyRequired
from library.errors import Unacceptable
from library.kinds.teams import is_shelf, shelf_of
from library.records import Scope

DEFAULT_COLLECTION = "default"
KEY_PREFIX = "loc-"
KEY_BYTES = 32
_BARE_KEY_HEADERS = ("x-api-key", "api-key")
AUTHORIZATION = frozenset({"authorization", *_BARE_KEY_HEADERS})
"""Where a request may carry a key."""
CHECK_EVERY_S = 0.25
"""How long a revoked key may still be good."""
SCOPES: tuple[Scope, ...] = ("thread", "project")
_FILE_BYTES_MAX = 4 * 2**20
"""About ten thousand keys."""


class KeysFileUnusable(Exception):
    """The keys file at `path` cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"keys file {path}: {reason}")
        self.path = path
        self.reason = reason


class KeyNameTaken(Exception):
    """There is a key called `name` already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a key {name!r} already; revoke it first, or name another")
        self.name = name


class GatewayKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key as it is stored: never the key itself."""

    id: str
    """The name it was given, unique in its file: shown in lists, and what `revoke` takes."""
    sha256: str
    collection: str
    scopes: tuple[Scope, ...] = SCOPES
    teams: tuple[str, ...] = ()
    """Whose shelves it reads, and may promote records to: this and nothing else makes a member."""
    budget_tokens: int | None = None
    """In place of the setting, for this key's requests."""
    upstream: str | None = None
    """A name from [upstreams], in place of the setting."""
    created_at: str = ""

    def __post_init__(self) -> None:
        """Refuse a key that would have a team's shelf as its own, or be in no team by name.

        Raises:
            ValueError: it would.

        """
        if is_shelf(self.collection):
            raise ValueError(f"collection {self.collection!r} is a team's; give the key --team")
        if self.teams and "project" not in self.scopes:
            raise ValueError("who reads a team's shelf reads the own project, too")
        for team in self.teams:
            try:
                shelf_of(team)
            except Unacceptable as error:
                raise ValueError(str(error)) from error


class _KeysFile(msgspec.Struct, frozen=True):
    keys: tuple[GatewayKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and how far they reach."""

    collection: str
    name: str = ""
    """Of the key; "": asked without one."""
    scopes: tuple[Scope, ...] = SCOPES
    teams: tuple[str, ...] = ()
    budget_tokens: int | None = None
    upstream: str | None = None
    address: str | None = None
    """Base URL that the request's own path names as its upstream, checked; before all others."""
    is_keyed: bool = False
    """Asked with a gateway key, which must not go upstream."""
    is_owner: bool = False
    """The owner of the database file, through the command line: reaches every collection."""


LOCAL = Principal(DEFAULT_COLLECTION)
OWNER = Principal(DEFAULT_COLLECTION, is_owner=True, is_keyed=True)


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def list_keys(path: Path) -> tuple[GatewayKey, ...]:
    """Return the keys in the file; none when there is no file.

    Raises:
        KeysFileUnusable: others can read it, or it is no keys file.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise KeysFileUnusable(path, str(error)) from error
    with open(descriptor, "rb") as file:
        if sys.platform != "win32" and stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            raise KeysFileUnusable(path, "others can read it; run chmod 600 on it")
        content = file.read(_FILE_BYTES_MAX)
    try:
        return msgspec.json.decode(content, type=_KeysFile).keys
    except msgspec.MsgspecError as error:
        raise KeysFileUnusable(path, f"is no keys file: {error}") from error


def add_key(
    path: Path,
    *,
    key_id: str,
    collection: str,
    scopes: tuple[Scope, ...] = SCOPES,
    teams: tuple[str, ...] = (),
    budget_tokens: int | None = None,
    upstream: str | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[GatewayKey, str]:
    """Add a key; return it and, this one time, the key in clear.

    Raises:
        KeyNameTaken: there is one of that name.
        KeysFileUnusable: the file cannot be read or written.
        ValueError: no key may have such a collection, or such teams.

    """
    present = list_keys(path)
    if any(key.id == key_id for key in present):
        raise KeyNameTaken(key_id)
    clear = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    key = GatewayKey(
        id=key_id,
        sha256=hashed(clear),
        collection=collection,
        scopes=scopes,
        teams=teams,
        budget_tokens=budget_tokens,
        upstream=upstream,
        created_at=now().isoformat(timespec="seconds"),
    )
    _write(path, (*present, key))
    return key, clear


def revoke_key(path: Path, key_id: str) -> bool:
    """Remove a key; return whether there was one.

    Raises:
        KeysFileUnusable: the file cannot be read or written.

    """
    keys = list_keys(path)
    kept = tuple(key for key in keys if key.id != key_id)
    if len(kept) < len(keys):
        _write(path, kept)
    return len(kept) < len(keys)


def _write(path: Path, keys: tuple[GatewayKey, ...]) -> None:
    """Replace the file in one step, so that no reader sees half of it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    content = msgspec.json.format(msgspec.json.encode(_KeysFile(keys)), indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(content + b"\n")
                file.flush()
                os.fsync(descriptor)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        raise KeysFileUnusable(path, str(error)) from error


class Keyring:
    """The keys in force."""

    def __init__(self, path: Path, *, monotonic_s: Callable[[], float]) -> None:
        """Read the file.

        Raises:
            KeysFileUnusable: it cannot be used.

        """
        self._path = path
        self._monotonic_s = monotonic_s
        self._stamp = _stamp(path)
        self._keys = list_keys(path)
        self._checked_s = monotonic_s()

    async def principal(self, presented: str | None) -> Principal:
        """Return whose key was presented.

        Raises:
            KeyRequired: nobody's.

        """
        await self._renew()
        if presented:
            digest = hashed(presented)
            found = None
            for key in self._keys:  # All of them: the time must not tell which one it was.
                if hmac.compare_digest(key.sha256, digest):
                    found = key
            if found is not None:
                return Principal(
                    collection=found.collection,
                    name=found.id,
                    scopes=found.scopes,
                    teams=found.teams,
                    budget_tokens=found.budget_tokens,
                    upstream=found.upstream,
                    is_keyed=True,
                )
        raise KeyRequired

    async def teams(self) -> frozenset[str]:
        """Return the teams that the keys name."""
        await self._renew()
        return frozenset(team for key in self._keys for team in key.teams)

    async def _renew(self) -> None:
        if self._monotonic_s() - self._checked_s > CHECK_EVERY_S:
            self._checked_s = self._monotonic_s()
            await asyncio.to_thread(self._read_again)

    def _read_again(self) -> None:
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            try:
                self._keys = list_keys(self._path)
            except KeysFileUnusable:
                # A file that nobody can vouch for opens no door.
                self._keys = ()
            self._stamp = stamp


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def presented_key(headers: Mapping[str, str]) -> str | None:
    """Return the key a request brings, in any of the usual headers."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials:
        return credentials.strip()
    return next(filter(None, map(headers.get, _BARE_KEY_HEADERS)), None)
