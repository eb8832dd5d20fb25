"""Reads a spec file once: its bytes, their digest, and its checked mapping from the cache or the parser."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cogcli.base.canonical import digest, digest_of
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, suggestion
from cogcli.declarations.record import Record
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, SpecCeilings
from cogcli.specs.cache import CompiledCache, CompiledFile, cached_kind
from cogcli.specs.cached_positions import FilePositions
from cogcli.specs.layout import IS_ID
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.unchecked import text_at

if TYPE_CHECKING:
    from cogcli.base.yaml.reader import ParsedYaml
    from cogcli.specs.layout import LayoutFile
    from cogcli.specs.protocol import Protocols


class SpecFile(NamedTuple):
    """The result of reading a spec file.

    `raw` is None if the file has errors; `id` is then the id in its path or content.
    """

    found: LayoutFile
    file: str
    id: str
    digest: str
    raw: Json | None
    problems: list[Problem]


class SpecReader:
    """Reads spec files, each once. Display paths are relative to `base` for files below it."""

    def __init__(
        self,
        *,
        protocols: Protocols,
        cache: CompiledCache | None,
        base: str,
        contents: Mapping[str, bytes] | None = None,
        ceilings: SpecCeilings = DEFAULT_CEILINGS,
    ) -> None:
        self.protocols = protocols
        self.places = FilePositions(cache, ceilings)
        self._ceilings = ceilings
        self._cache = cache
        self._base = base if base.endswith("/") else f"{base}/"
        self._contents = contents or {}
        self._loaded: dict[tuple[str, str], SpecFile] = {}

    def display_path(self, path: str) -> str:
        """Return the path of a file as messages display it."""
        return path[len(self._base) :] if path.startswith(self._base) else path

    def load(self, location: LayoutFile) -> SpecFile:
        """Return the file, checked alone and against its path. For an entry, return only its part of the file."""
        if location.entry:
            return self._load_entry(location)
        key = (location.kind, location.path)
        spec_file = self._loaded.get(key)
        if spec_file is None:
            spec_file = self._loaded[key] = self._load_file(location)
        return spec_file

    def service_entries(self, location: LayoutFile) -> Json:
        """Return the services in a file with several services, with None for a service with errors.

        Return an empty object for another kind of file.
        """
        raw = self.load(location._replace(kind="services", id="", entry=False)).raw
        services: Json = raw["services"] if raw else {}
        return services

    def parse(self, path: str) -> ParsedYaml:
        """Parse a file whose kind is still unknown. It is not checked."""
        from cogcli.base.yaml import reader

        file, limits = self.display_path(path), self._ceilings.yaml
        if path in self._contents:
            return reader.parse(self._contents[path], file=file, limits=limits)
        return reader.read_file(path, file=file, limits=limits)[1]

    def _load_entry(self, location: LayoutFile) -> SpecFile:
        """Return one service of a file with several services. Its pin covers only this entry."""
        expected = self.service_entries(location).get(location.id)
        raw = None if expected is None else {"id": location.id, **expected}
        return SpecFile(
            location, self.display_path(location.path), location.id, digest_of(expected), raw, []
        )

    def _load_file(self, location: LayoutFile) -> SpecFile:
        file = self.display_path(location.path)
        read = SpecFile(
            location,
            file,
            location.id or os.path.basename(location.path).removesuffix(".yaml"),
            "",
            None,
            [],
        )
        data = self._contents.get(location.path)
        if data is None:
            try:
                data = read_regular(location.path, limit=self._ceilings.yaml_bytes)
            except UnreadableFile:
                from cogcli.base.yaml import reader

                # Read again for the problem; a file that is readable now is used.
                limits = self._ceilings.yaml
                data, parsed = reader.read_file(location.path, file=file, limits=limits)
                if not data:
                    self.places[file] = parsed.places
                    return read._replace(problems=parsed.problems)
        name = digest(data)
        self.places.note(file, location.path, name)
        read = read._replace(digest=name)
        compiled = (
            self._cache.get(cached_kind(location.kind, self._ceilings), name)
            if self._cache
            else None
        )
        if compiled:
            problems = [
                Problem(code, severity, file, *rest) for code, severity, *rest in compiled.warnings
            ]
            return self._check_path(read, compiled.raw, problems)
        from cogcli.base.yaml import reader

        if location.kind == "active":
            parsed = reader.parse_json(data, file=file)
        else:
            parsed = reader.parse(
                data,
                file=file,
                limits=self._ceilings.yaml,
                tolerate=lambda problem: is_tolerated(location, problem),
            )
        self.places[file] = parsed.places
        if parsed.value is None:
            return read._replace(problems=parsed.problems)
        return self._check_content(read, parsed.value, parsed)

    def _check_content(self, read: SpecFile, value: Json, parsed: ParsedYaml) -> SpecFile:
        from cogcli.specs.shapes import check_file

        found = read.found
        raw, own = check_file(found.kind, value, parsed.places, read.file, self.protocols)
        problems = parsed.problems + own
        if raw is None:
            id = None if found.kind == "pack" else text_at(value, "id")
            return read._replace(id=found.id or (read.id if id is None else id), problems=problems)
        credential = any(problem.code == "secret.literal" for problem in problems)
        if (
            self._cache
            and not credential
            and not parsed.problems
            and not _find_path_mismatches(found, raw)
        ):
            # A mapping that is refused, tolerated in one layer, or holds a credential is never cached.
            kept = [
                [p.code, p.severity, p.line, p.column, p.path, p.message, p.hint] for p in problems
            ]
            self._cache.keep(
                cached_kind(found.kind, self._ceilings), read.digest, CompiledFile(raw, kept)
            )
        return self._check_path(read, raw, problems)

    def _check_path(self, read: SpecFile, raw: Json, problems: list[Problem]) -> SpecFile:
        """Return the file, or the file with errors if its content contradicts its path."""
        misplaced = _find_path_mismatches(read.found, raw)
        if not misplaced:
            return read._replace(id=_find_id(read.found, raw), raw=raw, problems=problems)
        report = ProblemReport(read.file, self.places.of(read.file))
        for key, message, hint in misplaced:
            report.error("layout.id", (key,), message, hint=hint)
        return read._replace(
            id=read.found.id or _find_id(read.found, raw), problems=problems + report.problems
        )


def is_tolerated(location: LayoutFile, problem: Problem) -> bool:
    """Return whether a repeated key is allowed: it must be in the metadata of a lenient layer's skill or capability.

    The key that limits the eligible bindings must never be repeated.
    """
    _, _, below = problem.path.partition("/metadata/")
    return (
        location.layer.lenient
        and location.kind in ("skill", "capability")
        and problem.path.startswith("/metadata/")
        and below != "required_conformance_profile"
    )


_Mismatch = tuple[str, str, str]
"""A key whose value contradicts the path of the file: the key, the message and the hint."""


class _SpecHead(Record):
    """The keys of a checked mapping that the path of its file determines."""

    id: str | None = None
    capability: str | None = None


def _find_path_mismatches(location: LayoutFile, raw: Json) -> list[_Mismatch]:
    """Return the keys whose value contradicts the path of the file."""
    head = _SpecHead.of(raw)
    if location.kind == "pack":
        return list(_find_pack_mismatches(location, _find_id(location, raw)))
    return [
        *_find_id_mismatches(location, head),
        *_find_capability_mismatches(location, head),
        *_find_skill_mismatches(location, raw),
    ]


def _find_pack_mismatches(location: LayoutFile, id: str) -> Iterator[_Mismatch]:
    if location.id not in ("", id):
        hint = f"write pack_id and pack_version of `{location.id}`, or move the file"
        yield "pack_meta", f"pack `{id}`: its path says `{location.id}`", hint


def _find_id_mismatches(location: LayoutFile, head: _SpecHead) -> Iterator[_Mismatch]:
    if location.id and head.id != location.id:
        message = f"{location.kind} `{head.id}`: its path says `{location.id}`"
        is_id = IS_ID.get(location.kind, bool)(location.id)
        hint = (
            f"write `id: {location.id}`, or move the file"
            if is_id
            else "move the file: its path is not an id"
        )
        yield "id", message, hint


def _find_capability_mismatches(location: LayoutFile, head: _SpecHead) -> Iterator[_Mismatch]:
    if location.capability and head.capability != location.capability:
        expected = f"capability `{head.capability}`, its folder says `{location.capability}`"
        near = suggestion(str(head.capability), [location.capability])
        hint = (
            f"{near}\nelse move the file"
            if near
            else "move the file, or name the folder's capability"
        )
        yield "capability", f"binding `{head.id}`: {expected}", hint


def _find_skill_mismatches(location: LayoutFile, raw: Json) -> Iterator[_Mismatch]:
    if location.kind == "skill" and location.id:
        domain, slug = location.id.split(".")
        for key, expected in (("channel", location.channel), ("domain", domain), ("slug", slug)):
            if raw.get(key) not in (None, expected):
                message = f"skill `{location.id}`: {key} `{raw[key]}`, its path says `{expected}`"
                yield key, message, "remove the key, or move the file"


def _find_id(location: LayoutFile, raw: Json) -> str:
    """Return the id in a checked mapping, with the version for a pack. Empty if the kind of file has no id."""
    if location.kind == "pack":
        return f"{raw['pack_meta']['pack_id']}@{raw['pack_meta']['pack_version']}"
    return _SpecHead.of(raw).id or ""
