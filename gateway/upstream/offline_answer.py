"""What the offline upstream answers: lines of its prompt that bear on the question. Pure.

It stands in for a model where there is none, so that a newcomer sees memory work and a test sees
a whole exchange: extractive and deterministic, it can only repeat what it was sent. Sentences of
the prompt are scored by the words that they share with the question, rare ones counting more;
what a user stated goes before what others said or asked. Its own earlier answers and the frame of
the reading desk are never quoted.

Answers have the form that is asked for (`response_format`), with the words in it.

Tools: a user who writes `call get_weather {"city": "Paris"}` gets that call, several get several,
and `tool_choice` can force one; results are answered by quoting them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from gateway.upstream.offline_schema import example
from governor.desk.rendering import parsed_block, without_blocks
from library.analysis import question_words, words

MARK = "[offline]"
QUOTES_MAX = 3
QUOTE_CHARS_MAX = 400
COVERAGE_MIN = 0.3
"""Share of the question's weight that a sentence must hold to bear on it."""
NEAR_BEST = 0.7
"""A further quote is given when it scores this share of the best."""
RESULTS_MAX = 8
WEIGHTS = {"user": 1.0, "tool": 0.9, "system": 0.7, "assistant": 0.6}
ASKED_WEIGHT = 0.4
"""A sentence that asks seldom answers."""
STEM_CHARS = 7

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])")  # noqa: RUF001 - CJK full stops
_SUFFIX = re.compile(r"(?:ing|ed|ies|es|s|y|e)$")
_ASKS = re.compile(
    r"(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|am|do|does|did|can|could|"
    r"will|would|should|has|have|had|tell me|show|list|give|find|name|remind|repeat|quote|recall|"
    r"summari[sz]e|explain|describe)\b",
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"[?？]")  # noqa: RUF001
_FILLER = frozenset({"please", "remember", "remind", "told", "said", "say", "know", "recall"})
_GATEWAYS_OWN = ("[Earlier messages of this conversation", "[... ")
"""Starts of lines that the gateway writes where something was left out."""

NOTED = f"{MARK} Noted. I am no language model: I quote from what I am sent. Ask me about it."
NOTHING = f"{MARK} Nothing in what I was sent bears on that."
NOBODY = f"{MARK} No user has said anything yet."
FOUND = f"{MARK} From what I was sent:"
RETURNED = f"{MARK} The tools returned:"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that is to be called."""

    name: str
    arguments: str
    """JSON, as the user wrote it."""


@dataclass(frozen=True, slots=True)
class OfflineAnswer:
    """Either words or calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    weight: float
    stems: frozenset[str]


def answer_to(request: Mapping[str, Any]) -> OfflineAnswer:
    """Return the answer to a chat completions request whose messages are a list of objects."""
    answer = _plain_answer(request)
    form = request.get("response_format")
    if answer.calls or not isinstance(form, Mapping):
        return answer
    if form.get("type") == "json_schema" and isinstance(form.get("json_schema"), Mapping):
        return OfflineAnswer(json.dumps(example(form["json_schema"].get("schema"), answer.text)))
    if form.get("type") == "json_object":
        return OfflineAnswer(json.dumps({"answer": answer.text}))
    return answer


def _plain_answer(request: Mapping[str, Any]) -> OfflineAnswer:
    messages: Sequence[Mapping[str, Any]] = request["messages"]
    if messages and messages[-1].get("role") == "tool":
        return OfflineAnswer(_about_results(messages))
    at = next(
        (at for at in reversed(range(len(messages))) if messages[at].get("role") == "user"), None
    )
    if at is None:
        return OfflineAnswer(NOBODY)
    question = without_blocks(_text_of(messages[at]))
    calls = _calls(question, request)
    if calls:
        return OfflineAnswer(calls=calls)
    if not (_QUESTION_MARK.search(question) or _ASKS.match(question.lstrip())):
        return OfflineAnswer(NOTED)
    quotes = _quotes(question, _sentences(messages, question_at=at))
    if not quotes:
        return OfflineAnswer(NOTHING)
    return OfflineAnswer("\n".join((FOUND, *(f"> {quote}" for quote in quotes))))


