"""Where the count of one text comes from. The only module that knows tokenizer libraries.

Texts may hold anything a client can send: strings that name special tokens are counted as the
ordinary text they are (never less than a server that takes them for special), and lone surrogates,
which no tokenizer accepts, as the three bytes each that they would be.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from governor.counting.bound import bound_tokens
from governor.counting.cache import CountCache
from library.runtime.allocator import give_back

UpstreamCount = Callable[[str], Awaitable[int | None]]
"""Asks the upstream for the tokens of a text; None: it could not tell. Raises nothing."""

ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony", "qwen3", "llama3")
PRIME_CONCURRENCY = 8
"""Enough to hide a local server's round trips; its tokenizer is one thread."""
PRIME_TIMEOUT_S = 3.0
"""A first request with a long history may need it; later ones ask for two or three texts."""


class Source(Protocol):
    """Counts one text."""

    identity: str
    is_exact: bool
    direct_chars: int
    """Up to this length counting is as fast as looking the count up."""

    def count(self, text: str) -> int: ...


class Encoding:
    """One of the encodings that quicktok brings.

    Loading takes 0.5 s and 55 MB once, and holds the interpreter lock all the while (measured:
    a timer thread stood still for 0.53 s), so it is done at start where it will be needed, before
    the first request. It goes on in C++, so a thread only keeps the caller's stack free. Counting
    lets the lock go.
    """

    is_exact = True
    direct_chars = 128

    def __init__(self, name: str) -> None:
        assert name in ENCODINGS, name
        self.identity = name
        self._lock = threading.Lock()
        self._count: Callable[[str], int] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._count is not None

    def load(self) -> Callable[[str], int]:
        """Load the encoding if that was not done yet, and return its count. Thread-safe."""
        # Heavy: the extension and its tables.
        import quicktok  # type: ignore[import-untyped]

        with self._lock:
            if self._count is None:
                self._count = quicktok.get_encoding(self.identity).count
                give_back()  # 10 MB that loading needed for a moment.
            return self._count

    def count(self, text: str) -> int:
        count = self._count or self.load()
        try:
            return count(text)
        except TypeError:
            return count(_without_surrogates(text))


class TokenizerFile:
    """A `tokenizer.json`, read by `tokenizers`.

    Its file may switch truncation and padding on (a sentence embedder's does, at 128): both would
    make every count wrong, and are switched off.
    """

    is_exact = True
    direct_chars = 0

    def __init__(self, path: Path) -> None:
        # Needed only where such a file is configured.
        from tokenizers import Tokenizer

        data = path.read_bytes()
        self.identity = f"file:{blake2b(data, digest_size=8).hexdigest()}"
        self._tokenizer = Tokenizer.from_buffer(data)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        try:
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            clean = _without_surrogates(text)
            encoded = self._tokenizer.encode(clean, add_special_tokens=False)
        return len(encoded.ids)


class Bound:
    """The bound for unknown tokenizers."""

    identity = "bound"
    is_exact = False
    direct_chars = 0

    def count(self, text: str) -> int:
        return bound_tokens(text)


class Asked:
    """The upstream's own tokenizer, asked ahead of counting; the bound for what was not asked.

    Counting is synchronous and may not wait, so `prime` fetches what a request will need.
    """

    is_exact = True
    direct_chars = 0

    def __init__(self, identity: str, upstream_count: UpstreamCount, cache: CountCache) -> None:
        self.identity = identity
        self._ask = upstream_count
        self._cache = cache
        self._salt = cache.salt(identity)
        self.degraded = ""
        """What is missing while the upstream does not answer; "" when all is well."""

    def count(self, text: str) -> int:
        """Return the bound: the caller found nothing in the cache that `prime` fills."""
        return bound_tokens(text)

    async def prime(self, texts: Iterable[str]) -> None:
        missing = [
            text for text in dict.fromkeys(texts) if self._cache.get(self._salt, text) is None
        ]
        if not missing:
            return
        slots = asyncio.Semaphore(PRIME_CONCURRENCY)
        failed = 0

        async def fetch(text: str) -> None:
            nonlocal failed
            async with slots:
                tokens = await self._ask(text) if not failed else None
            if tokens is None:
                failed += 1
            else:
                self._cache.put(self._salt, text, tokens)

        try:
            async with asyncio.timeout(PRIME_TIMEOUT_S), asyncio.TaskGroup() as group:
                for text in missing:
                    group.create_task(fetch(text))
        except TimeoutError:
            failed += 1
        self.degraded = "tokenizer" if failed else ""


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
