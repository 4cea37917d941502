"""Keeps glibc from holding on to memory that was freed. Other C libraries are left alone.

By default glibc gives each thread that allocates at once a heap of its own, up to eight a core,
and hands memory back from the top of a heap only. The index writer takes some MB on its own
threads for every commit, requests take theirs on others, and what each has at its peak stays: 194
MB resident after 500 recorded requests, 150 with the bounds below. Threads that compute hold
Python's lock and take turns anyway, so sharing two heaps costs no CPU that could be measured.

The bounds are set by a call at the start of a process, and not by environment variables: those
would have to be there before the process is, however it is started.
"""

import ctypes
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Source: glibc, malloc.h."""
HEAPS_MAX = 2
TRIM_BYTES = 1024 * 1024
"""glibc's own 128 KB are less than the arrays that a search of 100,000 passages makes and drops one
after the other: each time a heap gave their pages back and took them again, 700 page faults and
1.5 ms a search. With 4 MB there were as many left."""
MMAP_BYTES = 512 * 1024
"""Larger blocks go back to the system when they are freed: the index writer takes 1 MB at a time.
To set it switches off its growth, to the size of what was freed last and up to 32 MB."""


def _glibc(name: str) -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), name, None)


def limit_heaps() -> None:
    """Bound what the allocator keeps, in the whole process; call it before there are threads."""
    mallopt = _glibc("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, HEAPS_MAX)
        mallopt(_M_TRIM_THRESHOLD, TRIM_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)


def give_back() -> None:
    """Give free pages in the middle of heaps back too: below 1 ms, to be called after a peak."""
    trim = _glibc("malloc_trim")
    if trim is not None:
        trim(0)
