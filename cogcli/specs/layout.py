"""The files of a layer's specs, and the ids in their paths (docs/reference/spec-files.md#places).

Only directories are read, each at most once per instance; no file is opened. If the layer has a bound, a link that
leaves it raises UnusableEnvironment `project.link`. Too many entries raise `registry.size` (`base/walk.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.base.links import find_leaving_link, require_inside
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system_text import bad_byte
from cogcli.base.walk import FolderWalk, Mark, directory_mark
from cogcli.specs.id_grammar import CHANNEL, is_capability_id, is_pack_id, is_plain_id, is_skill_id
from cogcli.specs.layers import Layer

SKILL_FILE: Final = "skill.yaml"
CASES: Final = "tests"
"""The folder of test cases next to a skill's file."""
POLICY_FILE: Final = "official_default_selection.yaml"
NO_CHANNEL: Final = "local"
_ENDINGS: Final = (".yaml", ".yml")
_FOLDERS: Final = {
    "skill": "skills",
    "capability": "capabilities",
    "binding": "bindings",
    "service": "services",
    "pack": "packs",
}
IS_ID: Final = {
    "skill": is_skill_id,
    "capability": is_capability_id,
    "service": is_plain_id,
    "pack": is_pack_id,
}
"""By kind: whether a text is an id."""
_PLACES: Final = {
    "skill": "skills/CHANNEL/DOMAIN/SLUG/skill.yaml",
    "capability": "capabilities/ID.yaml",
    "binding": "bindings/CHANNEL/CAPABILITY/NAME.yaml",
    "pack": "packs/ID/VERSION.yaml",
}


_STRAY: Final = {
    "layout.depth": "this file is not where specs are",
    "layout.extension": "this file does not end in .yaml",
    "id.format": "this file is in a channel whose name is none",
}


class LayoutFile(NamedTuple):
    """The path of a spec file. `id` is the id in the path. It is empty for bindings, whose file names are free."""

    kind: str
    id: str
    path: str
    layer: Layer
    channel: str = ""
    capability: str = ""
    entry: bool = False
    """Whether the spec is an entry of a file with several specs. Then the file may turn out not to contain it."""


class UnloadedFile(NamedTuple):
    """A file in a spec folder that is not loaded, with code and hint.

    `why` overrides the default reason for the code.
    """

    code: str
    path: str
    hint: str
    why: str = ""

    @property
    def message(self) -> str:
        """The reason why the file is not loaded, as text."""
        return f"{self.why or _STRAY[self.code]}, so not loaded"


