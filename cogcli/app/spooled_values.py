"""JSON values that need not fit memory: explanations of a million calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Final
from weakref import finalize

import orjson

from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_errors

_IN_MEMORY: Final = 4 * 1024 * 1024


class SpooledValues:
    """JSON objects in order. Above 4 MiB they are in a temporary file without a name."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  # it ends with this object
        finalize(self, self._file.close)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, value: Json) -> None:
        """Add an object. Raise UnusableEnvironment `env.disk`."""
        with disk_errors(Path(gettempdir())):
            self._file.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
        self._count += 1

    def __iter__(self) -> Iterator[Json]:
        """Yield the objects. Nothing may be appended any more. Raise UnusableEnvironment `env.disk`."""
        with disk_errors(Path(gettempdir())):
            self._file.seek(0)
            lines = iter(self._file)
        for line in lines:
            yield orjson.loads(line)
