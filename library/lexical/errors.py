"""What tantivy raises, as an error of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from library.errors import LibraryError


class LexicalUnavailable(LibraryError):
    """The index cannot answer or be written (damaged, disk full); the store has everything."""


@contextmanager
def mapped() -> Iterator[None]:
    """Turn whatever tantivy raises into `LexicalUnavailable`."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        raise LexicalUnavailable(str(error)) from error
    except BaseException as error:
        # A damaged segment makes its Rust code panic, and pyo3 derives that from BaseException.
        if type(error).__name__ == "PanicException":
            raise LexicalUnavailable(str(error)) from error
        raise
