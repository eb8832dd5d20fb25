"""The lines of an input: read in blocks, parsed and checked before the first one runs
(docs/reference/batch.md#input).

The input is read twice. The first pass checks each line and hashes each block of 10,000 lines. The second pass compares
each block with its hash before its lines are sent, so that what runs is what was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import BinaryIO, Final

from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile, open_regular
from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.value_types import Json
from cogcli.run.file_inputs import assume_files
from cogcli.run.prepare import check_inputs

BLOCK: Final = 10_000
"""Lines of which one hash is kept."""
MOST_BYTES: Final = 1 << 20
"""Bytes of a line."""
MOST_PROBLEMS: Final = 100
_NODES: Final = 1_000_000
_KEPT_BYTES: Final = 8 << 20
"""Bytes of a block that stays in memory while it is hashed. A larger block is read a second time."""
_LARGEST: Final = 1 << 46


def parse_line(data: bytes) -> Json:
    """Return the input object of a line. Raise UsageError."""
    if not data.strip():
        raise UsageError("input.empty", "the line is blank, expected an object of inputs")
    try:
        value = loads(data, max_bytes=MOST_BYTES, max_nodes=_NODES)
    except InvalidJson as error:
        code = "input.size" if error.code in ("json.size", "json.nodes") else "input.json"
        raise UsageError(code, error.message, hint=error.hint, column=error.column) from error
    if not isinstance(value, dict):
        what = f"expected an object of inputs, found {preview(value)}"
        raise UsageError("input.type", what)
    return value


def find_problems(data: bytes, fields: Fields) -> list[Problem]:
    """Return the problems of a line: it is not JSON, or its object does not fit the inputs of the skill."""
    try:
        value = parse_line(data)
    except CogcliError as error:
        return [Problem(error.code, "E", "", 0, error.column, "", error.message, error.hint)]
    return check_inputs(fields, assume_files(fields, value))[1]


class InputDigest(NamedTuple):
    """The result of the first pass: the size and hash of the lines, and of each block of lines."""

    lines: int
    bytes: int
    sha256: str
    blocks: list[str]


def open_input(path: str) -> BinaryIO:
    """Open a file of lines. Raise UsageError `input.file`."""
    try:
        return open_regular(path, limit=_LARGEST)
    except UnreadableFile as error:
        raise UsageError("input.file", f"`{path}` {error.message}") from error


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file without their newlines. A line above the limit is cut one byte after it."""
    while line := file.readline(MOST_BYTES + 2):
        if len(line) > MOST_BYTES + 1 and not line.endswith(b"\n"):
            _skip_line(file)
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _skip_line(file: BinaryIO) -> None:
    """Read to the end of the present line."""
    while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


class InputLineCheck:
    """Checks and hashes the lines of an input. With `stops` it raises after the problems; otherwise it counts them."""

    def __init__(
        self,
        fields: Fields,
        shown: str,
        *,
        stops: bool,
        header_lines: int = 0,
        check: Callable[[int, bytes], None] | None = None,
    ) -> None:
        self._fields = fields
        self._shown = shown
        self._stops = stops
        self._header_lines = header_lines
        self._check = check
        self.invalid = 0
        """The number of lines with problems."""

    def read(self, lines: Iterator[bytes]) -> InputDigest:
        """Return the digest of the lines. Raise ProblemsFound with the first 100 problems."""
        whole, block = sha256(), sha256()
        problems: list[Problem] = []
        blocks: list[str] = []
        count = size = 0
        for line in lines:
            count += 1
            size += len(line) + 1
            if self._check is not None:
                self._check(count, line)
            text = line + b"\n"
            whole.update(text)
            block.update(text)
            if count % BLOCK == 0:
                blocks.append(block.hexdigest())
                block = sha256()
            if found := find_problems(line, self._fields):
                self.invalid += 1
                problems += self._with_places(found, count)
            if len(problems) >= MOST_PROBLEMS and self._stops:
                break
        if problems and self._stops:
            raise ProblemsFound(problems[:MOST_PROBLEMS])
        if not count:
            what = f"`{self._shown}` has no lines, expected one object of inputs per line"
            raise UsageError("input.empty", what)
        if count % BLOCK:
            blocks.append(block.hexdigest())
        return InputDigest(count, size, whole.hexdigest(), blocks)

    def _with_places(self, problems: list[Problem], line: int) -> list[Problem]:
        """Return the problems with file and line. Empty if the line may run and end as a failed line."""
        if not self._stops:
            return []
        place = line + self._header_lines
        return [problem._replace(file=self._shown, line=place) for problem in problems]


def read_checked_lines(
    open_file: Callable[[], BinaryIO], sums: list[str], batch_id: str
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of the second pass with their numbers. Raise UnusableEnvironment `batch.input-changed`."""
    with open_file() as file:
        lines = read_lines(file)
        number = 0
        for expected in sums:
            start = file.tell()
            kept = _hash_block(lines, expected, batch_id)
            if kept is None:
                end = file.tell()
                file.seek(start)
                kept = _read_until(file, end)
            for line in kept:
                number += 1
                yield number, line
        if next(lines, None) is not None:
            raise changed_input_error(batch_id, "it has more lines")


def _hash_block(lines: Iterator[bytes], expected: str, batch_id: str) -> Iterator[bytes] | None:
    """Return the lines of the next block, or None if they are too long to be kept. Raise UnusableEnvironment."""
    block, kept, size = sha256(), [], 0
    for _, line in zip(range(BLOCK), lines, strict=False):
        block.update(line + b"\n")
        size += len(line)
        if size <= _KEPT_BYTES:
            kept.append(line)
    if block.hexdigest() != expected:
        raise changed_input_error(batch_id, "its lines differ from those that were checked")
    return iter(kept) if size <= _KEPT_BYTES else None


def _read_until(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Yield the lines that start before the byte offset `end`."""
    lines = read_lines(file)
    while file.tell() < end and (line := next(lines, None)) is not None:
        yield line


def changed_input_error(batch_id: str, how: str) -> UnusableEnvironment:
    """Return the error for an input that was changed after it was checked."""
    return UnusableEnvironment(
        "batch.input-changed",
        f"the input of `{batch_id}` was changed: {how}",
        hint="put the earlier file back, or run the new one under another -o or --batch-name",
    )
