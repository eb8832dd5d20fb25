"""Positions in spec files, kept in the compiled cache.

The positions of a file are computed for its first problem, then cached. So a run with a known warning parses no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.base.canonical import digest
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, SpecCeilings
from cogcli.specs.cache import CompiledCache, CompiledFile

if TYPE_CHECKING:
    from cogcli.base.problems import KeyPath
    from cogcli.base.yaml.positions import YamlPositions

Within = tuple[str, int] | None
"""A text and an offset in it, for a problem inside a value."""
_KIND: Final = "positions"


class FilePositions(dict[str, "YamlPositions"]):
    """The positions in files, by display path. A file is parsed when its positions are first needed.

    `cache` is the cache that the files were loaded from, `ceilings` limits the files.
    """

    def __init__(
        self, cache: CompiledCache | None = None, ceilings: SpecCeilings = DEFAULT_CEILINGS
    ) -> None:
        super().__init__()
        self.cache = cache
        self._ceilings = ceilings
        self._files: dict[str, tuple[str, str]] = {}
        self._positions: dict[str, Json] = {}
        self._news: set[str] = set()

    def note(self, file: str, path: str, digest: str) -> None:
        """Record the real path of a file with this display path, and the digest of its loaded bytes."""
        self._files[file] = (path, digest)

    def path(self, file: str) -> str:
        """Return the real path for a display path, or an empty string if it is unknown."""
        return self._files.get(file, ("", ""))[0]

    def base(self, file: str) -> str:
        """Return the directory that a display path is relative to, with a trailing slash. Empty if it is unknown."""
        path, _ = self._files.get(file, ("", ""))
        return path[: -len(file)] if path.endswith(f"/{file}") else ""

    def of(self, file: str) -> PositionsOfFile | None:
        """Return the positions in one file, or None if they are unknown."""
        return PositionsOfFile(self, file)

    def position(
        self, file: str, path: KeyPath, *, key: bool, within: Within = None
    ) -> tuple[int, int]:
        """Return the line and column of the value or key at a path, or of an offset in the value's text."""
        known = self._known_positions(file)
        name = f"{'key' if key else 'value'}{''.join(f'/{part}' for part in path)}"
        if within:
            name += f"@{within[1]}"
        if known is not None and name in known:
            line, column = known[name]
            return line, column
        line, column = self[file].position(path, key=key, within=within)
        if known is not None:
            known[name] = [line, column]
            self._news.add(file)
        return line, column

    def _known_positions(self, file: str) -> Json | None:
        """Return the cached positions in a file, or None if the file is not cached."""
        loaded_digest = self._files.get(file, ("", ""))[1]
        if self.cache is None or not loaded_digest:
            return None
        if file not in self._positions:
            cached = self.cache.get(_KIND, loaded_digest)
            self._positions[file] = cached.raw if cached else {}
        return self._positions[file]

    def flush(self) -> None:
        """Write the new positions to the cache."""
        if self.cache:
            for file in self._news & self._files.keys():
                self.cache.keep(
                    _KIND, self._files[file][1], CompiledFile(self._positions[file], [])
                )
            self.cache.flush()
        self._news.clear()

    def __missing__(self, file: str) -> YamlPositions:
        """Parse a file whose positions are needed for the first time."""
        from cogcli.base.yaml import reader

        path, loaded_digest = self._files.get(file, (file, ""))
        limits = self._ceilings.yaml
        data, parsed = reader.read_file(path, file=file, limits=limits)
        if (
            digest(data) != loaded_digest
        ):  # the file has changed: its positions are shown but not cached
            self._files.pop(file, None)
        self[file] = parsed.places
        return parsed.places


class PositionsOfFile(NamedTuple):
    """The positions in one of several files."""

    places: FilePositions
    file: str

    def position(self, path: KeyPath, *, key: bool, within: Within = None) -> tuple[int, int]:
        """Return the line and column of the value or key at a path, or of an offset in the value's text."""
        return self.places.position(self.file, path, key=key, within=within)

    def declares(self, path: KeyPath) -> bool:
        """Return whether the file contains the last key of a path."""
        return self.places[self.file].declares(path)


class UnknownPositions(FilePositions):
    """The positions of a catalog that was not read from files. All are unknown."""

    def of(self, file: str) -> None:
        """Return None."""


NO_PLACES: Final = UnknownPositions()
