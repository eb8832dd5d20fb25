"""JSON data: strict reading, merging, and a profile of records."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from cogcli.official.values import children_of, identity, is_number, pointer_part
from cogcli.sdk import Refused

_MAX_DEPTH = 100
_SAFE_INTEGER = 2**53 - 1


def parse_json(text: str) -> dict[str, object]:
    """Return the value of a JSON text, read strictly: no repeated keys, no NaN, integers within 2^53, depth 100.

    Raise Refused for any other text, with its place.
    """
    checked = check_json(text)
    if not checked["valid"]:
        error: Any = checked["errors"]
        place = "line {line}, column {column}: ".format(**error[0]) if "line" in error[0] else ""
        raise Refused("bad-data", f"{place}{error[0]['message']}")
    return checked


def check_json(text: str) -> dict[str, object]:
    """Return whether a text is JSON as `parse_json` reads it, and its value; else `data` is null and there is one
    error with line and column.
    """
    try:
        data = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_safe_integer,
            parse_float=_finite,
        )
        _check_depth(data)
    except json.JSONDecodeError as error:
        return _invalid(error.msg, error.lineno, error.colno)
    except RecursionError:
        return _invalid(f"nested deeper than {_MAX_DEPTH}")
    except ValueError as error:
        return _invalid(str(error))
    return {"valid": True, "data": data, "errors": []}


def _invalid(message: str, line: int = 0, column: int = 0) -> dict[str, object]:
    place = {"line": line, "column": column} if line else {}
    return {
        "valid": False,
        "data": None,
        "errors": [{"path": "", "message": f"not JSON: {message}", **place}],
    }


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {_short(repeated)} is repeated")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _safe_integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > _SAFE_INTEGER:
        raise ValueError(f"integer {_short(digits)} is outside 2^53; write it as text")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"number {_short(digits)} is too large")
    return value


def _short(value: object, limit: int = 40) -> str:
    shown = str(value)
    return repr(shown if len(shown) <= limit else f"{shown[:limit]}…")


def _check_depth(data: object) -> None:
    level = [data]
    for _ in range(_MAX_DEPTH + 1):
        level = [child for value in level for child in children_of(value)]
        if not level:
            return
    raise ValueError(f"nested deeper than {_MAX_DEPTH}")


def merge_objects(objects: list[dict[str, object]]) -> dict[str, object]:
    """Return the objects laid over one another, nested ones key by key, later values winning.

    `conflicts` lists, as JSON pointers, where a later value replaced a different earlier one.
    """
    merged: dict[str, object] = {}
    conflicts: list[str] = []
    for overlay in objects:
        merged = overlaid(merged, overlay, conflicts)
    return {"object": merged, "conflicts": conflicts}


def overlaid(
    base: dict[str, object],
    overlay: dict[str, object],
    conflicts: list[str],
    path: str = "",
    deep: bool = True,
) -> dict[str, object]:
    """`overlay` on top of `base`, nested objects key by key if `deep`; adds to `conflicts` where values differ."""
    merged = dict(base)
    for key, value in overlay.items():
        place = f"{path}/{pointer_part(key)}"
        old = merged.get(key)
        if deep and isinstance(old, dict) and isinstance(value, dict):
            merged[key] = overlaid(old, value, conflicts, place)
            continue
        if key in merged and identity(old) != identity(value):
            conflicts.append(place)
        merged[key] = value
    return merged


def profile_records(records: object) -> dict[str, object]:
    """Return what the fields of a list of objects hold: types, missing values, distinct values, range and mean.

    One object counts as a list of one, but an object with nothing but a list of objects stands for that list. Elements
    that are no objects are only counted, as `skipped`. A field is missing where it is absent or null. Text fields
    report the range of their lengths.
    """
    if isinstance(records, dict) and len(records) == 1:
        (inner,) = records.values()
        records = (
            inner if isinstance(inner, list) and inner and isinstance(inner[0], dict) else records
        )
    listed = records if isinstance(records, list) else [records]
    objects = [record for record in listed if isinstance(record, dict)]
    names = dict.fromkeys(name for record in objects for name in record)
    fields = [_field(name, [record.get(name) for record in objects]) for name in names]
    return {"fields": fields, "record_count": len(objects), "skipped": len(listed) - len(objects)}


def _field(name: str, values: list[object]) -> dict[str, object]:
    present = [value for value in values if value is not None]
    types = Counter(_type(value) for value in present)
    distinct = {json.dumps(value, sort_keys=True) for value in present}
    facts: dict[str, object] = {
        "name": name,
        "types": dict(sorted(types.items())),
        "missing": len(values) - len(present),
        "distinct": len(distinct),
    }
    numbers = [value for value in present if is_number(value)]
    texts = [len(value) for value in present if isinstance(value, str)]
    if numbers:
        facts |= {"min": min(numbers), "max": max(numbers)} | _mean(numbers)
    if texts:
        facts |= {"min_length": min(texts), "max_length": max(texts)}
    return facts


def _mean(numbers: list[int | float]) -> dict[str, object]:
    try:
        return {"mean": round(math.fsum(number / len(numbers) for number in numbers), 6)}
    except OverflowError:
        return {}


def _type(value: object) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "unknown")
