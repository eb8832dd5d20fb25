"""Files named for validation that are in no layer: finding them, and the kind of each."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from typing import Any

from cogcli.core.problems import Problem
from cogcli.specs.host_layout import ACTIVE_FILE, KIND_OF_FILE
from cogcli.specs.layers import HOST_FOLDER
from cogcli.specs.spec_reader import SpecReader

_FOLDERS = {
    "capabilities": "capability",
    "bindings": "binding",
    "services": "service",
    "policies": "policy",
    "skills": "skill",
}


def spec_files(path: str, known: Iterable[str]) -> Iterator[str]:
    """The file itself; of a directory the known spec files below it, else all its YAML files."""
    if not os.path.isdir(path):
        yield path
        return
    below = [file for file in known if file.startswith(f"{path.rstrip('/')}/")]
    yield from below or _yaml_files(path)


def _yaml_files(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "_.")
        for name in sorted(names):
            if name.endswith((".yaml", ".yml")) and name[0] not in "_.":
                yield f"{above}/{name}".replace(os.sep, "/")


def kind_of_file(path: str, reader: SpecReader) -> tuple[str, list[Problem]]:
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
    return _kind_by_keys(parsed.value), []


def _kind_by_keys(value: Container[Any]) -> str:
    if "steps" in value:
        return "skill"
    if "capability" in value:
        return "binding"
    if "kind" in value:
        return "service"
    for key in ("services", "overrides"):
        if key in value:
            return key
    return "policy" if "defaults" in value else "capability"
