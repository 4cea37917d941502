"""Times as other systems write them. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECONDS_FROM = 1e11
"""In seconds this is the year 5138; such numbers are milliseconds."""
TIME_KEYS = ("occurred_at", "timestamp", "created_at", "create_time", "time", "date")


def moment(value: Any) -> datetime | None:
    """Return a moment in UTC from ISO 8601 or from seconds or milliseconds since 1970.

    Without a zone it is UTC. None: it is no time.
    """
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value.strip())
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= MILLISECONDS_FROM else value
            return EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        pass
    return None


def moment_in(fields: dict[str, Any]) -> datetime | None:
    """Return the time that one of the usual keys holds, and take those keys out."""
    found = None
    for key in TIME_KEYS:
        if key in fields and (at := moment(fields[key])) is not None:
            del fields[key]
            found = found or at
    return found
