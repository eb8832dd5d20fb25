"""Strict JSON to plain values with positions, as `reader` does for YAML; used for the one JSON file that people
edit."""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.jsonvalue import preview
from cogcli.core.problems import Problem
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.yaml.positions import Places
from cogcli.yaml.reader import MAX_BYTES, MAX_DEPTH, Parsed

_ROOT_HINT: Final = "write {}"


def parse(data: bytes, *, file: str) -> Parsed:
    """The object in a JSON file, by the rules of `core.strict_json`; problems are in the result. Raises nothing."""
    try:
        value: Any = loads(data, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except JsonRefused as refused:
        problem = Problem(
            refused.code, "E", file, refused.line, refused.column, "", refused.message, refused.hint
        )
        return Parsed(None, Places(""), [problem])
    # Whatever is strict JSON is YAML, too: its reader tells where things stand.
    places = Places(data.decode().removeprefix("\ufeff"))
    if isinstance(value, dict):
        return Parsed(value, places, [])
    message = f"found {preview(value)}, expected object"
    return Parsed(None, places, [Problem("json.type", "E", file, 1, 1, "", message, _ROOT_HINT)])
