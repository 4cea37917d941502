"""Books and catalog cards of The Library of Context as records and filters of ours, and back."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.mcp.access import Asker
from gateway.mcp.shapes import EXCERPT_CHARS, LINE_CHARS, TEXT_CHARS_MAX, Name, cut
from gateway.refusals import ScopeForbidden
from gateway.routes.insights import scope_of
from governor.standing import StandingDesk
from library.errors import UnknownRecord
from library.kinds.filter import EVERYTHING, Filter, Importance
from library.kinds.record import Shelved
from library.kinds.teams import shelf_of
from library.kinds.words import tag_of
from library.overview import EVERY_OWNER
from library.records import Event, Hit

_LEVELS: dict[Importance, float] = {"low": 0.2, "medium": 0.5, "high": 0.8, "critical": 1.0}
LOW_BELOW, HIGH_FROM = 0.3, 0.7
Json = dict[str, Any]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX)]
Collection = Annotated[Name | None, Field(description="The caller's own, where it is named.")]
Card = Annotated[Json, Field(description="Plain values: kept, and to filter by, as they are.")]
Scope = Literal["thread", "project", "team"]
Number = Annotated[float | None, Field(ge=0, le=1)]
Teams = Annotated[list[Name], Field(max_length=100, description="Of the caller's key; []: all.")]
Keep = Annotated[list[Name], Field(max_length=100)]


async def book_named(asker: Asker, name: str, *, reach: int | frozenset[int]) -> Shelved | None:
    """Return the book that was shelved under an id of the caller's, or the record of such an id;
    None: there is neither, but perhaps a message."""
    kinds = asker.library.store.kinds
    [*found], _ = await kinds.records(
        reach, Filter(tags=(f"book: {name}".lower(),)), owner_no=EVERY_OWNER, limit=1, offset=0
    )
    if found:
        return found[0]
    try:
        return await kinds.record(name, collection_id=reach)
    except UnknownRecord:
        return None


async def teams_of(asker: Asker, asked: list[str]) -> frozenset[int]:
    """Return the shelves that are asked for; none are named: all of the caller's key.

    Raises:
        ScopeForbidden: the key is not in one of them.

    """
    others = {*asked} - {*asker.principal.teams}
    if others:
        raise ScopeForbidden(f"reach the team {min(others)!r}")
    number = asker.library.store.collection_id
    return frozenset([await number(shelf_of(one)) for one in asked]) or asker.team_ids


def level_of(importance: float | None) -> Importance:
    """Return a number of importance as a level."""
    if importance is None:
        return "medium"
    return "low" if importance < LOW_BELOW else "high" if importance >= HIGH_FROM else "medium"


def filter_of_card(card: Json) -> Filter:
    """Return a filter for what has all of a card.

    Raises:
        ToolError: it asks for what no card of ours can have.

    """
    if not card:
        return EVERYTHING
    for name, value in card.items():
        if not isinstance(value, str | int | float | list):
            raise ToolError(f"catalog_filters: {name!r} must be a plain value, or a list of tags")
    project = project_of(card)
    tags = tuple(map(tag_of, tags_of(card)))
    return Filter(projects=(project,) if project else (), tags=tags)


def tags_of(card: Json) -> list[str]:
    found = [tag for tag in card.get("tags") or () if isinstance(tag, str)]
    for name, value in card.items():
        if name not in {"tags", "project"} and isinstance(value, str | int | float):
            found.append(f"{name}: {value}")
    return found


def project_of(card: Json) -> str:
    project = card.get("project", "")
    return project if isinstance(project, str) else ""


def card_of(tags: tuple[str, ...], project: str) -> Json:
    """Return tags as the card that they were made of."""
    pairs = dict(tag.split(": ", 1) for tag in tags if ": " in tag)
    plain = [tag for tag in tags if ": " not in tag]
    named = ({"tags": plain} if plain else {}) | ({"project": project} if project else {})
    return named | pairs


def record_view(asker: Asker, record: Shelved, text: str) -> Json:
    """Return a record as a book."""
    facts = record.facts
    return {
        "id": record.id,
        "collection": asker.collection,
        "text": cut(text, EXCERPT_CHARS),
        "catalog": card_of(facts.tags, facts.project),
        "source": facts.source or facts.title,
        "importance": _LEVELS[facts.importance],
        "scope": scope_of(record),
        "team_id": record.team,
        "created_at": record.created_at.timestamp(),
        "updated_at": record.updated_at.timestamp(),
    }


def event_view(asker: Asker, event: Event, text: str) -> Json:
    """Return a message, or a part of a record, as a book."""
    return {
        "id": event.id,
        "collection": asker.collection,
        "text": cut(text, EXCERPT_CHARS),
        "catalog": {"kind": event.kind, "role": event.role},
        "source": str(event.body.get("source") or event.session_id or event.thread_id),
        "created_at": event.occurred_at.timestamp(),
        "updated_at": event.recorded_at.timestamp(),
    }


def hit_view(asker: Asker, hit: Hit) -> Json:
    """Return what was found, with what its score is made of."""
    signals = hit.signals
    return {
        "book": event_view(asker, hit.event, text_of(hit)),
        "relevance": round(hit.score, 4),
        "vector_score": round(signals.get("dense", 0.0), 4),
        "lexical_score": round(signals.get("lexical", 0.0), 4),
        "importance_score": round(signals.get("importance", 0.0), 4),
        "recency_score": round(signals.get("recency", 0.0), 4),
    }


def desk_view(asker: Asker, standing: StandingDesk) -> Json:
    """Return a desk: its context takes the place of the last one's."""
    swapped = standing.swapped
    return {
        "session_id": standing.request.session,
        "collection": asker.collection,
        "subject": cut(standing.request.subject, LINE_CHARS),
        "context": standing.block,
        "token_count": standing.tokens,
        "token_budget": standing.request.desk_tokens,
        "refreshed_at": standing.laid_at.timestamp(),
        "swapped_in": [one["id"] for one in swapped["swapped_in"]],
        "swapped_out": list(swapped["swapped_out"]),
        "retained": list(swapped["retained"]),
        "books": [
            {"id": one.event.id, "relevance": round(one.score, 4), "token_count": one.tokens}
            for one in standing.desk.laid
        ],
        "degraded": list(standing.degraded),
    }


def text_of(hit: Hit) -> str:
    return hit.event.text[hit.passage.start : hit.passage.stop]
