"""What the settings say of retention; gateway/settings.py and gateway/served.py have the rest."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from library.kinds.filter import Importance, Kind

EveryHours = Annotated[
    float,
    Meta(
        ge=0,
        description="Archive and purge by the rules of [retention] every so many hours, while the "
        "gateway runs; 0: only when somebody asks for it.",
    ),
]
KeepImportance = Annotated[
    Importance | Literal["none"],
    Meta(description="What is as important as this, or more, no rule touches; `none`: any may go."),
]
KeepTags = Annotated[
    tuple[str, ...], Meta(description="Nor what has one of these tags (pinned is never touched).")
]
KeepWords = Annotated[
    tuple[str, ...], Meta(description="Nor what says one of these words, or several in a row.")
]
KeepWanted = Annotated[
    float,
    Meta(
        ge=0,
        description="Nor what was laid on a desk or opened so often; to be found by a search "
        "counts a twentieth of that. 0: use keeps nothing.",
    ),
]
LowDisk = Annotated[
    int,
    Meta(
        ge=0,
        description="With less than this free on the database's disk, `status` and the metrics say "
        "so, and scheduled retention runs every hour. 0: it is not looked at.",
    ),
]
DAYS_MAX = 36_500
"""A hundred years."""
Days = Annotated[float, Meta(ge=0, le=DAYS_MAX)]


class RetentionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule, `[retention.NAME]`; of several the first that matches a thread holds for it."""

    kinds: Annotated[
        tuple[Kind, ...],
        Meta(description="`chat`, `insight`, `document`, `chunk`; empty: every kind."),
    ] = ()
    projects: Annotated[
        tuple[str, ...],
        Meta(description="Projects of records, collections of chats; empty: all."),
    ] = ()
    archive_after_days: Annotated[
        Days | None,
        Meta(description="Archived when nobody wrote to it or used it for so long; unset: never."),
    ] = None
    purge_after_days: Annotated[
        Days | None,
        Meta(description="Deleted for good after so long in the archive; unset: never."),
    ] = None
    most_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="What a collection's share may take; above it the least important and "
            "longest unused are archived, then purged from the archive. Unset: any size."
        ),
    ] = None
    most_records: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The same, counted in threads and records."),
    ] = None


Rules = Annotated[
    dict[str, RetentionRule],
    Meta(description="Rules of retention; the first that matches holds."),
]
