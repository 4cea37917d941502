"""What callers write of a record, with what looks like a secret replaced (`mask_secrets`). Pure.

The store applies it to what it keeps and to what it is asked for alike: so a document that is
shelved again from the same address, its password and all, is the one that is there, and a filter
finds by the very words that were given. Two names that differ in nothing but a secret are one.
"""

from dataclasses import replace

from library.kinds.filter import Filter
from library.kinds.record import Change, Facts
from library.masking import mask, mask_body, mask_tag


def masked_facts(facts: Facts) -> Facts:
    """Return what is to be kept of a record besides its text."""
    return replace(
        facts,
        project=mask(facts.project),
        source=mask(facts.source),
        title=mask(facts.title),
        tags=_masked_tags(facts.tags),
        origin=mask_body(facts.origin),
    )


def masked_change(change: Change) -> Change:
    """Return the same of what is changed; the text is masked where every text is."""
    return replace(
        change,
        project=None if change.project is None else mask(change.project),
        title=None if change.title is None else mask(change.title),
        tags=None if change.tags is None else _masked_tags(change.tags),
    )


def masked_filter(wanted: Filter) -> Filter:
    """Return a filter that finds what was masked by what it was before."""
    return replace(
        wanted,
        projects=tuple(map(mask, wanted.projects)),
        tags=_masked_tags(wanted.tags),
        sources=tuple(map(mask, wanted.sources)),
    )


def _masked_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    # Two of them may be one now.
    return tuple(sorted({mask_tag(tag) for tag in tags}))
