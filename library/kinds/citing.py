"""How a record names itself to a reader: who said it, or from where in what it is. Pure."""

from library.records import Body, Event


def citation(body: Body) -> str:
    """Return where a part of a document is, as `src/app.py:10-42` or `report.pdf:p3`."""
    name = str(body.get("source") or body.get("title") or body.get("type") or body.get("role", ""))
    pages, lines = body.get("pages"), body.get("lines")
    if isinstance(pages, list) and len(pages) == 2:
        return f"{name}:p{_span(*pages)}"
    if isinstance(lines, list) and len(lines) == 2:
        return f"{name}:{_span(*lines)}"
    return name


def _span(first: object, last: object) -> str:
    return str(first) if first == last else f"{first}-{last}"


def told_by(event: Event) -> str:
    """Return who said something, or where it is from."""
    return teller(event) if event.kind != "chat" else event.name or event.role


def teller(event: Event) -> str:
    """Return who tells a record that is no chat: `decision by Ada`, `src/app.py:10-42`; and the
    team that has it, where it is a team's."""
    team = event.body.get("team")
    return _teller(event) if not isinstance(team, str) else f"{_teller(event)}, team {team}"


def _teller(event: Event) -> str:
    if event.kind != "insight":
        return citation(event.body)
    kind = str(event.body.get("type", event.role))
    return f"{kind} by {event.name}" if event.name else kind
