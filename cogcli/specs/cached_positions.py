"""Positions in spec files that came from the compiled cache: looked up at the first problem of a file, then cached, so
that a run with a known warning parses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.base.canonical import digest
from cogcli.specs.cache import Compiled, CompiledCache

if TYPE_CHECKING:
    from cogcli.base.problems import KeyPath
    from cogcli.base.yaml.positions import Places

Within = tuple[str, int] | None
"""A text and an offset in it, for a problem in the middle of a value."""
_KIND: Final = "positions"


class FilePlaces(dict[str, "Places"]):
    """The positions in files by shown name; a file is parsed at its first lookup.

    `cache` is the one that the files came from.
    """

    def __init__(self, cache: CompiledCache | None = None) -> None:
        super().__init__()
        self.cache = cache
        self._files: dict[str, tuple[str, str]] = {}
        self._positions: dict[str, dict[str, Any]] = {}
        self._news: set[str] = set()

    def note(self, file: str, path: str, digest: str) -> None:
        """Record a shown file's real path, and the digest of the bytes that were loaded."""
        self._files[file] = (path, digest)

    def path(self, file: str) -> str:
        """The real path of a shown file; empty where it is not known."""
        return self._files.get(file, ("", ""))[0]

    def base(self, file: str) -> str:
        """The directory that a shown file's name is relative to, with a final slash; empty where it is not known."""
        path, _ = self._files.get(file, ("", ""))
        return path[: -len(file)] if path.endswith(f"/{file}") else ""

    def position(
        self, file: str, path: KeyPath, *, key: bool, within: Within = None
    ) -> tuple[int, int]:
        """Line and column of the value or key at a path, or of a place in the text of the value."""
        known: dict[str, Any] | None = None
        loaded = self._files.get(file, ("", ""))[1]
        if self.cache is not None and loaded:
            if file not in self._positions:
                cached = self.cache.get(_KIND, loaded)
                self._positions[file] = cached.raw if cached else {}
            known = self._positions[file]
        name = f"{'key' if key else 'value'}{''.join(f'/{part}' for part in path)}"
        if within:
            name += f"@{within[1]}"
        if known is not None and name in known:
            line, column = known[name]
            return line, column
        span = self[file].key(path) if key else self[file].value(path)
        column = span.column_of(*within) if within else span.column
        if known is not None:
            known[name] = [span.line, column]
            self._news.add(file)
        return span.line, column

    def flush(self) -> None:
        """Write the new positions to the cache."""
        if self.cache:
            for file in self._news & self._files.keys():
                self.cache.keep(_KIND, self._files[file][1], Compiled(self._positions[file], []))
            self.cache.flush()
        self._news.clear()

    def __missing__(self, file: str) -> Places:
        from cogcli.base.yaml import reader

        path, loaded = self._files.get(file, (file, ""))
        data, parsed = reader.read_file(path, file=file)
        if digest(data) != loaded:  # changed since: good enough to point at, not to remember
            self._files.pop(file, None)
        self[file] = parsed.places
        return parsed.places
