"""The files of host overrides in the folder `.agent-skills` of a project (docs/reference/binding.md#host-overrides)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from cogcli.base.problems import did_you_mean
from cogcli.specs.id_grammar import is_plain_id
from cogcli.specs.layers import Layer
from cogcli.specs.layout import NO_CHANNEL, Layout, LayoutFile, UnloadedFile

CHANNELS: Final = ("local", "candidate")
SERVICES_FILE: Final = "services.yaml"
ACTIVE_FILE: Final = "active_bindings.json"
OVERRIDES_FILE: Final = "overrides.yaml"
KIND_OF_FILE: Final = {
    SERVICES_FILE: "services",
    ACTIVE_FILE: "active",
    OVERRIDES_FILE: "overrides",
}
"""The files with several entries each, and their kinds."""
_ELSEWHERE: Final = {
    "services": f"describe the service in {SERVICES_FILE}",
    "skills": "move it to skills/ of the project",
    "policies": f"say it in {ACTIVE_FILE} or {OVERRIDES_FILE}",
}
"""Folders of kinds that host overrides do not have."""


class HostLayout(Layout):
    """The files in one folder of host overrides: bindings, capabilities and three single files.

    It has no skills and no policies.
    """

    folders = {"capability": "capabilities", "binding": "bindings"}  # noqa: RUF012
    single = KIND_OF_FILE

    def find(self, kind: str, id: str) -> list[LayoutFile]:
        """Return the files for an id, as other layers do.

        For a service, return the file that may contain it, if it exists.
        """
        if kind != "service":
            return super().find(kind, id)
        path = self._absolute_path(SERVICES_FILE)
        if not is_plain_id(id) or not self.contains(path):
            return []
        return [LayoutFile("service", id, path, self.layer, NO_CHANNEL, entry=True)]

    def is_channel(self, name: str) -> bool:
        return name in CHANNELS

    def strays(self) -> list[UnloadedFile]:
        misplaced = [
            UnloadedFile("layout.depth", "/".join((self._absolute_path(folder), *parts)), hint)
            for folder, hint in _ELSEWHERE.items()
            for parts in self._iterate_files(self._absolute_path(folder), 4)
        ]
        return [*super().strays(), *self._find_misnamed_files(), *misplaced]

    def _find_stray(self, kind: str, root: str, parts: tuple[str, ...]) -> UnloadedFile | None:
        stray = super()._find_stray(kind, root, parts)
        if stray and stray.code == "id.format":
            hint = f"host overrides have the channels {' and '.join(CHANNELS)} only"
            return UnloadedFile("layout.depth", stray.path, hint)
        return stray

    def _find_misnamed_files(self) -> Iterator[UnloadedFile]:
        """Yield files whose names are similar to the name of a file of host overrides."""
        stems = {name.partition(".")[0]: name for name in KIND_OF_FILE}
        for name in self._list_names(self.layer.root):
            stem, _, ending = name.partition(".")
            if ending == "yml" and f"{stem}.yaml" in KIND_OF_FILE:
                yield UnloadedFile(
                    "layout.extension", self._absolute_path(name), "rename it to end in .yaml"
                )
            elif name not in KIND_OF_FILE and ending in ("yaml", "yml", "json"):
                for near in did_you_mean(stem.replace("-", "_"), stems, limit=1):
                    yield UnloadedFile(
                        "layout.depth", self._absolute_path(name), f"did you mean `{stems[near]}`?"
                    )


def layout_of(layer: Layer) -> Layout:
    """Return the layout of a layer: host overrides, or an ordinary root."""
    return HostLayout(layer) if layer.host else Layout(layer)


def is_host_root(path: str) -> bool:
    """Return whether a directory looks like host overrides.

    It has one of their files, and no folder for a kind that they do not have.
    """
    held = any(os.path.lexists(f"{path}/{name}") for name in KIND_OF_FILE)
    return held and not any(os.path.isdir(f"{path}/{folder}") for folder in _ELSEWHERE)


def is_root(path: str) -> bool:
    """Return whether a directory looks like a registry layer."""
    folders = (*Layout.folders.values(), "policies")
    return any(os.path.isdir(f"{path}/{folder}") for folder in folders) or is_host_root(path)
