"""A store for the data of a Python function (docs/reference/sdk.md#stores)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cogcli.base.errors import ServiceResolutionError, UnusableEnvironment
from cogcli.stores.database import Database


@contextmanager
def open_database(
    directory: str, name: str, versions: Sequence[Sequence[str]]
) -> Iterator[Database]:
    """Open a file with the tables of these versions, and close it at the end of the `with` block.

    Raise ServiceResolutionError with the code of any refusal by `Database`, on opening and in the block.
    """
    try:
        database = Database(Path(directory, name), versions)
        try:
            yield database
        finally:
            database.close()
    except UnusableEnvironment as error:
        raise ServiceResolutionError(
            error.code, error.message, hint=error.hint, left=False
        ) from error
