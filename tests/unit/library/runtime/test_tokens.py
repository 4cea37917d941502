"""library/runtime/tokens.py."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from library.runtime.tokens import TOKEN_BYTES_MAX, random_token


@pytest.mark.parametrize("size_bytes", [1, 8, 12, TOKEN_BYTES_MAX])
def test_a_token_is_so_many_bytes_in_hexadecimal(size_bytes: int) -> None:
    assert len(bytes.fromhex(random_token(size_bytes))) == size_bytes


def test_no_token_comes_twice_whatever_threads_draw_them() -> None:
    with ThreadPoolExecutor(8) as threads:
        drawn = list(threads.map(lambda _: [random_token(16) for _ in range(1_000)], range(16)))
    tokens = [token for some in drawn for token in some]
    assert len(set(tokens)) == len(tokens)


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_a_forked_process_draws_others_than_its_parent() -> None:
    """What was drawn ahead would be given out by both."""
    random_token(16)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, random_token(16).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert told.read() != random_token(16)
