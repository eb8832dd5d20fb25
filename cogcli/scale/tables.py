"""Tables as input and output: CSV and Parquet become canonical JSON lines, and rows of results become tables
(docs/reference/batch.md#tables).
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

from cogcli.base.canonical import canonical
from cogcli.base.errors import ServiceResolutionError, UsageError
from cogcli.base.extras import install_line, missing_module
from cogcli.base.problems import did_you_mean, suggestion_hint
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_refusal
from cogcli.run.given_inputs import InputText, convert_texts
from cogcli.scale.input_lines import MOST_BYTES, open_input
from cogcli.scale.output import ResultRow, create_temporary, read_rows, removed_on_error, rows_error

if TYPE_CHECKING:
    import polars

CSV: Final = ".csv"
PARQUET: Final = ".parquet"
COLUMNS: Final = ("line", "status", "exit_code", "episode_id")
_ERROR: Final = ("error_code", "error_message")
_BATCH_ROWS: Final = 10_000


def kind_of_file(path: str) -> str:
    """Return `.csv` or `.parquet` for a table; empty for JSON lines."""
    ending = os.path.splitext(path)[1].lower()
    return ending if ending in (CSV, PARQUET) else ""


def require_reader(path: str) -> None:
    """Raise ServiceResolutionError `env.extra` if a library for this kind of table is not installed."""
    if kind_of_file(path) == PARQUET and missing_module("parquet"):
        raise ServiceResolutionError(
            "env.extra",
            f"`{path}`: Parquet needs the extra `parquet`",
            hint=install_line("parquet"),
        )


# -- input -------------------------------------------------------------------------------------------------------------


def read_table(path: str, shown: str, fields: Fields) -> Iterator[bytes]:
    """Yield the rows of a table as canonical JSON lines. Raise UsageError for a table that cannot be read."""
    if kind_of_file(path) == CSV:
        return _read_csv(path, shown, fields)
    return _read_parquet(path, shown, fields)


def _read_csv(path: str, shown: str, fields: Fields) -> Iterator[bytes]:
    with open_input(path) as file, _long_fields():
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, strict=True)
        try:
            names = next(reader, [])
            _require_columns(names, shown, fields)
            for cells in reader:
                if len(cells) > len(names):
                    raise _table_error(shown, "has more cells than the header", reader.line_num)
                yield canonical(_object_of_cells(names, cells, fields))
        except csv.Error as error:
            raise _table_error(shown, f"is not CSV: {error}", reader.line_num) from error
        except UnicodeDecodeError as error:
            text_error = f"`{shown}` is not UTF-8: byte 0x{error.object[error.start]:02X}"
            raise UsageError("input.encoding", text_error, hint="save it as UTF-8") from error


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow CSV cells as long as an input line within the `with` block."""
    before = csv.field_size_limit(MOST_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _object_of_cells(names: list[str], cells: list[str], fields: Fields) -> Json:
    """Return a row as inputs of the declared types. Empty cells are left out. A cell of a wrong type is returned as
    text, so that the check of the line reports it.
    """
    given = {name: cell for name, cell in zip(names, cells, strict=False) if cell}
    texts = {name: InputText(cell, name) for name, cell in given.items()}
    converted, _ = convert_texts(texts, fields)
    return {**given, **converted}


def _require_columns(names: list[str], shown: str, fields: Fields) -> None:
    """Raise UsageError for a header with a column that is no input, or with a repeated column."""
    if not names:
        raise UsageError("input.empty", f"`{shown}` is empty, expected a header with input names")
    for name in names:
        if name not in fields:
            near = suggestion_hint(did_you_mean(name, fields))
            hint = near or f"the inputs are {', '.join(fields)}"
            text = f"column `{name[:60]}` is no input of the skill"
            raise UsageError("input.unknown", text, hint=hint, file=shown, line=1)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        text = f"column `{twice[0]}` is there twice"
        raise UsageError("input.file", text, file=shown, line=1)


def _table_error(shown: str, what: str, line: int = 0) -> UsageError:
    return UsageError("input.file", f"`{shown}` {what}", file=shown, line=line)


def _read_parquet(path: str, shown: str, fields: Fields) -> Iterator[bytes]:
    import polars

    try:
        frame = polars.scan_parquet(path, glob=False)
        _require_columns(list(frame.collect_schema().names()), shown, fields)
        for start in _slice_starts(frame):
            for row in frame.slice(start, _BATCH_ROWS).collect().iter_rows(named=True):
                yield _line_of_row(row, shown)
    except (polars.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise _table_error(shown, f"is not Parquet: {reason}") from error


def _slice_starts(frame: polars.LazyFrame) -> range:
    import polars

    count = frame.select(polars.len()).collect().item()
    return range(0, int(count), _BATCH_ROWS)


def _line_of_row(row: dict[str, Any], shown: str) -> bytes:
    """Return a row as canonical JSON. Null and NaN are left out; dates are RFC 3339, decimals are text."""
    given = {name: value for name, value in row.items() if not _is_absent(value)}
    try:
        return orjson.dumps(given, default=_plain_value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise _table_error(shown, f"has a value that JSON cannot hold: {error}") from error


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _plain_value(value: object) -> str:
    """Return a value that JSON has no type for as text. Raise TypeError for bytes."""
    if isinstance(value, bytes):
        raise TypeError("bytes")
    return str(value)


# -- output ------------------------------------------------------------------------------------------------------------


def write_table(source: str, output: str) -> None:
    """Write the rows of a result file as a table, which replaces `output`. Raise UnusableEnvironment `env.disk`."""
    names = _output_names(source)
    write = _write_csv if kind_of_file(output) == CSV else _write_parquet
    try:
        temporary, handle = create_temporary(output)
        with (
            removed_on_error(temporary),
            os.fdopen(handle, "w", encoding="utf-8", newline="") as file,
        ):
            write(source, file, names)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, output)
    except OSError as error:
        raise disk_refusal(output, error) from error


def _output_names(source: str) -> list[str]:
    """Return the names of all outputs of a result file, in the order of their first rows."""
    names: dict[str, None] = {}
    for _, row in read_rows(source):
        names.update(dict.fromkeys(orjson.loads(row)["outputs"] or {}))
    return list(names)


def _cells_of_row(row: bytes, names: list[str]) -> list[object]:
    """Return the cells of a row: its members, the code and message of its error, and its outputs."""
    value = orjson.loads(row)
    outputs, error = value["outputs"] or {}, read_record(ResultRow, value).error
    return [
        *(value[name] for name in COLUMNS),
        error.code,
        error.message,
        *(_cell_of_value(outputs.get(name)) for name in names),
    ]


def _cell_of_value(value: object) -> object:
    """Return a value as a cell. Objects and lists become JSON; other values are unchanged."""
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value


def _column_names(names: list[str]) -> list[str]:
    return [*COLUMNS, *_ERROR, *(f"outputs.{name}" for name in names)]


def _write_csv(source: str, file: TextIO, names: list[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_column_names(names))
    for _, row in read_rows(source):
        writer.writerow([_csv_text(cell) for cell in _cells_of_row(row, names)])


def _csv_text(cell: object) -> object:
    return ("true" if cell else "false") if isinstance(cell, bool) else cell


def _write_parquet(source: str, file: TextIO, names: list[str]) -> None:
    import polars

    rows = [_cells_of_row(row, names) for _, row in read_rows(source)]
    columns = {
        name: _unify_types([row[place] for row in rows])
        for place, name in enumerate(_column_names(names))
    }
    polars.DataFrame(columns).write_parquet(file.buffer)


def _unify_types(values: list[object]) -> list[object]:
    """Return the values of a column with one type. A column of several types becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [float(value) if isinstance(value, int) else value for value in values]
    if len(kinds) > 1:
        return [None if value is None else orjson.dumps(value).decode() for value in values]
    return values


# -- reading an output again -------------------------------------------------------------------------------------------


def read_cells(path: str) -> Iterator[tuple[object, ...]]:
    """Yield the header of a table that a batch wrote, then its rows. CSV cells are text. Raise UnusableEnvironment
    `batch.rows` for an invalid table.
    """
    reader = _read_csv_cells if kind_of_file(path) == CSV else _read_parquet_cells
    try:
        yield from reader(path)
    except (OSError, ValueError, csv.Error) as error:
        raise rows_error(path, f"cannot be read as a table: {str(error)[:200]}") from error


def _read_csv_cells(path: str) -> Iterator[tuple[object, ...]]:
    with open(path, encoding="utf-8", newline="") as file:
        yield from map(tuple, csv.reader(file))


def _read_parquet_cells(path: str) -> Iterator[tuple[object, ...]]:
    import polars

    try:
        frame = polars.scan_parquet(path, glob=False)
        yield tuple(frame.collect_schema().names())
        for start in _slice_starts(frame):
            yield from frame.slice(start, _BATCH_ROWS).collect().iter_rows()
    except polars.exceptions.PolarsError as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def line_of_cells(cells: tuple[object, ...]) -> int:
    """Return the line number of a row; 0 if the row has none."""
    text = str(cells[0]) if cells else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0
