"""Tables: choosing, ordering and totalling rows."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from cogcli.official.values import Record, identity, is_number, kind_of, records_of, require_columns
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    Test = Callable[[int, Record], bool]

_MAX_DEPTH = 20
_MAX_TESTS = 500
_SAFE_INTEGER = 2**53 - 1
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_SIGNS = {
    "==": "eq",
    "=": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "not in": "not_in",
}
OPERATORS = ("eq ne lt le gt ge in not_in contains starts_with ends_with is_null not_null").split()


def filter_rows(table: list[Record], condition: Record) -> dict[str, object]:
    """Return the rows that satisfy a condition; `removed` counts the others.

    `{column: value}` requires each named column to have that value; `{field, op, value}` compares
    one column; `{all: [...]}`, `{any: [...]}` and `{not: {...}}` join conditions. Null equals null
    only, and is neither less nor greater than any value. Raise Refused for an unknown column or
    operator, and for a row whose value cannot be compared.
    """
    rows = records_of(table, "table")
    fields: list[str] = []
    test = _build_test(condition, fields, 1)
    require_columns(rows, fields)
    kept = [row for number, row in enumerate(rows, 1) if test(number, row)]
    return {"table": kept, "removed": len(rows) - len(kept)}


def _build_test(condition: object, fields: list[str], depth: int) -> Test:
    """Return the test of a condition. The columns that the test reads are added to `fields`. Raise Refused."""
    if not isinstance(condition, dict) or not condition:
        raise Refused(
            "bad-data", f"a condition is an object with something in it, found {kind_of(condition)}"
        )
    if depth > _MAX_DEPTH or len(fields) > _MAX_TESTS:
        raise Refused(
            "too-large", f"the condition is deeper than {_MAX_DEPTH} or has over {_MAX_TESTS} parts"
        )
    if "field" in condition and "op" in condition:
        return comparison(condition, fields)
    if len(condition) == 1:
        ((word, inner),) = condition.items()
        if word in ("all", "any") and isinstance(inner, list):
            tests = [_build_test(part, fields, depth + 1) for part in inner]
            combine = all if word == "all" else any
            return lambda number, row: combine(test(number, row) for test in tests)
        if word == "not" and isinstance(inner, dict):
            test = _build_test(inner, fields, depth + 1)
            return lambda number, row: not test(number, row)
    expected = {str(name): identity(value) for name, value in condition.items()}
    fields += expected
    return lambda number, row: all(
        identity(row.get(name)) == value for name, value in expected.items()
    )


def comparison(condition: Record, fields: list[str]) -> Test:
    """Return the test of `{field, op, value}`. The column is added to `fields`.

    Raise Refused for an invalid comparison; the test raises it for a value that cannot be compared.
    """
    field, word, value = condition["field"], str(condition["op"]), condition.get("value")
    name = _SIGNS.get(word, word)
    if name not in OPERATORS or not isinstance(field, str):
        raise Refused(
            "unsupported", f"no operator {word!r:.40}", f"there are {', '.join(OPERATORS)}"
        )
    unknown = set(condition) - {"field", "op", "value"}
    if unknown or ("value" not in condition and name not in ("is_null", "not_null")):
        raise Refused(
            "bad-data", f"a comparison has `field`, `op` and `value`, found {', '.join(condition)}"
        )
    fields.append(field)
    if name in _ORDERED:
        return _order_test(field, name, value)
    if name in ("contains", "starts_with", "ends_with"):
        return _containment_test(field, name, value)
    if name in ("in", "not_in"):
        if not isinstance(value, list):
            raise Refused("bad-data", f"`{name}` takes a list as its value, found {kind_of(value)}")
        choices = {identity(each) for each in value}
        return lambda number, row: (identity(row.get(field)) in choices) is (name == "in")
    expected = identity(value if name in ("eq", "ne") else None)
    return lambda number, row: (identity(row.get(field)) == expected) is (name in ("eq", "is_null"))


def _order_test(field: str, name: str, value: object) -> Test:
    kind, compare = kind_of(value), _ORDERED[name]
    if kind not in ("number", "text"):
        raise Refused("bad-data", f"`{name}` takes a number or a text, found {kind}")

    def holds(number: int, row: Record) -> bool:
        found = row.get(field)
        if found is None:
            return False
        if kind_of(found) != kind:
            raise Refused(
                "bad-data", f"row {number}: {field!r:.60} is {kind_of(found)}, compared with {kind}"
            )
        return compare(found, value)

    return holds


def _containment_test(field: str, name: str, value: object) -> Test:
    """Return the test for a part, beginning or end of a text. `contains` also tests for an element
    of a list.
    """

    def holds(number: int, row: Record) -> bool:
        found = row.get(field)
        if isinstance(found, str) and isinstance(value, str):
            if name == "contains":
                return value in found
            return found.startswith(value) if name == "starts_with" else found.endswith(value)
        if isinstance(found, list) and name == "contains":
            return identity(value) in map(identity, found)
        if found is None:
            return False
        raise Refused(
            "bad-data",
            f"row {number}: {field!r:.60} is {kind_of(found)}, `{name}` looks for {kind_of(value)}",
        )

    return holds


def sort_rows(table: list[Record], sort_by: list[object]) -> dict[str, object]:
    """Return the rows in the order of one or more columns, each a name or `{field, order}` with `asc` or `desc`.

    Equal rows keep their order, and null comes last in either order. Raise Refused for an unknown column or order,
    and for a column that holds values of different kinds, or lists or objects.
    """
    rows = list(records_of(table, "table"))
    keys = [_sort_key(key) for key in sort_by]
    require_columns(rows, [field for field, _ in keys])
    for field, descending in reversed(keys):
        filled = [row for row in rows if row.get(field) is not None]
        kinds = sorted({kind_of(row[field]) for row in filled})
        if len(kinds) > 1 or kinds in (["array"], ["object"]):
            raise Refused(
                "bad-data", f"column {field!r:.60} holds {' and '.join(kinds)}, which have no order"
            )
        empty = [row for row in rows if row.get(field) is None]
        rows = sorted(filled, key=lambda row: row[field], reverse=descending) + empty  # type: ignore[arg-type,return-value]
    return {"table": rows}


def _sort_key(key: object) -> tuple[str, bool]:
    field, order = (
        (key.get("field"), key.get("order", "asc")) if isinstance(key, dict) else (key, "asc")
    )
    orders = {"asc": False, "ascending": False, "desc": True, "descending": True}
    if not isinstance(field, str) or not isinstance(order, str) or order not in orders:
        raise Refused(
            "bad-data", "`sort_by` lists names or {field, order}, with the order asc or desc"
        )
    return field, orders[order]


def aggregate_columns(
    table: list[Record], aggregations: list[Record], group_by: str | None = None
) -> dict[str, object]:
    """Return one result for each value of `group_by`, in the order of first occurrence, or one for
    the whole table.

    Each aggregation is `{field, function}`, named `<field>_<function>` or by `as`: sum, avg, min,
    max and median of filled values, count (of filled values; without `field`, of rows) and
    distinct. An average, minimum, maximum or median without values is null. Raise Refused for an
    unknown column or function, and for values that do not support the function.
    """
    rows = records_of(table, "table")
    parsed = [_parse_aggregation(each) for each in records_of(aggregations, "aggregations")]
    if not parsed:
        raise Refused("bad-data", "`aggregations` is empty", "name at least one {field, function}")
    names = [*([group_by] if group_by else []), *(name for name, _, _ in parsed)]
    if len(set(names)) < len(names):
        raise Refused("bad-data", "two columns of the result have one name", "name them with `as`")
    fields = [field for _, field, _ in parsed if field]
    require_columns(rows, [*fields, *([group_by] if group_by else [])])
    groups: dict[Hashable, list[Record]] = {} if group_by else {None: rows}
    if group_by:
        for row in rows:
            groups.setdefault(identity(row.get(group_by)), []).append(row)
    results = []
    for members in groups.values():
        result: Record = {group_by: members[0].get(group_by)} if group_by else {}
        for name, field, function in parsed:
            values = [row.get(field) for row in members] if field else [True] * len(members)
            result[name] = _compute_figure(
                function, [value for value in values if value is not None], field
            )
        results.append(result)
    return {"results": results, "row_count": len(rows)}


def _parse_aggregation(aggregation: Record) -> tuple[str, str, str]:
    """Return the name in the result, the column (or empty) and the function. Raise Refused."""
    field, word = aggregation.get("field", ""), str(aggregation.get("function"))
    function = {"mean": "avg", "average": "avg"}.get(word, word)
    if not isinstance(field, str) or function not in _FIGURES or not (field or function == "count"):
        raise Refused(
            "unsupported",
            f"no aggregation {aggregation!s:.80}",
            f"there are {', '.join(_FIGURES)} of a `field`",
        )
    return str(aggregation.get("as") or "_".join(filter(None, (field, function)))), field, function


def _compute_figure(function: str, values: list[Any], field: str) -> object:
    types = {kind_of(value) for value in values}
    if function in ("sum", "avg", "median") and not all(map(is_number, values)):
        text = f"column {field!r:.60} holds {' and '.join(sorted(types - {'number'}))}"
        raise Refused("bad-data", f"{text}, of which there is no {function}")
    if function in ("min", "max") and not (types <= {"number"} or types <= {"text"}):
        raise Refused(
            "bad-data",
            f"column {field!r:.60} holds {' and '.join(sorted(types))}, which have no order",
        )
    return _FIGURES[function](values)


def total(numbers: list[int | float]) -> int | float:
    """Return the sum: exact for integers within 2^53, else rounded once. Raise Refused for an
    overflow.
    """
    try:
        exact = sum(numbers) if all(isinstance(number, int) for number in numbers) else None
        if isinstance(exact, int) and abs(exact) <= _SAFE_INTEGER:
            return exact
        return math.fsum(numbers)
    except OverflowError:
        raise Refused("too-large", "the numbers are too large to add") from None


def median(numbers: list[int | float]) -> int | float | None:
    """Return the middle number, or the mean of the two middle ones; None without numbers."""
    ranked, middle = sorted(numbers), len(numbers) // 2
    if not ranked:
        return None
    return (
        ranked[middle] if len(ranked) % 2 else total([ranked[middle - 1] / 2, ranked[middle] / 2])
    )


_FIGURES: dict[str, Callable[[list[Any]], object]] = {
    "sum": total,
    "avg": lambda numbers: total(numbers) / len(numbers) if numbers else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "count": len,
    "median": median,
    "distinct": lambda values: len(set(map(identity, values))),
}
