"""A swap report as people read it. Pure.

Takes the report's JSON, not its class, because it comes over HTTP, perhaps from a gateway of
another version: what is missing is left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

BAR_CELLS = 30
LABEL_CELLS = 10


def lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report, one statement a line, the most asked-for first."""
    return [
        *_head(report),
        *(f"  {label:<{LABEL_CELLS}}{text}" for label, text in _statements(report) if text),
    ]


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    known = [
        f"turn {report['turn_id']}" if report.get("turn_id") else "",
        str(report.get("started_at") or "")[:19].replace("T", " "),
        str(report.get("state") or ""),
        str(report.get("error") or ""),
    ]
    yield " · ".join(part for part in known if part)


def _statements(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "thread", _thread(report)
    yield "model", _joined(report.get("model"), _via(report), _tokenizer(report))
    yield "sent", _sent(report)
    yield "", _parts(report)
    yield "client", _client(report)
    for entry in report.get("swapped_in") or ():
        yield "in", _entry(entry)
    yield "out", ", ".join(report.get("swapped_out") or ())
    yield "kept", ", ".join(report.get("retained") or ())
    yield "pinned", ", ".join(report.get("pinned") or ())
    left_out = report.get("pins_left_out")
    yield "no room", f"{', '.join(left_out)} (pinned)" if left_out else ""
    yield "shortened", ", ".join(map(str, report.get("shortened") or ()))
    for sentence in report.get("repaired") or ():
        yield "repaired", sentence
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
        f"matched by {report['matched_by']}" if report.get("matched_by") else "",
        "a new branch" if report.get("has_forked") else "",
    )


def _via(report: Mapping[str, Any]) -> str:
    return f"via {report['upstream']}" if report.get("upstream") else ""


def _tokenizer(report: Mapping[str, Any]) -> str:
    if not report.get("tokenizer"):
        return ""
    return f"{report['tokenizer']} ({'exact' if report.get('is_exact') else 'upper bound'})"


def _sent(report: Mapping[str, Any]) -> str:
    budget, prompt = report.get("budget_tokens") or 0, report.get("prompt_tokens") or 0
    if not budget:
        return ""
    filled = min(BAR_CELLS, round(BAR_CELLS * prompt / budget))
    bar = "#" * filled + "." * (BAR_CELLS - filled)
    observed = " (observed only: it went out as it came)" if report.get("is_observe") else ""
    return f"{prompt:,} of {budget:,} tokens [{bar}]{observed}"


def _parts(report: Mapping[str, Any]) -> str:
    parts = report.get("parts") or {}
    return ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items() if tokens)


def _client(report: Mapping[str, Any]) -> str:
    if not report.get("messages_in"):
        return ""
    least = "at least " if report.get("is_client_bound") else ""
    text = (
        f"{least}{report.get('client_tokens') or 0:,} tokens in {report['messages_in']:,} messages"
    )
    if not report.get("is_paged"):
        return f"{text}; all went out"
    return (
        f"{text}; {report.get('messages_out') or 0:,} went out, "
        f"{report.get('paged_out_count') or 0:,} paged out"
    )


def _entry(entry: Mapping[str, Any]) -> str:
    reason = entry.get("reason") or {}
    why = ", ".join(f"{name} {_number(value)}" for name, value in reason.items())
    score = entry.get("score")
    return _joined(
        entry.get("id"),
        entry.get("part"),
        f"{entry['tokens']:,} tokens" if entry.get("tokens") else "",
        f"score {_number(score)}" if score is not None else "",
        f"({why})" if why else "",
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
        _usage(report.get("usage")),
    )


def _usage(usage: Mapping[str, Any] | None) -> str:
    if not usage or usage.get("prompt_tokens") is None:
        return ""
    return f"the upstream counted {usage['prompt_tokens']:,} for the prompt"


def _times(report: Mapping[str, Any]) -> str:
    steps = report.get("steps_ms") or {}
    if not steps:
        return ""
    listed = ", ".join(f"{name} {value:.1f}" for name, value in steps.items())
    return f"{sum(steps.values()):.1f} ms ({listed})"


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _joined(*parts: object) -> str:
    return " · ".join(str(part) for part in parts if part)
