"""Tables: CSV text into typed rows, and figures about columns and groups."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from datetime import date
from itertools import count, islice
from typing import TYPE_CHECKING

from cogcli.official.table_rows import median, total
from cogcli.official.values import is_number, require_columns
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_DELIMITERS = (",", ";", "\t", "|")
_MAX_COLUMNS = 1_000
_MAX_PROBLEMS = 100
_TOP = 5
# Leading zeros are part of a code (`007`), a plus before many digits is part of a telephone number, and integers beyond
# 2^53 lose digits in JSON readers: all stay text.
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})|\+(?:0|[1-9]\d{0,5})")
_NUMBER = re.compile(
    r"(?!\+\d{7,}$)[+-]?(?:(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?"
)
_QUOTED = re.compile(r'"[^"]*"?')


def read_csv(
    text: str, delimiter: str | None = None, header: bool = True, max_rows: int = 10_000
) -> dict[str, object]:
    """Return the rows of a CSV text as objects. All cells of a column have one type.

    Types are integer, number, boolean, date (kept as text) and string; empty cells are null. The
    default `delimiter` is the most frequent of comma, semicolon, tab and bar in the first line.
    Rows with too few or too many cells are filled or cut, and reported in `problems`, as is a table
    longer than `max_rows`. Raise Refused for quotes that do not close.
    """
    table = text.removeprefix("\ufeff")
    mark = delimiter or delimiter_of(table)
    lines = list(islice(csv_lines(table, mark), max_rows + 1 + header))
    return table_of(lines, header, max_rows) | {"delimiter": mark}


def delimiter_of(text: str) -> str:
    """Return the most frequent of comma, semicolon, tab and bar in the first line, outside of
    quotes.
    """
    return max(_DELIMITERS, key=_QUOTED.sub("", text.partition("\n")[0]).count)


def table_of(lines: list[tuple[int, list[str]]], header: bool, max_rows: int) -> dict[str, object]:
    """Return the table of (line number, cells) pairs: columns with types, and rows, as in the result of `read_csv`."""
    header_cells = lines.pop(0)[1] if header and lines else []
    names = unique_names(header_cells or [""] * max((len(cells) for _, cells in lines), default=0))
    rows_to_read = lines[:max_rows]
    columns = {
        name: _typed_column([_cell_at(cells, index) for _, cells in rows_to_read])
        for index, name in enumerate(names)
    }
    return {
        "columns": [{"name": name, "type": kind} for name, (kind, _) in columns.items()],
        "rows": [
            {name: values[row] for name, (_, values) in columns.items()}
            for row in range(len(rows_to_read))
        ],
        "row_count": len(rows_to_read),
        "problems": first_problems(
            {"line": number, "message": f"{len(cells)} cells, expected {len(names)}"}
            for number, cells in rows_to_read
            if len(cells) != len(names)
        )
        + [truncation_problem(number) for number, _ in lines[max_rows : max_rows + 1]],
        "truncated": len(lines) > max_rows,
    }


def truncation_problem(line: int) -> dict[str, object]:
    """Return the problem for a table that continues after the last row read, at this line."""
    return {"line": line, "message": "the table goes on from here, and the rest is not read"}


def first_problems(problems_found: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return the first hundred problems. Further ones are counted in one entry, at the line of the
    first of them.
    """
    problems = list(islice(iterator := iter(problems_found), _MAX_PROBLEMS))
    if following := next(iterator, None):
        further = 1 + sum(1 for _ in iterator)
        problems.append(
            {"line": following["line"], "message": f"from here on {further} more such lines"}
        )
    return problems


