"""A value that a JSON schema allows, for answers that must have a form. Pure.

The offline upstream has no model to fill a form with sense; it gives the least that is allowed, and
the words of its answer where any text may stand. Of JSON Schema only what says which shape a value
has is read (type, enum, const, properties, items, anyOf, allOf, local $ref); bounds of numbers and
patterns are not.
"""

from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 16
"""Deeper, and in a schema that refers to itself, there is nothing."""
ITEMS_MAX = 16
"""Of a list whose schema wants more; it is a form to be seen, not a bomb."""
_CHOICES = ("anyOf", "oneOf", "allOf")
_PLAIN: Mapping[str, Any] = {"integer": 0, "number": 0, "boolean": False}


def example(schema: Any, text: str) -> Any:
    """Return a value of this schema, in which a free text is `text`."""
    root = schema if isinstance(schema, Mapping) else {}
    return _value(root, root, text, DEPTH_MAX)


def _value(schema: Any, root: Mapping[str, Any], text: str, depth: int) -> Any:
    plain = _resolved(schema, root)
    if depth == 0 or not plain:
        return None
    if "const" in plain:
        return plain["const"]
    kind = _kind(plain)
    if kind == "object":
        return _object(plain, root, text, depth)
    if kind == "array":
        least = plain.get("minItems")
        count = min(least, ITEMS_MAX) if isinstance(least, int) else 0
        return [_value(plain.get("items"), root, text, depth - 1)] * count
    return text if kind == "string" else _PLAIN.get(kind)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first schema that this one refers to or allows; an enum as its first value."""
    for _ in range(DEPTH_MAX):
        if not isinstance(schema, Mapping):
            return {}
        choices = next((schema[key] for key in _CHOICES if key in schema), None)
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return {"const": schema["enum"][0]}
        if isinstance(schema.get("$ref"), str):
            schema = _referred(schema["$ref"], root)
        elif isinstance(choices, list) and choices:
            schema = choices[0]
        else:
            return schema
    return {}


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return kind if isinstance(kind, str) else "object" if "properties" in schema else ""


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], text: str, depth: int) -> Any:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    known = [name for name in names if isinstance(name, str) and name in properties]
    return {name: _value(properties[name], root, text, depth - 1) for name in known}


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that `#/a/b` names."""
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(name) if isinstance(found, Mapping) and name else found
    return found
