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
    """Return the rows of a CSV text as objects, each column with one type for all of its cells.

    Types are integer, number, boolean, date (kept as text) and string; empty cells are null. Without
    `delimiter` it is the commonest of comma, semicolon, tab and bar in the first line. Rows with too few or too
    many cells are filled or cut and told in `problems`, as is where reading ended before the table did. Raises
    Refused for quotes that do not close.
    """
    table = text.removeprefix("\ufeff")
    mark = delimiter or delimiter_of(table)
    lines = list(islice(csv_lines(table, mark), max_rows + 1 + header))
    return table_of(lines, header, max_rows) | {"delimiter": mark}


def delimiter_of(text: str) -> str:
    """Return the commonest of comma, semicolon, tab and bar in the first line, outside of quotes."""
    return max(_DELIMITERS, key=_QUOTED.sub("", text.partition("\n")[0]).count)


def table_of(lines: list[tuple[int, list[str]]], header: bool, max_rows: int) -> dict[str, object]:
    """Typed columns and rows of (line number, cells), as `read_csv` gives them."""
    first = lines.pop(0)[1] if header and lines else []
    names = unique_names(first or [""] * max((len(cells) for _, cells in lines), default=0))
    kept = lines[:max_rows]
    columns = {
        name: _column([_cell(cells, index) for _, cells in kept])
        for index, name in enumerate(names)
    }
    return {
        "columns": [{"name": name, "type": kind} for name, (kind, _) in columns.items()],
        "rows": [
            {name: values[row] for name, (_, values) in columns.items()} for row in range(len(kept))
        ],
        "row_count": len(kept),
        "problems": first_problems(
            {"line": number, "message": f"{len(cells)} cells, expected {len(names)}"}
            for number, cells in kept
            if len(cells) != len(names)
        )
        + [left_out(number) for number, _ in lines[max_rows : max_rows + 1]],
        "truncated": len(lines) > max_rows,
    }


def left_out(line: int) -> dict[str, object]:
    """Return the problem that a table goes on where reading it ended: figures of it are figures of a part."""
    return {"line": line, "message": "the table goes on from here, and the rest is not read"}


def first_problems(found: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return the first hundred problems, and how many there are beyond them at the line of the next one."""
    problems = list(islice(iterator := iter(found), _MAX_PROBLEMS))
    if following := next(iterator, None):
        more = 1 + sum(1 for _ in iterator)
        problems.append(
            {"line": following["line"], "message": f"from here on {more} more such lines"}
        )
    return problems


def csv_lines(
    text: str, delimiter: str, *, empty: bool = False, cut: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of each record, without those that are empty, unless `empty`. Raise Refused
    for quotes that do not close, unless the text is `cut`, and for NUL characters, which no text holds."""
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
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=not cut)
    try:
        before = 0
        for cells in reader:
            if cells or empty:
                yield before + 1, cells
            before = reader.line_num
    except csv.Error as error:
        raise Refused("bad-data", f"CSV line {reader.line_num}: {error}") from None


def unique_names(cells: list[str]) -> list[str]:
    """Return names of columns: numbered where there is none, with a number behind where they repeat. Raise Refused."""
    if len(cells) > _MAX_COLUMNS:
        raise Refused("too-large", f"CSV: {len(cells)} columns; at most {_MAX_COLUMNS} are read")
    names: dict[str, None] = {}
    for position, cell in enumerate(cells, 1):
        name = cell.strip() or f"column_{position}"
        free = (name if n == 1 else f"{name}_{n}" for n in count(1))
        names[next(candidate for candidate in free if candidate not in names)] = None
    return list(names)


def _cell(cells: list[str], index: int) -> str:
    return cells[index].strip() if index < len(cells) else ""


def _column(cells: list[str]) -> tuple[str, list[object]]:
    """Return the narrowest type that fits every filled cell, and the values."""
    filled = [cell for cell in cells if cell]
    for kind, convert in _TYPES.items():
        if filled and all(convert(cell) is not None for cell in filled):
            return kind, [convert(cell) if cell else None for cell in cells]
    return "string", [cell or None for cell in cells]


def _integer(cell: str) -> int | None:
    return int(cell) if _INTEGER.fullmatch(cell) else None


def _number(cell: str) -> float | None:
    return float(cell) if _NUMBER.fullmatch(cell) else None


def _boolean(cell: str) -> bool | None:
    return {"true": True, "false": False}.get(cell.lower())


def _date(cell: str) -> str | None:
    try:
        return date.fromisoformat(cell).isoformat() if len(cell) == 10 else None
    except ValueError:
        return None


_TYPES: dict[str, Callable[[str], object]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}


def summarize_column(rows: list[dict[str, object]], column: str) -> dict[str, object]:
    """Return figures about one column: filled, missing and distinct values, the commonest ones, and for numbers
    sum, mean, median and range; `profile` is all of it with the name.
    """
    values = _values(rows, column)
    present = [value for value in values if value is not None]
    common = Counter(map(str, present)).most_common()
    facts: dict[str, object] = {
        "filled": len(present),
        "missing": len(values) - len(present),
        "distinct": len(common),
    }
    numbers = [value for value in present if is_number(value)]
    if numbers and len(numbers) == len(present):
        facts |= {"sum": _total(numbers), "mean": _mean(numbers), "median": median(numbers)}
        facts |= {"min": min(numbers), "max": max(numbers)}
    top = [{"value": value, "count": n} for value, n in common[:_TOP]]
    return {"facts": facts, "top": top, "profile": {"name": column, **facts, "top": top}}


def total_groups(
    rows: list[dict[str, object]], by: str, measure: str | None = None, max_groups: int = 50
) -> dict[str, object]:
    """Return how many rows each value of the column `by` has, with sum and mean of the numbers in `measure`.

    The largest group comes first, by sum where there is a measure, else by count. `group_count` counts all;
    `counts` has the number of rows by group.
    """
    keys = _values(rows, by)
    measured = _values(rows, measure) if measure else [None] * len(rows)
    groups: dict[str, list[object]] = {}
    for key, value in zip(keys, measured, strict=True):
        groups.setdefault("" if key is None else str(key), []).append(value)
    totals = [_group(key, values, bool(measure)) for key, values in groups.items()]
    rank = "sum" if measure else "count"
    totals.sort(key=lambda group: float(str(group[rank])), reverse=True)
    counts = {group["group"]: group["count"] for group in totals[:max_groups]}
    return {"groups": totals[:max_groups], "group_count": len(totals), "counts": counts}


def _group(key: str, values: list[object], measured: bool) -> dict[str, object]:
    numbers = [value for value in values if is_number(value)]
    figures = {"sum": _total(numbers), "mean": _mean(numbers)} if measured else {}
    return {"group": key, "count": len(values), **figures}


def _values(rows: list[dict[str, object]], column: str) -> list[object]:
    require_columns(rows, [column])
    return [row.get(column) for row in rows]


def _total(numbers: list[int | float]) -> int | float:
    found = total(numbers)
    return found if isinstance(found, int) else round(found, 6)


def _mean(numbers: list[int | float]) -> float | None:
    return round(_total(numbers) / len(numbers), 6) if numbers else None