class Layout:
    """The directories of one layer."""

    folders: Mapping[str, str] = _FOLDERS
    """The folder of each kind that has one."""
    single: Mapping[str, str] = {f"policies/{POLICY_FILE}": "policy"}
    """The kinds of files that are not a spec themselves: they select specs, or contain several."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self._walk = FolderWalk(layer.root)
        self._names: dict[str, list[str]] = {}
        self._unreadable: list[str] = []
        """Paths in listed folders whose names are not UTF-8."""

    def find(self, kind: str, id: str) -> list[LayoutFile]:
        """Return the files for an id of a skill, capability, service or pack.

        A skill or service may have one file in each channel.
        """
        if kind not in self.folders or not IS_ID[kind](id):
            return []
        root = self._absolute_path(self.folders[kind])
        places = (
            LayoutFile(kind, id, f"{root}/{path}", self.layer, channel)
            for channel, path in self._list_places(kind, root, id)
        )
        return [place for place in places if self.contains(place.path)]

    def _list_places(self, kind: str, root: str, id: str) -> Iterator[tuple[str, str]]:
        """Yield (channel, path) for each place below a kind's folder where the file for an id may be."""
        if kind == "pack":
            yield "", f"{id.replace('@', '/')}.yaml"
        elif kind == "capability":
            yield "", f"{id}.yaml"
        else:
            name = f"{id.replace('.', '/')}/{SKILL_FILE}" if kind == "skill" else f"{id}.yaml"
            if kind == "service":
                yield NO_CHANNEL, name
            for channel in self._list_channels(root):
                yield channel, f"{channel}/{name}"

    def contains(self, path: str) -> bool:
        """Return whether a path exists. In a confined layer it must also be inside the root."""
        if not os.path.lexists(path):
            return False
        if self.layer.confined:
            return not find_leaving_link(path, self.layer.root)
        require_inside(path, self.layer.bound)
        return True

    def bindings(self, capability: str) -> list[LayoutFile]:
        """Return the files of all bindings for one capability."""
        if not is_capability_id(capability):
            return []
        root = self._absolute_path("bindings")
        channels = self._list_channels(root)
        folders = [
            (NO_CHANNEL, f"{root}/{capability}"),
            *((c, f"{root}/{c}/{capability}") for c in channels),
        ]
        return [
            LayoutFile("binding", "", f"{folder}/{name}", self.layer, channel, capability)
            for channel, folder in folders
            for name in self._list_names(folder)
            if name.endswith(".yaml")
        ]

    def cases(self) -> list[LayoutFile]:
        """Return all files of test cases. They are next to the files of skills."""
        beside = [(skill, os.path.dirname(skill.path) + f"/{CASES}") for skill in self.all("skill")]
        return [
            LayoutFile("case", "", f"{folder}/{name}", self.layer, skill.channel)
            for skill, folder in beside
            for name in self._list_names(folder)
            if name.endswith(".yaml")
        ]

    def all(self, kind: str) -> list[LayoutFile]:
        """Return all spec files of a kind."""
        if kind == "case":
            return self.cases()
        if kind not in self.folders:
            return []
        root = self._absolute_path(self.folders[kind])
        return [
            found
            for parts in self._iterate_files(root, 3)
            if (found := self._spec_file_at(kind, root, parts))
        ]

    def single_files(self) -> list[LayoutFile]:
        """Return the files named in `single` that exist."""
        paths = [(kind, self._absolute_path(name)) for name, kind in self.single.items()]
        return [
            LayoutFile(kind, "", path, self.layer) for kind, path in paths if self.contains(path)
        ]

    def is_channel(self, name: str) -> bool:
        """Return whether a folder with this name may be a channel."""
        return CHANNEL.fullmatch(name) is not None

    def strays(self) -> list[UnloadedFile]:
        """Return files that look like specs but are not loaded."""
        files = [(k, self._absolute_path(folder)) for k, folder in self.folders.items()]
        strays = [
            self._find_stray(kind, root, parts)
            for kind, root in files
            for parts in self._iterate_files(root, 6)
        ]
        found = [stray for stray in strays if stray]
        why = "this name is not UTF-8"
        return found + [
            UnloadedFile("id.format", path, "rename it", why)
            for path in sorted(set(self._unreadable))
        ]

    def _spec_file_at(self, kind: str, root: str, parts: tuple[str, ...]) -> LayoutFile | None:
        """Return the spec file at a path below a kind's folder; None if files of this kind do not belong there."""
        if not parts[-1].endswith(".yaml"):
            return None
        stem = parts[-1].removesuffix(".yaml")
        place = self._find_place(kind, (*parts[:-1], stem))
        if place is None:
            return None
        id, channel, capability = place
        return LayoutFile(kind, id, "/".join((root, *parts)), self.layer, channel, capability)

    def _find_place(self, kind: str, parts: tuple[str, ...]) -> tuple[str, str, str] | None:
        """Return id, channel and capability of a file, from its path below the kind's folder, or None."""
        match kind, parts:
            case "skill", (channel, domain, slug, "skill") if self.is_channel(channel):
                return f"{domain}.{slug}", channel, ""
            case "capability", (id,):
                return id, "", ""
            case "pack", (name, version):
                return f"{name}@{version}", "", ""
            case "service", (id,):
                return id, NO_CHANNEL, ""
            case "service", (channel, id) if self.is_channel(channel):
                return id, channel, ""
            case "binding", (channel, capability, _) if self.is_channel(channel):
                return "", channel, capability
            case "binding", (capability, _) if "." in capability:
                return "", NO_CHANNEL, capability
            case _:
                return None

    def _find_stray(self, kind: str, root: str, parts: tuple[str, ...]) -> UnloadedFile | None:
        path = "/".join((root, *parts))
        if parts[-1].endswith(".yml"):
            renamed = (*parts[:-1], f"{parts[-1].removesuffix('.yml')}.yaml")
            if self._spec_file_at(kind, root, renamed):
                return UnloadedFile("layout.extension", path, "rename it to end in .yaml")
        elif self._spec_file_at(kind, root, parts) is None:
            if self._spec_file_at(kind, root, ("local", *parts[1:])):
                return UnloadedFile(
                    "id.format", path, f"name the folder `{parts[0]}` as in [a-z][a-z0-9-]{{0,31}}"
                )
            if kind in _PLACES and (kind != "skill" or parts[-1] == SKILL_FILE):
                return UnloadedFile("layout.depth", path, f"move it to {_PLACES[kind]}")
        return None

    def _iterate_files(
        self,
        folder: str,
        max_depth: int,
        parents: tuple[str, ...] = (),
        outer: tuple[Mark, ...] = (),
    ) -> Iterator[tuple[str, ...]]:
        """Yield the YAML files below a folder, each as a tuple of path segments.

        Directories are searched `max_depth` levels deep. A link to a directory that contains the folder (`outer`) is
        not followed.
        """
        mark = directory_mark(folder)
        if mark is None or mark in outer:
            return
        for name in self._list_names(folder):
            if name.endswith(_ENDINGS):
                yield (*parents, name)
            elif max_depth:
                yield from self._iterate_files(
                    f"{folder}/{name}", max_depth - 1, (*parents, name), (*outer, mark)
                )

    def _list_channels(self, folder: str) -> list[str]:
        return [name for name in self._list_names(folder) if self.is_channel(name)]

    def _list_names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Names that begin with `_` or `.` are ignored.

        Empty if it is not a folder.
        """
        names = self._names.get(folder)
        if names is None:
            require_inside(folder, self.layer.bound)
            names = self._names[folder] = [*self._read_names(folder)]
        return names

    def _read_names(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder, and record those that are not UTF-8."""
        is_guarded = self.layer.confined or bool(self.layer.bound)
        for entry in self._walk.entries(folder):
            name = entry.name
            if name[0] in "_.":
                continue
            path = f"{folder}/{name}"
            if bad_byte(name):
                self._unreadable.append(path)
            elif not (is_guarded and entry.is_symlink() and self._may_open(name)) or self.contains(
                path
            ):
                yield name

    def _may_open(self, name: str) -> bool:
        """Return whether an entry may be opened as a file, or may be ignored.

        A directory is checked when it is listed.
        """
        return self.layer.confined or name.endswith(_ENDINGS)

    def _absolute_path(self, folder: str) -> str:
        return f"{self.layer.root}/{folder}"
