"""What retention goes by: the settings' rules, or one that a caller gives instead of them."""

from collections.abc import Sequence

from msgspec import structs

from gateway.refusals import BadParameter
from gateway.settings import Settings
from library.kinds.filter import KINDS
from library.kinds.words import one_of, tag_of
from library.retention.policy import Immunity, Policy, Rule

LIMITS = ("archive_after_days", "purge_after_days", "most_bytes", "most_records")


def policy_of(settings: Settings, *, own: Rule | None = None) -> Policy:
    """Return the rules with what they leave alone; `own` stands in place of the settings' rules,
    and not of what those keep."""
    least = settings.retention_keep_importance
    immunity = Immunity(
        importance_least=None if least == "none" else least,
        tags=tuple(map(tag_of, settings.retention_keep_tags)),
        words=settings.retention_keep_words,
        wanted_least=settings.retention_keep_wanted or None,
    )
    rules = [Rule(**structs.asdict(row)) for row in settings.retention.values()]
    return Policy(tuple(rules) if own is None else (own,), immunity)


def own_rule(
    *,
    kinds: Sequence[str],
    projects: Sequence[str],
    archive_after_days: float | None,
    purge_after_days: float | None,
    most_bytes: int | None,
    most_records: int | None,
) -> Rule | None:
    """Return the rule that a caller gives; None: nothing was given.

    Raises:
        Unacceptable: a kind is none.
        BadParameter: kinds or projects without anything that is to hold for them.

    """
    limits = (archive_after_days, purge_after_days, most_bytes, most_records)
    if all(limit is None for limit in limits):
        if kinds or projects:
            raise BadParameter("kind", f"beside one of {', '.join(LIMITS)}")
        return None
    return Rule(tuple(one_of(kind, KINDS, name="kind") for kind in kinds), tuple(projects), *limits)
