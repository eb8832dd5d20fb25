"""Reads Excel and Parquet files from their bytes, in a confined process, and writes Excel files."""

from __future__ import annotations

import datetime
import io
import itertools
import re
from typing import TYPE_CHECKING, Any, BinaryIO

from cogcli.official.table import first_problems, truncation_problem, unique_names
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable
    from zipfile import ZipFile

_MAX_UNPACKED = 100 * 1024 * 1024
_MAX_RATIO = 100
_MAX_COLUMNS = 1_000
_MAX_CELL = 32_767
_MAX_SHEET_ROWS = 1_048_576
_SAFE_INTEGER = 2**53 - 1
_BLOCK = 1024 * 1024
_WITHOUT_VALUE = re.compile(rb"</f>\s*(?:<v>\s*</v>|<v\s*/>)?\s*</c>|<f[^>]{0,200}/>\s*</c>")
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def read_workbook(
    sheet_name: str | None, corners: list[int] | None, max_rows: int, content: bytes = b""
) -> dict[str, object]:
    """Return the rows of one sheet, by default the first. Raise Refused."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(io.BytesIO(content)) as archive:
            problems = _check_parts(archive)
            return _read_rows(io.BytesIO(content), sheet_name, corners, max_rows, problems)
    except (BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise Refused("bad-data", f"not a readable workbook ({error!s:.100})") from None


def _check_parts(archive: ZipFile) -> list[dict[str, Any]]:
    """Check all parts of the archive before any is parsed. Return the problems of cells. Raise
    Refused.
    """
    parts = archive.infolist()
    unpacked, packed = (
        sum(part.file_size for part in parts),
        sum(part.compress_size for part in parts),
    )
    if unpacked > _MAX_UNPACKED or unpacked > _MAX_RATIO * max(packed, 1):
        raise Refused(
            "too-large",
            f"it unpacks to {unpacked // 1024 // 1024} MB, {unpacked // max(packed, 1)} times its size",
        )
    problems = []
    for part in parts:
        name = part.filename.lower()
        if name.startswith("xl/externallinks/") or name == "xl/connections.xml":
            raise Refused(
                "unsupported", "it refers to other files", "save it with its values alone"
            )
        if name.endswith((".xml", ".rels")):
            with archive.open(part) as file:
                lacks = _lacks_values(file)
            if lacks and name.startswith("xl/worksheets/"):
                message = "formulas without a stored value are empty; open and save the file in a spreadsheet program"
                problems.append({"line": 0, "message": message})
    return problems


def _lacks_values(file: Any) -> bool:
    """Return whether a part has formulas without stored values. Raise Refused for entity
    declarations.
    """
    tail, lacks, is_first = b"", False, True
    while block := file.read(_BLOCK):
        if is_first and (block[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in block[:4]):
            raise Refused("unsupported", "a part of it is not UTF-8")
        window = tail + block
        if b"<!DOCTYPE" in window or b"<!ENTITY" in window:
            raise Refused("unsupported", "a part of it declares entities of its own")
        lacks = lacks or bool(_WITHOUT_VALUE.search(window))
        tail, is_first = block[-400:], False
    return lacks


def _read_rows(
    file: BinaryIO,
    sheet_name: str | None,
    corners: list[int] | None,
    max_rows: int,
    problems: list[Any],
) -> dict[str, object]:
    from openpyxl import load_workbook

    book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets or (sheet_name and sheet_name not in sheets):
        raise Refused(
            "bad-data", f"no sheet {sheet_name!r:.60}", f"there are {', '.join(sheets)!s:.200}"
        )
    sheet = sheets[sheet_name] if sheet_name else next(iter(sheets.values()))
    left, top, right, bottom = corners or (1, 1, _MAX_COLUMNS, _MAX_SHEET_ROWS)
    sheet.reset_dimensions()  # what a file says of its size need not be so
    rows = sheet.iter_rows(min_row=top, max_row=bottom, min_col=left, max_col=right)
    filled = (
        (number, cells)
        for number, cells in enumerate(map(_cell_values, rows), top)
        if any(value is not None or is_error for value, is_error in cells)
    )
    rows_to_read = list(itertools.islice(filled, max_rows + 2))
    header = [value for value, _ in rows_to_read[0][1]] if rows_to_read else []
    while header and header[-1] is None:
        header.pop()
    if corners:
        header += [None] * (right - left + 1 - len(header))
    names = unique_names(["" if value is None else str(value) for value in header])
    table = []
    for number, cells in rows_to_read[1 : max_rows + 1]:
        table.append({name: _value_at(cells, index) for index, name in enumerate(names)})
        has_more = any(value is not None for value, _ in cells[len(names) :])
        if has_more:
            problems.append(
                {"line": number, "message": f"more cells than the {len(names)} columns"}
            )
        if any(is_error for _, is_error in cells):
            problems.append(
                {"line": number, "message": "a cell holds an error of the spreadsheet program"}
            )
    return {
        "table": table,
        "headers": names,
        "row_count": len(table),
        "sheets": list(sheets),
        "problems": first_problems(problems)
        + [truncation_problem(number) for number, _ in rows_to_read[max_rows + 1 :]],
        "truncated": len(rows_to_read) > max_rows + 1,
    }


def _cell_values(cells: Iterable[Any]) -> list[tuple[object, bool]]:
    """Return (value, whether it is an error) of each cell."""
    return [
        (None, True) if cell.data_type == "e" else (_as_json(cell.value), False) for cell in cells
    ]


def _value_at(cells: list[tuple[object, bool]], index: int) -> object:
    return cells[index][0] if index < len(cells) else None


def _as_json(value: object) -> object:
    if isinstance(value, datetime.datetime):
        is_day = value.time() == datetime.time() and value.tzinfo is None
        return value.date().isoformat() if is_day else value.isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, bytes):
        raise Refused("unsupported", "it holds bytes")
    return str(value)


def read_parquet(max_rows: int, content: bytes = b"") -> dict[str, object]:
    """Return the rows of a Parquet file. Raise Refused."""
    import polars

    try:
        frame = polars.read_parquet(io.BytesIO(content), n_rows=max_rows + 1)
    except polars.exceptions.PolarsError as error:
        raise Refused("bad-data", f"not a readable Parquet file ({error!s:.100})") from None
    rows = [
        {name: _as_json(value) for name, value in row.items()}
        for row in frame[:max_rows].iter_rows(named=True)
    ]
    return {
        "table": rows,
        "headers": frame.columns,
        "row_count": len(rows),
        "problems": [truncation_problem(max_rows + 1)] if len(frame) > max_rows else [],
        "truncated": len(frame) > max_rows,
    }


def as_workbook(grid: list[list[Any]], sheet_name: str) -> bytes:
    """Return the bytes of an Excel file with one sheet. Texts stay texts, even if they begin with
    `=`.

    Raise Refused for values that do not fit.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    if len(grid) > _MAX_SHEET_ROWS or len(grid[0]) > 16_384:
        raise Refused("too-large", "a sheet has at most 1,048,576 rows and 16,384 columns")
    if not 0 < len(sheet_name) <= 31 or re.search(r"[\[\]:*?/\\]|^'|'$", sheet_name):
        raise Refused("bad-data", f"{sheet_name!r:.60} is not a name of a sheet")
    for number, row in enumerate(grid):
        if any(
            isinstance(value, str) and (_UNFIT.search(value) or len(value) > _MAX_CELL)
            for value in row
        ):
            raise Refused(
                "bad-data",
                f"row {number}: a text of control characters, or over {_MAX_CELL:,} long",
            )
    book = Workbook(write_only=True)
    sheet = book.create_sheet(sheet_name)
    for row in grid:
        cells = [WriteOnlyCell(sheet, value=value) for value in row]
        for cell, value in zip(cells, row, strict=True):
            if isinstance(value, str):
                cell.data_type = "s"
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()
