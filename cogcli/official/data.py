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
    """Return whether a text is JSON as `parse_json` reads it, and its value.

    Otherwise `data` is null, and `errors` holds one error with line and column.
    """
    try:
        data = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=_unique_members,
            parse_constant=_refuse_constant,
            parse_int=_parse_integer,
            parse_float=_parse_float,
        )
        _check_depth(data)
    except json.JSONDecodeError as error:
        return _invalid_result(error.msg, error.lineno, error.colno)
    except RecursionError:
        return _invalid_result(f"nested deeper than {_MAX_DEPTH}")
    except ValueError as error:
        return _invalid_result(str(error))
    return {"valid": True, "data": data, "errors": []}


def _invalid_result(message: str, line: int = 0, column: int = 0) -> dict[str, object]:
    place = {"line": line, "column": column} if line else {}
    return {
        "valid": False,
        "data": None,
        "errors": [{"path": "", "message": f"not JSON: {message}", **place}],
    }


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of an object. Raise ValueError for a repeated key."""
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {_shorten_value(repeated)} is repeated")
    return members


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _parse_integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > _SAFE_INTEGER:
        raise ValueError(f"integer {_shorten_value(digits)} is outside 2^53; write it as text")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"number {_shorten_value(digits)} is too large")
    return value


def _shorten_value(value: object, limit: int = 40) -> str:
    text = str(value)
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def _check_depth(data: object) -> None:
    level = [data]
    for _ in range(_MAX_DEPTH + 1):
        level = [child for value in level for child in children_of(value)]
        if not level:
            return
    raise ValueError(f"nested deeper than {_MAX_DEPTH}")


def merge_objects(objects: list[dict[str, object]]) -> dict[str, object]:
    """Return the objects merged, nested ones key by key. Later values replace earlier ones.

    `conflicts` lists, as JSON pointers, the places at which a later value replaced a different
    earlier one.
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
    """Return `base` with the members of `overlay`, nested objects merged key by key if `deep`.

    The places at which values differ are added to `conflicts`.
    """
    merged = dict(base)
    for key, value in overlay.items():
        place = f"{path}/{pointer_part(key)}"
        earlier = merged.get(key)
        if deep and isinstance(earlier, dict) and isinstance(value, dict):
            merged[key] = overlaid(earlier, value, conflicts, place)
            continue
        if key in merged and identity(earlier) != identity(value):
            conflicts.append(place)
        merged[key] = value
    return merged


def profile_records(records: object) -> dict[str, object]:
    """Return a profile of each field of a list of objects: types, missing and distinct values,
    range and mean.

    One object counts as a list of one; an object whose only member is a list of objects counts as
    that list. Other elements are only counted, as `skipped`. A field is missing if it is absent or
    null. Text fields report the range of their lengths.
    """
    if isinstance(records, dict) and len(records) == 1:
        (inner,) = records.values()
        records = (
            inner if isinstance(inner, list) and inner and isinstance(inner[0], dict) else records
        )
    elements = records if isinstance(records, list) else [records]
    objects = [record for record in elements if isinstance(record, dict)]
    names = dict.fromkeys(name for record in objects for name in record)
    fields = [_field_profile(name, [record.get(name) for record in objects]) for name in names]
    return {"fields": fields, "record_count": len(objects), "skipped": len(elements) - len(objects)}


def _field_profile(name: str, values: list[object]) -> dict[str, object]:
    present = [value for value in values if value is not None]
    types = Counter(_json_type(value) for value in present)
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
        facts |= {"min": min(numbers), "max": max(numbers)} | _mean_entry(numbers)
    if texts:
        facts |= {"min_length": min(texts), "max_length": max(texts)}
    return facts


def _mean_entry(numbers: list[int | float]) -> dict[str, object]:
    try:
        return {"mean": round(math.fsum(number / len(numbers) for number in numbers), 6)}
    except OverflowError:
        return {}


def _json_type(value: object) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "unknown")