def csv_lines(
    text: str, delimiter: str, *, keeps_empty: bool = False, is_truncated: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, cells) of each record, without empty ones unless `keeps_empty`.

    Raise Refused for NUL characters, and for quotes that do not close, unless the text was `is_truncated`.
    """
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise Refused(
            "bad-data",
            f"delimiter must be one character and no quote or line end, found {delimiter!r:.20}",
        )
    if (nul := text.find("\0")) >= 0:
        line = text.count("\n", 0, nul) + 1
        raise Refused(
            "bad-data", f"CSV line {line}: a NUL character, as in UTF-16 text", "save it as UTF-8"
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=not is_truncated)
    try:
        last_line = 0
        for cells in reader:
            if cells or keeps_empty:
                yield last_line + 1, cells
            last_line = reader.line_num
    except csv.Error as error:
        raise Refused("bad-data", f"CSV line {reader.line_num}: {error}") from None


def unique_names(cells: list[str]) -> list[str]:
    """Return distinct column names: empty ones get their number, repeated ones a number behind.
    Raise Refused.
    """
    if len(cells) > _MAX_COLUMNS:
        raise Refused("too-large", f"CSV: {len(cells)} columns; at most {_MAX_COLUMNS} are read")
    names: dict[str, None] = {}
    for position, cell in enumerate(cells, 1):
        name = cell.strip() or f"column_{position}"
        free = (name if n == 1 else f"{name}_{n}" for n in count(1))
        names[next(candidate for candidate in free if candidate not in names)] = None
    return list(names)


def _cell_at(cells: list[str], index: int) -> str:
    return cells[index].strip() if index < len(cells) else ""


def _typed_column(cells: list[str]) -> tuple[str, list[object]]:
    """Return the narrowest type that fits every filled cell, and the converted values."""
    filled = [cell for cell in cells if cell]
    for kind, convert in _TYPES.items():
        if filled and all(convert(cell) is not None for cell in filled):
            return kind, [convert(cell) if cell else None for cell in cells]
    return "string", [cell or None for cell in cells]


def _parse_integer(cell: str) -> int | None:
    return int(cell) if _INTEGER.fullmatch(cell) else None


def _parse_number(cell: str) -> float | None:
    return float(cell) if _NUMBER.fullmatch(cell) else None


def _parse_boolean(cell: str) -> bool | None:
    return {"true": True, "false": False}.get(cell.lower())


def _iso_date(cell: str) -> str | None:
    try:
        return date.fromisoformat(cell).isoformat() if len(cell) == 10 else None
    except ValueError:
        return None


_TYPES: dict[str, Callable[[str], object]] = {
    "integer": _parse_integer,
    "number": _parse_number,
    "boolean": _parse_boolean,
    "date": _iso_date,
}


def summarize_column(rows: list[dict[str, object]], column: str) -> dict[str, object]:
    """Return figures about one column.

    These are the filled, missing and distinct values, the most frequent ones, and for numbers sum,
    mean, median and range. `profile` is all of them with the name.
    """
    values = _column_values(rows, column)
    present = [value for value in values if value is not None]
    common = Counter(map(str, present)).most_common()
    facts: dict[str, object] = {
        "filled": len(present),
        "missing": len(values) - len(present),
        "distinct": len(common),
    }
    numbers = [value for value in present if is_number(value)]
    if numbers and len(numbers) == len(present):
        facts |= {
            "sum": _rounded_total(numbers),
            "mean": _mean_of(numbers),
            "median": median(numbers),
        }
        facts |= {"min": min(numbers), "max": max(numbers)}
    top = [{"value": value, "count": n} for value, n in common[:_TOP]]
    return {"facts": facts, "top": top, "profile": {"name": column, **facts, "top": top}}


def total_groups(
    rows: list[dict[str, object]], by: str, measure: str | None = None, max_groups: int = 50
) -> dict[str, object]:
    """Return the number of rows for each value of the column `by`, with sum and mean of the column
    `measure`.

    The largest group comes first, by sum if there is a measure, else by count. `group_count` counts
    all groups; `counts` has the number of rows by group.
    """
    keys = _column_values(rows, by)
    measured_values = _column_values(rows, measure) if measure else [None] * len(rows)
    groups: dict[str, list[object]] = {}
    for key, value in zip(keys, measured_values, strict=True):
        groups.setdefault("" if key is None else str(key), []).append(value)
    totals = [_group_entry(key, values, bool(measure)) for key, values in groups.items()]
    rank = "sum" if measure else "count"
    totals.sort(key=lambda group: float(str(group[rank])), reverse=True)
    counts = {group["group"]: group["count"] for group in totals[:max_groups]}
    return {"groups": totals[:max_groups], "group_count": len(totals), "counts": counts}


def _group_entry(key: str, values: list[object], has_measure: bool) -> dict[str, object]:
    numbers = [value for value in values if is_number(value)]
    figures = {"sum": _rounded_total(numbers), "mean": _mean_of(numbers)} if has_measure else {}
    return {"group": key, "count": len(values), **figures}


def _column_values(rows: list[dict[str, object]], column: str) -> list[object]:
    require_columns(rows, [column])
    return [row.get(column) for row in rows]


def _rounded_total(numbers: list[int | float]) -> int | float:
    result = total(numbers)
    return result if isinstance(result, int) else round(result, 6)


def _mean_of(numbers: list[int | float]) -> float | None:
    return round(_rounded_total(numbers) / len(numbers), 6) if numbers else None
