"""Tools under the names of other systems: which of ours each needs. Pure.

Offered instead of ours where a client asks for them, so that instructions which were written for
one of those systems keep working. What a setting does not offer under our name is not offered under
another.

Source: EncrEor/rlm-claude src/mcp_server/server.py; hwillGIT/library-of-context
context_cache/mcp_schema.py (November 2026).
"""

from collections.abc import Mapping
from typing import Literal, get_args

Compat = Literal["rlm", "library"]
SYSTEMS: tuple[Compat, ...] = get_args(Compat)
_RLM = {
    "rlm_remember": "remember",
    "rlm_recall": "recall",
    "rlm_forget": "forget",
    "rlm_status": "status",
    "rlm_chunk": "shelve",
    "rlm_peek": "open",
    "rlm_grep": "grep",
    "rlm_search": "consult",
    "rlm_list_chunks": "sessions",
    "rlm_sessions": "sessions",
    "rlm_domains": "domains",
    "rlm_retention_preview": "retention_preview",
    "rlm_retention_run": "retention_run",
    "rlm_restore": "restore",
}
_LIBRARY = {
    "library_shelve": "remember",
    "library_shelve_document": "shelve_document",
    "library_consult": "consult",
    "library_desk_refresh": "desk_refresh",
    "library_desk_get": "desk_get",
    "library_desk_watch": "desk_watch",
    "library_desk_stop": "desk_stop",
    "library_message_record": "commit",
    "library_prompt_build": "prepare",
    "library_context_prepare": "prepare",
    "library_context_commit": "commit",
    "library_context_protect": "protect",
    "library_context_release": "release",
    "library_context_status": "status",
    "library_context_flush": "flush",
    "library_stats": "status",
}
WITHOUT_EFFECT: Mapping[str, frozenset[str]] = {
    name: frozenset(parameters.split())
    for name, parameters in {
        "library_shelve_document": "chapter_tokens overlap_tokens replace_edition owner_session_id",
        "library_desk_refresh": "team_ids",
        "library_desk_watch": "team_ids",
        "library_message_record": "importance",
        "library_context_prepare": "max_books metadata importance",
        "library_context_commit": "token_budget recent_token_budget protected_token_budget "
        "max_books metadata importance event_id",
        "library_context_protect": "role token_budget recent_token_budget protected_token_budget "
        "max_books importance event_id",
    }.items()
}
"""Parameters that a tool takes because its system documents them, and that change nothing here: an
answer names those that were given another value than they have by themselves."""
ALIASES: Mapping[Compat, Mapping[str, str]] = {"rlm": _RLM, "library": _LIBRARY}
"""Of each system, its tools in its order, with the tool of ours that each needs."""
NEEDED = {name: tool for some in ALIASES.values() for name, tool in some.items()}


def system_of(tools: frozenset[str]) -> Compat | None:
    """Return the system whose tools are offered; None: ours are."""
    return next((one for one in SYSTEMS if tools & ALIASES[one].keys()), None)


class UnknownSystem(ValueError):
    """There are no aliases for such a system."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r}: one of {', '.join(SYSTEMS)}")


def aliases(system: str, offered: frozenset[str]) -> frozenset[str]:
    """Return the tools of a system whose counterparts are offered.

    Raises:
        UnknownSystem: it is none that we know.

    """
    for one in SYSTEMS:
        if one == system:
            return frozenset(name for name, tool in ALIASES[one].items() if tool in offered)
    raise UnknownSystem(system)
