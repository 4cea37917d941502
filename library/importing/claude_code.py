"""Claude Code's session files: JSON lines under `~/.claude/projects`. Pure.

A line of type `user` or `assistant` holds a `message` in the form of the Messages API, and `uuid`,
`parentUuid`, `sessionId`, `timestamp` and `isSidechain`. Other lines (`system`, `summary`,
`progress`, `attachment`, ...) are no messages, but a message may name one of them as its parent.
One answer is written as several lines, a block each, with the same `message.id`, and results of its
first calls may stand between them: they are put together again, so that a call and its result stay
one step. What a subagent did (`isSidechain`) is a conversation of its own.

Left out: what the program tells itself (`isMeta`), its error lines, what its own commands put out
(hooks answer there), answers that it makes up where there is none, and the summary that it puts in
place of messages which stand before it in the file.

Source: blog.fsck.com 2026-02-22 "Claude Code session continuation"; lin-guanguo.github.io "Claude
Code Session Files - Detailed Schema"; files of Claude Code 2.1.332 (`scripts/hooks` records them).
Anthropic publishes no schema of these files.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from library.importing.anthropic_blocks import bodies
from library.importing.items import EMPTY, HIDDEN, Ended, Items, LeftOut, Row, Said, Unread
from library.importing.times import moment
from library.importing.trees import Links, ref_of

SUMMARY = LeftOut("summaries of messages that are imported themselves")
MADE_UP = "<synthetic>"
"""The model of an answer that the program wrote itself."""
COMMAND_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")
_PARENTS = ("parentUuid", "logicalParentUuid")
"""The second is set where a compaction cut the first."""


def session(rows: Iterable[Row], name: str) -> Items:
    """Yield the messages of a session file, and of the subagents in it."""
    chats: dict[str, _Chat] = {}
    for row in rows:
        line = row.value
        if row.error or not isinstance(line, dict):
            yield Unread(row.place, row.error or "it is no JSON object")
            continue
        session_id = _session_of(line, name)
        chat = chats.setdefault(session_id, _Chat(session_id))
        if line.get("type") not in ("user", "assistant"):
            chat.pass_over(line)
            continue
        if ref_of(line.get("uuid")) is None:
            yield Unread(row.place, "it has no 'uuid'")
            continue
        try:
            yield from chat.take(line)
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            yield Unread(row.place, f"it cannot be read: {error!r}")
    for chat in chats.values():
        yield from chat.flush()
        if chat.has_spoken:
            yield Ended(chat.session_id)


def _session_of(line: dict[str, Any], name: str) -> str:
    session_id = line.get("sessionId")
    own = session_id if isinstance(session_id, str) and session_id else name
    return f"{own}/{line.get('agentId') or 'subagents'}" if line.get("isSidechain") else own


@dataclass(slots=True)
class _Step:
    """One answer of the model, as far as it was read, with the results of its calls."""

    message_id: str
    after: str | None
    at: datetime | None
    uuids: list[str] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    results: list[tuple[str, list[dict[str, Any]], datetime | None]] = field(default_factory=list)


class _Chat:
    """One conversation of the file."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.has_spoken = False
        self._links = Links()
        self._step: _Step | None = None

    def pass_over(self, line: dict[str, Any]) -> None:
        """Note a line that holds no message."""
        uuid = line.get("uuid")
        if isinstance(uuid, str):
            self._links.passes(uuid, self._parent(line))

    def take(self, line: dict[str, Any]) -> Items:
        message = line["message"]
        if _is_the_programs_own(line, message):
            self.pass_over(line)
            yield HIDDEN
        elif line.get("isCompactSummary") and self.has_spoken:
            yield from self.flush()
            self.pass_over(line)
            yield SUMMARY
        elif line["type"] == "assistant":
            yield from self._answer(line, message)
        elif self._step is not None and _is_only_results(message):
            made = bodies("user", message["content"])
            self._step.results.append((line["uuid"], made, moment(line.get("timestamp"))))
        else:
            yield from self.flush()
            made = bodies("user", message["content"], names=line["uuid"])
            yield from self._speak(
                line["uuid"], made, self._before(line), moment(line.get("timestamp"))
            )

    def _answer(self, line: dict[str, Any], message: dict[str, Any]) -> Items:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        bodies("assistant", blocks, names=line["uuid"])  # What is wrong with it is said here.
        message_id = message.get("id") or line["uuid"]
        if self._step is None or self._step.message_id != message_id:
            yield from self.flush()
            at = moment(line.get("timestamp"))
            self._step = _Step(message_id, self._before(line), at)
        self._step.uuids.append(line["uuid"])
        self._step.blocks += blocks if isinstance(blocks, list) else ()

    def flush(self) -> Items:
        """Yield the step that was put together, its results behind it."""
        step, self._step = self._step, None
        if step is None:
            return
        last = step.after
        made = bodies("assistant", step.blocks, names=step.uuids[0])
        for item in self._speak(step.uuids[0], made, last, step.at):
            last = item.ref if isinstance(item, Said) else last
            yield item
        answered = last
        for uuid, results, at in step.results:
            for item in self._speak(uuid, results, last, at):
                last = item.ref if isinstance(item, Said) else last
                yield item
        for uuid in step.uuids:
            if answered is not None:
                self._links.stands(uuid, answered)
        for uuid, _, _ in step.results:
            if last is not None:
                self._links.stands(uuid, last)

    def _speak(
        self, uuid: str, made: list[dict[str, Any]], after: str | None, at: datetime | None
    ) -> Iterator[Said | LeftOut]:
        for number, body in enumerate(made):
            ref = uuid if number == 0 else f"{uuid}/{number}"
            yield Said(self.session_id, ref, after, body, at)
            self.has_spoken = True
            after = ref
        if not made:
            yield EMPTY
        if after is not None:
            self._links.stands(uuid, after)

    def _before(self, line: dict[str, Any]) -> str | None:
        return self._links.message(self._parent(line))

    @staticmethod
    def _parent(line: dict[str, Any]) -> str | None:
        return next((line[key] for key in _PARENTS if isinstance(line.get(key), str)), None)


def _is_the_programs_own(line: dict[str, Any], message: dict[str, Any]) -> bool:
    if line.get("isMeta") or line.get("isApiErrorMessage"):
        return True
    if line["type"] == "assistant":
        return bool(message.get("model") == MADE_UP)
    content = message.get("content")
    return isinstance(content, str) and content.startswith(COMMAND_OUTPUT)


def _is_only_results(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(one, dict) and one.get("type") == "tool_result" for one in content)
    )
