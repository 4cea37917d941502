"""A swap report as people read it: JSON in, lines out.

Takes the report's JSON, not its class, because it comes over HTTP, perhaps from a gateway of
another version: what is missing is left out.

Of a turn that was only observed the budget is not what was sent, so it is told apart: what went
out, and what would have.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from gateway.cli.tables import folded, one_line

BAR_CELLS = 30
LABEL_CELLS = 10
TEXT_CELLS = 68
"""The rest of a line."""
WAIT = "first_byte"
"""The one step that is not the gateway's own time."""


def lines(report: Mapping[str, Any], texts: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return the report, a statement in a line or a few, the most asked-for first; `texts` are
    the words of events that came in, by id."""
    out = [*_head(report)]
    for label, text in _statements(report, texts):
        if text:
            out += folded(f"  {label:<{LABEL_CELLS}}", text)
    return out


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    known = [
        f"turn {report['turn_id']}" if report.get("turn_id") else "",
        str(report.get("started_at") or "")[:19].replace("T", " "),
        str(report.get("state") or ""),
        "observed only" if report.get("is_observe") else "",
    ]
    yield " · ".join(part for part in known if part)


def _statements(report: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    is_refusal = _is_refused_observed(report)
    yield "error", "" if is_refusal else str(report.get("error") or "")
    yield "thread", _thread(report)
    yield "model", _joined(report.get("model"), _via(report), _tokenizer(report))
    if report.get("is_observe"):
        yield "sent", f"unchanged: {_transcript(report)}"
        if is_refusal:
            yield "would be", f"refused: {report['error']}"
        else:
            yield "would be", _spent(report)
            yield "", _parts(report)
            yield "saving", _saving(report)
    else:
        yield "sent", _spent(report)
        yield "", _parts(report)
        yield "client", _client(report)
    for entry in report.get("swapped_in") or ():
        yield "in", _entry(entry)
        yield "", one_line(texts.get(str(entry.get("id")), ""), size=TEXT_CELLS)
    yield "out", ", ".join(report.get("swapped_out") or ())
    yield "kept", ", ".join(report.get("retained") or ())
    yield "desk", str(report.get("desk_because") or "")
    yield "", _policy(report)
    yield "pinned", ", ".join(report.get("pinned") or ())
    yield "plan", str(report.get("plan") or "")
    left_out = report.get("pins_left_out")
    yield "left out", f"{', '.join(left_out)} (pinned, but there is no room)" if left_out else ""
    yield "shortened", ", ".join(report.get("shortened") or ())
    for sentence in report.get("repaired") or ():
        yield "repaired", sentence
    for lookup in report.get("lookups") or ():
        yield "looked up", _lookup(lookup)
    yield "prefix", _prefix(report)
    yield "reply", _reply(report)
    yield "time", _times(report)
    yield "degraded", ", ".join(report.get("degraded") or ())


def _thread(report: Mapping[str, Any]) -> str:
    if not report.get("thread_id"):
        return ""
    branch = report.get("branch_id")
    return _joined(
        report["thread_id"],
        f"branch {branch}" if branch else "",
        f"named by {report['identified_by']}" if report.get("identified_by") else "",
        _matched(report.get("matched_by")),
        "a new branch" if report.get("has_forked") else "",
    )


def _matched(how: str | None) -> str:
    if not how:
        return ""
    return "a new thread" if how == "new" else f"matched by {how}"


def _via(report: Mapping[str, Any]) -> str:
    return f"via {report['upstream']}" if report.get("upstream") else ""


def _tokenizer(report: Mapping[str, Any]) -> str:
    if not report.get("tokenizer"):
        return ""
    return f"{report['tokenizer']} ({'exact' if report.get('is_exact') else 'upper bound'})"


def _is_refused_observed(report: Mapping[str, Any]) -> bool:
    """Tell whether an observed request went out that would have been refused."""
    return bool(
        report.get("is_observe") and report.get("error") and not report.get("prompt_tokens")
    )


def _spent(report: Mapping[str, Any]) -> str:
    budget, prompt = report.get("budget_tokens") or 0, report.get("prompt_tokens") or 0
    if not budget:
        return ""
    filled = min(BAR_CELLS, round(BAR_CELLS * prompt / budget))
    bar = "#" * filled + "." * (BAR_CELLS - filled)
    return f"{prompt:,} of {budget:,} tokens [{bar}]"


def _saving(report: Mapping[str, Any]) -> str:
    saved = (report.get("client_tokens") or 0) - (report.get("prompt_tokens") or 0)
    paged_out = report.get("paged_out_count") or 0
    told = f"{saved:,} tokens" if saved >= 0 else f"none: {-saved:,} tokens more"
    return f"{told}; {paged_out:,} paged out" if paged_out else told


def _parts(report: Mapping[str, Any]) -> str:
    parts = report.get("parts") or {}
    return ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items() if tokens)


def _transcript(report: Mapping[str, Any]) -> str:
    tokens, messages = report.get("client_tokens") or 0, report.get("messages_in") or 0
    return f"{tokens:,} tokens in {messages:,} message{'' if messages == 1 else 's'}"


def _client(report: Mapping[str, Any]) -> str:
    if not report.get("messages_in"):
        return ""
    if report.get("state") == "refused":
        return f"{_transcript(report)}; nothing went out"
    if not report.get("is_paged"):
        return f"{_transcript(report)}; all went out"
    out, paged_out = report.get("messages_out") or 0, report.get("paged_out_count") or 0
    return f"{_transcript(report)}; {out:,} went out, {paged_out:,} paged out"


def _entry(entry: Mapping[str, Any]) -> str:
    why = signals(entry.get("reason") or {})
    score = entry.get("score")
    return _joined(
        entry.get("id"),
        entry.get("part"),
        f"{entry['tokens']:,} tokens" if entry.get("tokens") else "",
        f"score {_number(score)}" if score is not None else "",
        f"({why})" if why else "",
    )


def _policy(report: Mapping[str, Any]) -> str:
    """Return how the desk was placed and replaced, where it was."""
    if not report.get("desk_because"):
        return ""
    return ", ".join(str(report[key]) for key in ("placement", "replacement") if report.get(key))


def _lookup(lookup: Mapping[str, Any]) -> str:
    """Return what the model looked up by itself."""
    what = lookup.get("query") or lookup.get("record") or ""
    return _joined(
        f"{lookup.get('tool')} {one_line(str(what), size=TEXT_CELLS)}".strip(),
        ", ".join(lookup.get("found") or ()) or lookup.get("error") or "nothing",
        f"in the prompt {', '.join(lookup['in_prompt'])}" if lookup.get("in_prompt") else "",
        f"{lookup['tokens']:,} tokens" if lookup.get("tokens") else "",
    )


def _prefix(report: Mapping[str, Any]) -> str:
    share = report.get("prefix_share")
    return "" if share is None else f"{share:.0%} of the prompt continues the last one"


def _reply(report: Mapping[str, Any]) -> str:
    tokens = report.get("reply_tokens")
    about = "about " if report.get("is_reply_tokens_estimated") else ""
    return _joined(
        f"{about}{tokens:,} tokens" if tokens is not None else "",
        report.get("finish_reason"),
        _usage(report.get("usage"), report.get("cached_tokens")),
    )


def _usage(usage: Mapping[str, Any] | None, cached: int | None) -> str:
    if not usage or usage.get("prompt_tokens") is None:
        return ""
    held = "" if cached is None else f", {cached:,} of them out of its cache"
    return f"the upstream counted {usage['prompt_tokens']:,} for the prompt{held}"


def _times(report: Mapping[str, Any]) -> str:
    steps = dict(report.get("steps_ms") or {})
    wait_ms = steps.pop(WAIT, None)
    listed = ", ".join(f"{name} {value:.1f}" for name, value in steps.items())
    return _joined(
        f"{sum(steps.values()):.1f} ms ({listed})" if steps else "",
        f"the upstream began after {wait_ms:,.0f} ms" if wait_ms is not None else "",
    )


def signals(reason: Mapping[str, Any]) -> str:
    """Return what the parts of a score are."""
    return ", ".join(f"{name} {_number(value)}" for name, value in reason.items())


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _joined(*parts: object) -> str:
    return " · ".join(str(part) for part in parts if part)
