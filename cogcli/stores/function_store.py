"""A store that a Python function keeps (docs/reference/sdk.md#stores)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cogcli.base.errors import EnvironmentRefusal, ServiceResolutionError
from cogcli.stores.database import Database


@contextmanager
def open_database(
    directory: str, name: str, versions: Sequence[Sequence[str]]
) -> Iterator[Database]:
    """A file with the tables of these versions, closed at the end. Raises ServiceResolutionError with the code of
    whatever `Database` refuses, at opening and inside."""
    try:
        database = Database(Path(directory, name), versions)
        try:
            yield database
        finally:
            database.close()
    except EnvironmentRefusal as error:
        raise ServiceResolutionError(
            error.code, error.message, hint=error.hint, left=False
        ) from error
