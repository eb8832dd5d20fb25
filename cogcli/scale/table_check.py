"""Whether a table that a batch wrote is the one that follows from its episodes (docs/reference/batch.md#verify).

The rows are made again from the episodes, become a table in the order of the one that exists, and both are compared.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.scale.line_set import LineSet
from cogcli.scale.tables import kind_of_file, line_of_cells, read_cells, write_table

_UNKNOWN: Final = (1 << 64) - 1
"""The place of a row that cannot be made again."""


class RowProblem(NamedTuple):
    """A problem of a table's row. `number` counts rows after the header; 0 stands for the whole table."""

    number: int
    text: str


class TableRows:
    """The expected rows of a table, in an unnamed temporary file, because the rows of a large batch do not fit into
    memory.
    """

    def __init__(self, lines: int) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  # as long as this object
        self._places = array("Q", bytes(8 * (lines + 1)))
        self._known = LineSet()

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def note(self, line: int, row: bytes | None) -> None:
        """Store the expected row of a line, replacing an earlier one. None means that the row cannot be rebuilt."""
        self._known.add(line)
        self._places[line] = _UNKNOWN if row is None else self._file.seek(0, os.SEEK_END)
        if row is not None:
            self._file.write(row)

    def problems(self, table: str) -> Iterator[RowProblem]:
        """Yield the problems of a table. Raise UnusableEnvironment `batch.rows` or `env.disk`."""
        order = array("Q")
        found = False
        for problem in self._check_lines(table, order):
            found = True
            yield problem
        if found or any(self._places[line] == _UNKNOWN for line in order):
            return
        with tempfile.TemporaryDirectory(prefix="cogcli-verify-") as place:
            yield from _compare_rows(table, self._write_expected_table(place, table, order), order)

    def _check_lines(self, table: str, order: array[int]) -> Iterator[RowProblem]:
        """Yield the rows without a line, the duplicate rows and the missing ones. Append the line of each row to
        `order`.
        """
        seen = LineSet()
        rows = read_cells(table)
        next(rows, None)
        for number, cells in enumerate(rows, 1):
            line = line_of_cells(cells)
            if line not in self._known:
                yield RowProblem(number, f"line {line} has a row, and no entry in the ledger")
            elif not seen.add(line):
                yield RowProblem(number, f"line {line} has two rows")
            order.append(line)
        for line in range(1, len(self._places)):
            if line in self._known and line not in seen:
                yield RowProblem(0, f"line {line} has no row")
                return

    def _write_expected_table(self, place: str, table: str, order: array[int]) -> str:
        """Write the expected table into a directory, and return its path."""
        source = os.path.join(place, "rows.jsonl")
        with open(source, "wb") as file:
            for line in order:
                self._file.seek(self._places[line])
                file.write(self._file.readline())
        output = os.path.join(place, f"expected{kind_of_file(table)}")
        write_table(source, output)
        return output


def _compare_rows(table: str, expected: str, order: array[int]) -> Iterator[RowProblem]:
    for number, (cells, wanted) in enumerate(zip_longest(read_cells(table), read_cells(expected))):
        if cells == wanted:
            continue
        if not number:
            yield RowProblem(0, "the columns are not those of the results")
            return
        yield RowProblem(
            number, f"line {order[number - 1]} has a row that differs from its episode"
        )