# -- quoting -----------------------------------------------------------------------------------
def _quotes(question: str, sentences: Sequence[_Sentence]) -> list[str]:
    """Return the sentences that bear on the question, the best few, in the prompt's order."""
    asked = {_stem(word) for word in question_words(question) if word not in _FILLER}
    counts = {stem: sum(stem in one.stems for one in sentences) for stem in asked}
    weights = {stem: log(1 + len(sentences) / (1 + count)) for stem, count in counts.items()}
    total = sum(weights.values())
    scored = []
    for at, one in enumerate(sentences):
        coverage = sum(weights[stem] for stem in asked & one.stems) / total if total else 0.0
        if coverage >= COVERAGE_MIN:
            # The later of two equals is the newer.
            scored.append((coverage * one.weight, at))
    scored.sort(reverse=True)
    best = scored[0][0] if scored else 0.0
    chosen = [at for score, at in scored[:QUOTES_MAX] if score >= NEAR_BEST * best]
    return [_cut(sentences[at].text) for at in sorted(chosen)]


def _sentences(messages: Sequence[Mapping[str, Any]], *, question_at: int) -> list[_Sentence]:
    """Return every sentence of the prompt that may be quoted, once."""
    found: dict[str, _Sentence] = {}
    for role, text in _said(messages, question_at):
        if role == "assistant" and text.startswith(MARK):
            continue
        for sentence in _split(text):
            if sentence not in found:
                weight = WEIGHTS.get(role, WEIGHTS["system"])
                if _QUESTION_MARK.search(sentence[-2:]):
                    weight *= ASKED_WEIGHT
                found[sentence] = _Sentence(
                    sentence, weight, frozenset(map(_stem, words(sentence)))
                )
    return list(found.values())


def _said(messages: Sequence[Mapping[str, Any]], question_at: int) -> Iterator[tuple[str, str]]:
    """Yield who said what: the records laid out before a message's words, then the words."""
    for at, message in enumerate(messages):
        text = _text_of(message)
        said = without_blocks(text)
        if said != text:
            yield from _records(text[: len(text) - len(said)])
        if at != question_at:
            yield str(message.get("role")), said


def _records(blocks: str) -> list[tuple[str, str]]:
    # Who has a name is a person.
    return [(one.who if one.who in WEIGHTS else "user", one.text) for one in parsed_block(blocks)]


def _split(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(_GATEWAYS_OWN):
            continue
        for sentence in _SENTENCE_END.split(line):
            if sentence.strip():
                yield sentence.strip()


def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word) if len(word) > 3 else word
    return stem[:STEM_CHARS]


def _cut(text: str) -> str:
    return text if len(text) <= QUOTE_CHARS_MAX else f"{text[:QUOTE_CHARS_MAX]}…"


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    # The gateway puts a block in front as a part of its own; as a string it has a blank line.
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "\n\n".join(part for part in parts if isinstance(part, str))


# -- tools -------------------------------------------------------------------------------------
def _about_results(messages: Sequence[Mapping[str, Any]]) -> str:
    lines: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        lines.append(f"> {_cut(_text_of(message).strip())}")
    return "\n".join((RETURNED, *reversed(lines[:RESULTS_MAX])))


def _calls(question: str, request: Mapping[str, Any]) -> tuple[Call, ...]:
    """Return the calls that the user asks for by name, or that `tool_choice` forces."""
    names = list(_tool_names(request.get("tools")))
    choice = request.get("tool_choice")
    if not names or choice == "none":
        return ()
    found = list(_named(question, names))
    if isinstance(choice, Mapping):
        forced = (choice.get("function") or {}).get("name")
        return tuple(one for one in found if one.name == forced) or (_made(forced, request),)
    if choice == "required" and not found:
        found = [_made(names[0], request)]
    return tuple(found if request.get("parallel_tool_calls") is not False else found[:1])


def _made(name: Any, request: Mapping[str, Any]) -> Call:
    """Return a call that nobody worded, with arguments that its tool takes."""
    for tool in request.get("tools") or ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and function.get("name") == name:
            arguments = example(function.get("parameters"), MARK)
            return Call(str(name), json.dumps(arguments if isinstance(arguments, dict) else {}))
    return Call(str(name), "{}")


def _tool_names(tools: Any) -> Iterable[str]:
    for tool in tools if isinstance(tools, list) else ():
        name = (tool.get("function") or {}).get("name") if isinstance(tool, Mapping) else None
        if isinstance(name, str) and name:
            yield name


def _named(question: str, names: Sequence[str]) -> Iterator[Call]:
    spelled = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    for match in re.finditer(rf"\bcall\s+({spelled})(?![\w-])\s*", question, re.IGNORECASE):
        name = next(name for name in names if name.lower() == match[1].lower())
        yield Call(name, _arguments(question[match.end() :]))


def _arguments(text: str) -> str:
    """Return the JSON object that `text` starts with; `{}` for none."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return "{}"
    return text[:end] if isinstance(value, dict) else "{}"
