"""Tables in files: CSV, Excel and Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from itertools import islice
from typing import Any

from cogcli.official.confined import run_confined_function
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_start, read_whole, write_whole
from cogcli.official.table import (
    csv_lines,
    delimiter_of,
    first_problems,
    table_of,
    truncation_problem,
)
from cogcli.official.values import Record, columns_of, records_of, require_columns
from cogcli.sdk import Refused

_MAX_CSV = 16 * 1024 * 1024
_MAX_FILE = 64 * 1024 * 1024
_MAX_ROWS = 50_000
_MAX_COLUMNS = 16_384
_CELLS = re.compile(
    r"([A-Z]{1,3})([1-9][0-9]{0,6})(?::([A-Z]{1,3})([1-9][0-9]{0,6}))?", re.IGNORECASE
)
# What a spreadsheet program takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def read_sheet(
    path: str, sheet_name: str | None = None, range: str | None = None
) -> dict[str, object]:
    """Return the rows of a CSV, TSV, Excel or Parquet file as objects, named by the first row.

    A `range` such as `B2:D9` reads these cells only. CSV columns get one type each, as by
    `read_csv`. `problems` lists uneven and unreadable rows by line. After 50,000 rows or 16 MiB of
    text `truncated` is true. Raise Refused for another kind of file, and for one that is damaged,
    encrypted, unpacks to more than 100 MB, or refers to other files.
    """
    kind = os.path.splitext(path)[1].lower()
    corners = _parse_range(range) if range else None
    if kind in (".csv", ".tsv", ".txt"):
        if sheet_name:
            raise Refused("unsupported", f"{name_of(path)}: a text file has no sheets")
        return _read_csv_file(path, "\t" if kind == ".tsv" else None, corners)
    if kind not in (".xlsx", ".xlsm", ".parquet"):
        raise Refused(
            "unsupported", f"{name_of(path)}: no table", "there are .csv, .tsv, .xlsx and .parquet"
        )
    content, about = read_whole(path, _MAX_FILE), f"{name_of(path)}: "
    arguments: dict[str, Any] = {"content": content, "about": about, "max_rows": _MAX_ROWS}
    if kind == ".parquet":
        if sheet_name or range:
            raise Refused("unsupported", f"{about}a Parquet file has neither sheets nor cells")
        return run_confined_function("sheet_files:read_parquet", **arguments)
    arguments |= {"sheet_name": sheet_name, "corners": corners}
    return run_confined_function("sheet_files:read_workbook", **arguments)


def _parse_range(cells: str) -> list[int]:
    """Return first column, first row, last column and last row, counted from 1."""
    match = _CELLS.fullmatch(cells.replace("$", "").strip())
    if not match:
        raise Refused("bad-data", f"`range` is {cells!r:.40}, expected one like B2:D9")
    left, top = _column_number(match[1]), int(match[2])
    right, bottom = (_column_number(match[3]), int(match[4])) if match[3] else (left, top)
    if left > right or top > bottom:
        raise Refused("bad-data", f"`range` {cells!r:.40} ends before it begins")
    return [left, top, right, bottom]


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _read_csv_file(
    path: str, delimiter: str | None, corners: list[int] | None
) -> dict[str, object]:
    content, is_longer = read_start(path, _MAX_CSV)
    if is_longer:
        content = content[: content.rfind(b"\n") + 1]
        if not content:
            raise Refused(
                "too-large",
                f"{name_of(path)}: line 1 is longer than {_MAX_CSV // 1024 // 1024} MiB",
            )
    text, problems = _decode_lines(content, name_of(path))
    mark = delimiter or delimiter_of(text)
    left, top, right, bottom = corners or [1, 1, _MAX_COLUMNS, _MAX_ROWS + 2]
    all_lines = islice(
        csv_lines(text, mark, keeps_empty=bool(corners), is_truncated=is_longer),
        top - 1,
        min(bottom, top + _MAX_ROWS + 1),
    )
    lines = [(number, cells[left - 1 : right]) for number, cells in all_lines]
    lines = [(number, cells) for number, cells in lines if cells]
    table: Any = table_of(lines, True, _MAX_ROWS)
    problems += table["problems"]
    if is_longer and not corners and not table["truncated"]:
        problems.append(truncation_problem(text.count("\n") + 1))
    return {
        "table": table["rows"],
        "headers": [column["name"] for column in table["columns"]],
        "row_count": table["row_count"],
        "problems": sorted(problems, key=lambda problem: problem["line"]),
        "truncated": table["truncated"] or (is_longer and not corners),
    }


def _decode_lines(content: bytes, name: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of UTF-8 bytes, with problems. A line that is not UTF-8 becomes empty and is
    reported.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode(), []
    except UnicodeDecodeError:
        pass
    lines, problems = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError as error:
            if number == 1:
                hint = "save it as UTF-8"
                raise Refused("bad-data", f"{name}: line 1: not UTF-8 text", hint) from None
            lines.append("")
            message = f"byte {error.start} is not UTF-8 text; the line is left out"
            problems.append({"line": number, "message": message})
    return "\n".join(lines), first_problems(problems)


def write_sheet(
    path: str, table: list[Record], headers: list[str] | None = None, sheet_name: str | None = None
) -> dict[str, object]:
    """Write rows as a CSV, TSV or Excel file, atomically. An existing file is replaced.

    `headers` chooses columns and their order. A text that could be read as a formula stays text:
    CSV gets an apostrophe before it. Lists and objects are written as JSON. Raise Refused for
    another kind of file, a column that no row has, and values that a cell cannot hold.
    """
    kind = os.path.splitext(path)[1].lower()
    rows = records_of(table, "table")
    require_columns(rows, headers or ())
    names = list(headers) if headers else columns_of(rows)
    grid = [[_cell_value(row.get(name)) for name in names] for row in rows]
    if kind in (".csv", ".tsv"):
        if sheet_name:
            raise Refused("unsupported", f"{name_of(path)}: a text file has no sheets")
        content = _csv_bytes([names, *grid], "\t" if kind == ".tsv" else ",")
    elif kind == ".xlsx":
        from cogcli.official.sheet_files import as_workbook

        content = as_workbook([names, *grid], sheet_name or "Sheet1")
    else:
        raise Refused("unsupported", f"{name_of(path)}: no table", "there are .csv, .tsv and .xlsx")
    write_whole(path, content)
    return {"written": True, "row_count": len(rows), "path": path}


def _cell_value(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _csv_bytes(grid: list[list[Any]], delimiter: str) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    for row in grid:
        writer.writerow([_csv_value(value) for value in row])
    return out.getvalue().encode("utf-8", "replace")


def _csv_value(value: Any) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
