"""JSON values out of a file of any length: lines, or the elements of one array.

`json` finds the end of an element by itself, so a value is tried, and more is read while it is not
whole; each try reads twice as much as the one before, which makes the cost linear. A parser of
events (ijson) was rejected: it is a package more, and slower than this by ten times.
"""

import codecs
import json
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, BinaryIO

import orjson

from library.importing.items import Row

READ_CHARACTERS = 256 * 1024
LONGEST_TOKEN = 64
"""Characters of a number or an escape that may be cut at the end of what was read."""
VALUE_BYTES_MAX = 256 * 2**20
"""One line or element: a conversation with its pictures. Longer ones are not read."""


def values(stream: BinaryIO) -> Iterator[Row]:
    """Yield the values of a seekable file, from its start: the elements of an array, or one value
    a line, or the one value that it is."""
    stream.seek(0)
    start = stream.read(READ_CHARACTERS).removeprefix(b"\xef\xbb\xbf").lstrip()
    stream.seek(0)
    if start.startswith(b"["):
        return elements(stream)
    first = next(lines(stream), None)
    stream.seek(0)
    if first is None or not first.error:
        return lines(stream)
    whole = next(elements(stream))
    stream.seek(0)
    # Lines of which the first one is broken are lines, too.
    return lines(stream) if whole.error else iter([whole])


def lines(stream: BinaryIO) -> Iterator[Row]:
    """Yield the value of each line that is not blank."""
    number = 0
    while data := stream.readline(VALUE_BYTES_MAX + 1):
        number += 1
        place = f"line {number:,}"
        if len(data) > VALUE_BYTES_MAX:
            yield Row(place, None, error=f"it is longer than {VALUE_BYTES_MAX:,} bytes")
            while data and not data.endswith(b"\n"):
                data = stream.readline(VALUE_BYTES_MAX)
        elif data.strip():
            yield _row(place, data)


def _row(place: str, data: bytes) -> Row:
    try:
        return Row(place, loaded(data))
    except RecursionError:
        return Row(place, None, error="it is nested too deeply")
    except ValueError as error:
        return Row(place, None, error=f"it is no JSON: {error}")


def loaded(data: bytes) -> Any:
    """Return the JSON value in `data`, half characters in it replaced.

    Raises:
        ValueError: it is no JSON, or no UTF-8.
        RecursionError: it is nested too deeply.

    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # JavaScript leaves halves of characters where it cuts a text; Python reads those.
        return mended(json.loads(data.removeprefix(b"\xef\xbb\xbf")))


def mended(value: Any) -> Any:
    """Return a JSON value whose texts can be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [mended(each) for each in value]
    if isinstance(value, dict):
        return {mended(key): mended(each) for key, each in value.items()}
    return value


def elements(stream: BinaryIO) -> Iterator[Row]:
    """Yield each element of the array that a file is; of any other value, that one.

    After a broken element nothing more can be told apart, so that it is the last.
    """
    array = _Array(stream)
    if not array.opens():
        yield array.whole()
        return
    number = 0
    while not array.has_ended():
        number += 1
        row = array.element(number)
        yield row
        if row.error:
            return


class _Array:
    """The unread rest of an array, as text."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._has_begun = False
        self._text = ""
        self._at = 0
        self._line = 1
        self._is_at_end = False

    def opens(self) -> bool:
        """Tell whether it is an array, and step into it."""
        if not self._skip() or self._text[self._at] != "[":
            return False
        self._at += 1
        return True

    def whole(self) -> Row:
        """Return the one value that the file is."""
        row = self.element(0)
        place = f"line {self._line:,}"
        if not row.error and self._skip():
            return Row(place, None, error="something follows the JSON value")
        return Row("the file", row.value, error=row.error)

    def has_ended(self) -> bool:
        """Step over a comma; tell whether the array is closed (or cut) here."""
        if self._skip() and self._text[self._at] == ",":
            self._at += 1
            self._skip()
        return self._at >= len(self._text) or self._text[self._at] == "]"

    def element(self, number: int) -> Row:
        """Return the value that begins here."""
        place = f"element {number:,}, line {self._line:,}"
        size = READ_CHARACTERS
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                if self._is_final(error):
                    line = self._line + self._text.count("\n", self._at, error.pos)
                    return Row(f"line {line:,}", None, error=f"it is no JSON: {error.msg}")
                size *= 2
                self._read(size)
            except RecursionError:
                return Row(place, None, error="it is nested too deeply")
            else:
                self._line += self._text.count("\n", self._at, end)
                has_halves = self._has(r"\ud", end) or self._has(r"\uD", end)
                self._at = end
                return Row(place, mended(value) if has_halves else value)

    def _is_final(self, error: JSONDecodeError) -> bool:
        """Tell whether more text would not help: it breaks well before the end of what was read,
        and not because a string has no end yet."""
        if self._is_at_end or len(self._text) - self._at > VALUE_BYTES_MAX:
            return True
        is_open = error.msg.startswith("Unterminated string")
        return not is_open and error.pos < len(self._text) - LONGEST_TOKEN

    def _has(self, part: str, end: int) -> bool:
        return self._text.find(part, self._at, end) >= 0

    def _skip(self) -> bool:
        """Skip white space; tell whether anything is left."""
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._line += self._text[self._at] == "\n"
                self._at += 1
            if self._at < len(self._text):
                return True
            if self._is_at_end:
                return False
            self._read(READ_CHARACTERS)

    def _read(self, size: int) -> None:
        data = self._stream.read(size)
        self._is_at_end = len(data) < size
        text = self._utf8.decode(data, final=self._is_at_end)
        if not self._has_begun:
            text = text.removeprefix("\ufeff")
            self._has_begun = True
        self._text = self._text[self._at :] + text
        self._at = 0
