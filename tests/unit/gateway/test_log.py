"""A line a turn that tells no secrets, and a reader that stalls nobody."""

import io
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gateway import log
from gateway.log import LineThread, end_log, log_to_standard_error, turn_log
from gateway.telemetry import Telemetry
from gateway.wire.chat.message import message_of
from tests.unit.gateway.peers import ended


@pytest.mark.parametrize("logs_text", [True, False])
async def test_a_turn_is_one_line_of_json_with_text_only_when_asked(
    caplog: pytest.LogCaptureFixture, logs_text: bool
) -> None:
    """CASES C1; issue 2, swap report."""
    with caplog.at_level(logging.INFO, logger=turn_log.name):
        Telemetry(logs_text=logs_text).ended(ended(steps_ms={"commit": 1.0}))
    [line] = caplog.messages
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["steps_ms"] == {"record": 1.5, "commit": 1.0}
    assert ("question" in fields) == logs_text


@pytest.mark.parametrize("masks_secrets", [True, False])
async def test_text_in_the_log_is_masked_as_it_is_in_the_store(
    caplog: pytest.LogCaptureFixture, masks_secrets: bool
) -> None:
    """DESIGN 9."""
    key = "sk-" + "a1B2" * 10
    said = message_of({"role": "user", "content": f"my key is {key}"})
    answered = message_of({"role": "assistant", "content": f"I see {key}"})
    turn = ended(replies=(answered,))
    turn = replace(turn, request=replace(turn.request, messages=(said,)))
    with caplog.at_level(logging.INFO, logger=turn_log.name):
        Telemetry(logs_text=True, masks_secrets=masks_secrets).ended(turn)
    [line] = caplog.messages
    assert (key in line) != masks_secrets
    fields = json.loads(line)
    assert fields["question"].startswith("my key is ")
    assert fields["replies"][0].startswith("I see ")


async def test_what_a_model_looked_for_is_text_too(caplog: pytest.LogCaptureFixture) -> None:
    """Issue 5: the swap report says what was searched; the log has no text unless asked."""
    lookup = {"tool": "library_search", "query": "the walnut clock", "found": ["e1"], "tokens": 9}
    for logs_text in (False, True):
        turn = ended()
        assert turn.report is not None
        turn.report.lookups = [lookup]
        with caplog.at_level(logging.INFO, logger=turn_log.name):
            Telemetry(logs_text=logs_text).ended(turn)
    short, whole = map(json.loads, caplog.messages)
    assert whole["lookups"] == [lookup]
    assert short["lookups"] == [{"tool": "library_search", "found": ["e1"], "tokens": 9}]


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Screen]]:
    """Logs to a screen of our own; what other tests log is as before afterwards."""

    def to(level: str, *, is_terminal: bool) -> Screen:
        screen = Screen(is_terminal=is_terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        log_to_standard_error(level)
        return screen

    root = logging.getLogger()
    kept = [(one, one.handlers, one.level) for one in (root, turn_log)]
    yield to
    end_log("over")
    for one, handlers, level in kept:
        one.handlers = handlers
        one.setLevel(level)


def flushed(screen: Screen) -> str:
    for handler in logging.getLogger().handlers:
        handler.flush()
    return screen.getvalue()


async def test_a_terminal_shows_a_short_line_a_turn(logs: Callable[..., Screen]) -> None:
    screen = logs("info", is_terminal=True)
    turn = ended({"first_byte": 900.0})
    assert turn.report is not None
    turn.report.thread_id, turn.report.paged_out_count = "th", 90
    turn.report.prompt_tokens, turn.report.budget_tokens = 4_000, 8_000
    Telemetry(logs_text=False).ended(turn)
    shown = flushed(screen).partition(" ")[2]
    assert shown == "done · th · 4,000 of 8,000 tokens · 90 paged out · 2 ms · embedder\n"
    Telemetry(logs_text=True).ended(turn)
    assert "question" in json.loads(flushed(screen).splitlines()[1])


async def test_a_turn_is_not_logged_above_its_level(logs: Callable[..., Screen]) -> None:
    for level in ("warning", "error"):
        screen = logs(level, is_terminal=False)
        Telemetry(logs_text=False).ended(ended())
        assert flushed(screen) == ""
    screen = logs("info", is_terminal=False)
    Telemetry(logs_text=False).ended(ended())
    assert json.loads(flushed(screen))["turn_id"] == "t"


async def test_other_lines_say_when_and_who_and_the_last_words_come_last(
    logs: Callable[..., Screen],
) -> None:
    screen = logs("warning", is_terminal=False)
    logging.getLogger("library.indexer").warning("held up")
    end_log("stopped")
    first, last = screen.getvalue().splitlines()
    assert first.endswith("WARNING library.indexer: held up")
    assert last == "stopped"


class Reader:
    """The end of a pipe at which somebody reads, or nobody."""

    def __init__(self) -> None:
        self.far, near = os.pipe()
        self.stream = os.fdopen(near, "w", encoding="ascii")

    def read_until(self, words: str) -> str:
        text = ""
        while words not in text:
            text += os.read(self.far, 65_536).decode()
        return text

    def close(self) -> None:
        os.close(self.far)
        self.stream.close()


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


def test_a_reader_who_stops_reading_holds_up_nobody_and_is_told_what_it_missed(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 1.13."""
    monkeypatch.setattr(log, "WAITING_CHARS_MAX", 1_000_000)
    lines = LineThread(reader.stream)
    said_count = 0
    while lines.dropped_count < 3:  # The pipe is full, then the bound is reached.
        lines.say(f"{said_count} " + "x" * 1_000)
        said_count += 1
    text = reader.read_until("were dropped")
    assert f"{lines.dropped_count} log lines were dropped: nobody read" in text
    lines.say("on it goes")
    assert "on it goes" in reader.read_until("on it goes")
    lines.close()


def test_the_end_waits_for_a_reader_only_so_long(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "FLUSH_TIMEOUT_S", 0.05)
    lines = LineThread(reader.stream)
    lines.say("x" * 1_000_000)
    lines.close()
    lines.say("too late")
    assert lines.dropped_count == 1
    assert reader.read_until("nobody read\n").count("x") == 1_000_000


def test_a_reader_who_is_gone_is_no_error(reader: Reader) -> None:
    lines = LineThread(reader.stream)
    os.close(reader.far)
    reader.far = os.open(os.devnull, os.O_RDONLY)
    lines.say("to nobody")
    lines.flush()
    assert lines.dropped_count == 1
    lines.close()


def test_several_threads_write_whole_lines(reader: Reader) -> None:
    lines = LineThread(reader.stream)
    words = [str(number) * 50 for number in range(8)]
    speakers = [threading.Thread(target=lines.say, args=(one,)) for one in words]
    for speaker in speakers:
        speaker.start()
    for speaker in speakers:
        speaker.join()
    lines.close()
    assert sorted(os.read(reader.far, 65_536).decode().split()) == words
