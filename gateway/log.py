"""What the gateway says on standard error, and the thread that writes it.

Whoever reads standard error may stop reading: a terminal that is scrolled back, a pager, a service
manager whose disk is full. Written on the event loop, the next line would then stop every request.
So lines are handed to a thread, and what it cannot get rid of is bounded: above that, lines are
dropped and counted, and the next line that is written says how many.

The line of a turn is its swap report. It holds no message text unless `log_text` is on, and then
what `mask_secrets` leaves of it. On a terminal, where somebody reads along, a turn is a few words
instead; its report can be asked for.
"""

import dataclasses
import logging
import os
import sys
import threading
from dataclasses import dataclass
from typing import TextIO

import orjson

from gateway.turn import Ended
from governor.report import dumped_report
from governor.turn import SwapReport
from library.masking import mask_body

WAITING_CHARS_MAX = 4 * 2**20
"""Some thousand turns; as much again may be in the hands of the thread."""
GATHER_S = 0.05
"""Lines of so long are written together: to wake the thread for each costs more than the line."""
FLUSH_TIMEOUT_S = 1.0
"""How long the end of the process waits for a reader."""
WAIT = "first_byte"
"""The one step of a turn that is the upstream's."""

_WRITTEN = frozenset({"query", "record", "error"})

turn_log = logging.getLogger("gateway.turns")


class LineThread(logging.Handler):
    """Writes lines to a stream in a thread of its own."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._changed = threading.Condition()
        """Guards all that follows."""
        self._lines: list[str] = []
        self._waiting_chars = 0
        self._is_writing = False
        self._is_hurried = False
        self._is_closed = False
        self._untold_count = 0
        self.dropped_count = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        self.say(self.format(record))

    def say(self, words: str) -> None:
        """Hand a line over; never waits for the stream."""
        line = words + "\n"
        with self._changed:
            if self._is_closed or self._waiting_chars + len(line) > WAITING_CHARS_MAX:
                self.dropped_count += 1
                self._untold_count += 1
                return
            self._lines.append(line)
            self._waiting_chars += len(line)
            if len(self._lines) == 1:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until what was handed over is written, at most `FLUSH_TIMEOUT_S`."""
        with self._changed:
            if not self._is_closed:
                self._wait_until_written()

    def close(self) -> None:
        """Write what waits, as `flush` does, and take no more. Idempotent."""
        with self._changed:
            if not self._is_closed:
                self._is_closed = True
                self._wait_until_written()
        super().close()

    def _wait_until_written(self) -> None:
        self._is_hurried = True
        self._changed.notify_all()
        self._changed.wait_for(
            lambda: not (self._lines or self._is_writing), timeout=FLUSH_TIMEOUT_S
        )

    def _run(self) -> None:
        while text := self._taken():
            try:
                self._write(text)
            except (OSError, ValueError):  # Nobody reads any more.
                with self._changed:
                    self.dropped_count += text.count("\n")

    def _taken(self) -> str:
        """Wait for lines, and a little for more; return them, "" at the end."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines or self._is_closed)
            self._changed.wait_for(lambda: self._is_hurried or self._is_closed, timeout=GATHER_S)
            self._is_hurried = False
            if self._untold_count:
                self._lines.append(f"{self._untold_count} log lines were dropped: nobody read\n")
                self._untold_count = 0
            text = "".join(self._lines)
            self._is_writing = bool(text)
            self._lines.clear()
            self._waiting_chars = 0
            return text

    def _write(self, text: str) -> None:
        # Past the stream's own buffer where there is a descriptor: its lock, held by a write that
        # hangs, would abort the interpreter when it ends.
        try:
            descriptor = self._stream.fileno()
        except OSError:
            self._stream.write(text)
            return
        left = memoryview(text.encode(self._stream.encoding or "utf-8", "backslashreplace"))
        while left:
            left = left[os.write(descriptor, left) :]


def log_to_standard_error(level: str) -> None:
    """Send log lines to standard error, those of turns as bare JSON or, on a terminal, short."""
    for old in _line_threads():
        old.close()
    lines = LineThread(sys.stderr)
    lines.setFormatter(_Formats(is_terminal=sys.stderr.isatty()))
    # No line says these, and each record would ask the system for them.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.getLogger().handlers = [lines]
    for log in (logging.getLogger(), turn_log):
        log.setLevel(level.upper())


def end_log(last_words: str) -> None:
    """Write what waits, then a last line, whatever the level; waits for the reader, bounded."""
    for lines in _line_threads():
        lines.say(last_words)
        lines.close()


def dropped_lines() -> int:
    """Return how many lines this process could not get rid of."""
    return sum(lines.dropped_count for lines in _line_threads())


def _line_threads() -> list[LineThread]:
    return [one for one in logging.getLogger().handlers if isinstance(one, LineThread)]


def log_turn(ended: Ended, report: SwapReport, *, has_text: bool, is_masked: bool) -> None:
    """Write the line of a turn."""
    if turn_log.isEnabledFor(logging.INFO):
        # Made here, since `info` would look for the line of code that says it.
        line = _Line(ended, report, has_text, is_masked)
        turn_log.handle(logging.LogRecord(turn_log.name, logging.INFO, "", 0, line, None, None))


@dataclass(frozen=True, slots=True)
class _Line:
    """What the log says of a turn: as a string, JSON."""

    ended: Ended
    report: SwapReport
    has_text: bool
    is_masked: bool

    def __str__(self) -> str:
        if not self.has_text:
            return dumped_report(_without_text(self.report)).decode()
        messages = reversed(self.ended.request.messages)
        question = next((one.text for one in messages if one.role == "user"), "")
        words = {"question": question, "replies": [one.text for one in self.ended.replies]}
        fields = dataclasses.asdict(self.report) | (mask_body(words) if self.is_masked else words)
        return orjson.dumps(fields).decode()

    def short(self) -> str:
        report = self.report
        own_ms = sum(ms for step, ms in report.steps_ms.items() if step != WAIT)
        told = [
            report.state,
            report.thread_id or "no thread",
            f"{report.client_tokens:,} tokens, observed"
            if report.is_observe
            else f"{report.prompt_tokens:,} of {report.budget_tokens:,} tokens",
            f"{report.paged_out_count:,} paged out"
            if report.paged_out_count and not report.is_observe
            else "",
            f"{own_ms:.0f} ms",
            "" if report.state == "done" else report.error or "",
            ", ".join(report.degraded),
        ]
        return " · ".join(part for part in told if part)


def _without_text(report: SwapReport) -> SwapReport:
    """Return a report without what a model wrote when it looked something up."""
    if not report.lookups:
        return report
    told = [{key: one[key] for key in one if key not in _WRITTEN} for one in report.lookups]
    return dataclasses.replace(report, lookups=told)


class _Formats(logging.Formatter):
    """A turn is its JSON, or short for somebody who reads along; with `log_text` the text is
    wanted, so that line stays whole. Anything else says when, how grave, and who."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._is_terminal = is_terminal

    def format(self, record: logging.LogRecord) -> str:
        line = record.msg
        if record.name != turn_log.name:
            return super().format(record)
        if self._is_terminal and isinstance(line, _Line) and not line.has_text:
            return f"{self.formatTime(record, '%H:%M:%S')} {line.short()}"
        return record.getMessage()
