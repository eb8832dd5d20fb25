"""Files named for validation that are in no layer: finding them, and the kind of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from cogcli.core.problems import Problem
from cogcli.specs.host_layout import ACTIVE_FILE, KIND_OF_FILE
from cogcli.specs.layers import HOST_FOLDER, Layer
from cogcli.specs.layout import FoundFile
from cogcli.specs.spec_reader import SpecReader

_FOLDERS = {
    "capabilities": "capability",
    "bindings": "binding",
    "services": "service",
    "policies": "policy",
    "skills": "skill",
}
_KIND_OF_KEY = {
    "steps": "skill",
    "capability": "binding",
    "kind": "service",
    "services": "services",
    "overrides": "overrides",
    "defaults": "policy",
}
"""The kind of a file by the first of these keys that it has."""


def classify(
    paths: Iterable[str], places: Mapping[str, FoundFile], reader: SpecReader
) -> tuple[set[str], list[FoundFile], list[Problem]]:
    """(paths with directories expanded, files outside all layers, problems of files that cannot be read)."""
    wanted: set[str] = set()
    outside: list[FoundFile] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _spec_files(path, places):
            wanted.add(file)
            kind, found = ("", []) if file in places else _kind_of_file(file, reader)
            problems += found
            if kind:
                outside.append(FoundFile(kind, "", file, Layer("given", os.path.dirname(file), False)))
    return wanted, outside, problems


def _spec_files(path: str, known: Iterable[str]) -> Iterator[str]:
    """The file itself; of a directory the known spec files below it, else all its YAML files."""
    if not os.path.isdir(path):
        yield path
    elif below := [file for file in known if file.startswith(f"{path.rstrip('/')}/")]:
        yield from below
    else:
        for above, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name[0] not in "_.")
            for name in sorted(names):
                if name.endswith((".yaml", ".yml")) and name[0] not in "_.":
                    yield f"{above}/{name}".replace(os.sep, "/")


def _kind_of_file(path: str, reader: SpecReader) -> tuple[str, list[Problem]]:
    """The kind of a spec file by its folders, else by its keys; an empty one, with problems, where it cannot be
    parsed."""
    above, _, name = path.rpartition("/")
    if name == ACTIVE_FILE or (name in KIND_OF_FILE and above.endswith(HOST_FOLDER)):
        return KIND_OF_FILE[name], []
    for part in reversed(path.split("/")[:-1]):
        if part in _FOLDERS:
            return _FOLDERS[part], []
    parsed = reader.parse(path)
    if parsed.value is None:
        return "", parsed.problems
    return next((kind for key, kind in _KIND_OF_KEY.items() if key in parsed.value), "capability"), []
