"""The hooks in Claude Code's settings: put in, taken out, and nothing else touched. Pure.

Ours are known by their command. A file that is not what its format says is refused rather than
mended: it is somebody's settings.
"""

import json
import re
from typing import Any

PROGRAM = "library-of-context"
_OURS = re.compile(r"""(?:library-of-context(?:\.exe)?|-m gateway\.cli\.main)['"]? hook """)
"""By its bare name, by its path, quoted or not, or as a module."""
HOOKS: dict[str, tuple[str, str, int]] = {
    # Event -> matcher, our command, seconds that it may take.
    "PreCompact": ("*", "pre-compact", 30),
    "SessionStart": ("*", "session-start", 20),
    "PostToolUse": ("Write|Edit|MultiEdit", "post-tool-use", 10),
}
Json = dict[str, Any]


class UnusableSettings(Exception):
    """The file is no settings file of Claude Code."""


def parsed(text: str) -> Json:
    """Return the settings in a file's text; an empty one holds none.

    Raises:
        UnusableSettings: it is something else.

    """
    if not text.strip():
        return {}
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise UnusableSettings(f"not JSON: {error}") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("hooks", {}), dict):
        raise UnusableSettings("not an object with an object of hooks")
    for event, entries in settings.get("hooks", {}).items():
        if not isinstance(entries, list) or not all(map(_is_entry, entries)):
            raise UnusableSettings(f"hooks.{event} is not a list of hooks")
    return settings


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("hooks", []), list)


def without_ours(settings: Json) -> Json:
    """Return settings without our hooks, and without what only held them."""
    hooks: Json = {}
    for event, entries in settings.get("hooks", {}).items():
        kept = [
            {**entry, "hooks": [one for one in entry.get("hooks", []) if not is_ours(one)]}
            if any(map(is_ours, entry.get("hooks", [])))
            else entry
            for entry in entries
        ]
        kept = [
            entry
            for entry, before in zip(kept, entries, strict=True)
            if entry.get("hooks") or not before.get("hooks")
        ]
        if kept or not entries:
            hooks[event] = kept
    left = {name: value for name, value in settings.items() if name != "hooks"}
    if hooks or ("hooks" in settings and not settings["hooks"]):
        left = {name: hooks if name == "hooks" else value for name, value in settings.items()}
    return left


def with_ours(
    settings: Json,
    *,
    program: str = PROGRAM,
    everywhere: str = "",
    of_library: str = "",
) -> Json:
    """Return settings with our hooks behind all others, each once; the same again changes
    nothing. `program` is ours as a shell calls it; arguments are for all hooks, or for those that
    ask the library."""
    found = without_ours(settings)
    hooks = dict(found.get("hooks", {}))
    for event, (matcher, name, timeout_s) in HOOKS.items():
        asks = "" if event == "PostToolUse" else of_library
        command = " ".join(filter(None, (f"{program} hook {name}", everywhere, asks)))
        own = {"type": "command", "command": command, "timeout": timeout_s}
        hooks[event] = [*hooks.get(event, []), {"matcher": matcher, "hooks": [own]}]
    return {**found, "hooks": hooks}


def is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def written(settings: Json) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
