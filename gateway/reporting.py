"""What the client is told about its turn, in headers (DESIGN 4.7, CASES C1). Pure.

`x-library-prompt-tokens` is what went out. With `observe` that is the client's own request, so what
would have gone out has a header of its own.
"""

from governor.turn import SwapReport

_IDS_CHARS_MAX = 2_000
"""Servers and proxies take some 8 kB of headers altogether; the report has the whole list."""


def library_headers(report: SwapReport) -> list[tuple[bytes, bytes]]:
    """Return the x-library-* headers of one turn."""
    headers = [
        (b"x-library-turn", report.turn_id.encode()),
        (b"x-library-prompt-tokens", b"%d" % sent_tokens(report)),
        (b"x-library-budget-tokens", b"%d" % report.budget_tokens),
        (b"x-library-swapped-in", b"%d" % len(report.swapped_in)),
        (b"x-library-swapped-out", b"%d" % len(report.swapped_out)),
        (b"x-library-retained", b"%d" % len(report.retained)),
    ]
    if report.is_observe:
        headers.append((b"x-library-observed", _observed(report)))
    if report.identified_by:
        headers.append((b"x-library-identified-by", report.identified_by.encode()))
    if not report.is_recorded:
        headers.append((b"x-library-record", b"off"))
    if report.thread_id:
        headers.append((b"x-library-session", report.thread_id.encode()))
    if report.degraded:
        headers.append((b"x-library-degraded", _listed(report.degraded)))
    if report.pins_left_out:
        headers.append((b"x-library-pins-left-out", _listed(report.pins_left_out)))
    return headers


def sent_tokens(report: SwapReport) -> int:
    """Return what of a request goes out."""
    return report.client_tokens if report.is_observe else report.prompt_tokens


def _observed(report: SwapReport) -> bytes:
    if not report.prompt_tokens:
        return b"would have been refused"
    return b"would have sent %d tokens" % report.prompt_tokens


def _listed(names: list[str]) -> bytes:
    """Return names as one header value; a caller's own event ids may hold anything."""
    text = ", ".join(dict.fromkeys(names))
    if len(text) > _IDS_CHARS_MAX:
        text = text[:_IDS_CHARS_MAX].rpartition(", ")[0] + ", ..."
    return text.encode("ascii", "backslashreplace").translate(_PRINTABLE)


_PRINTABLE = bytes(code if 32 <= code < 127 else 63 for code in range(256))
