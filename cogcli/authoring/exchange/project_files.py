"""The files that a project needs in order to use folders of agent-skills
(docs/how-to/come-from-agent-skills.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.config import PROJECT_FILE
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json
from cogcli.specs.host_layout import ACTIVE_FILE, layout_of
from cogcli.specs.layers import HOST_FOLDER, Layer
from cogcli.specs.layout import LayoutFile
from cogcli.specs.unchecked import object_at

_MAX_BYTES: Final = 256 * 1024


class ProjectFiles(NamedTuple):
    """Renders the files of the project in `home`, which may not exist yet."""

    settings: Settings
    home: str
    host: str
    """The folder of host overrides, which may be that of the tool."""
    roots: Sequence[str]
    links: Sequence[str]
    """The links that lead out of their folders and are not followed."""
    layers: Sequence[Layer]

    def render(self, contradictions: list[Problem], choices: Mapping[str, str]) -> dict[str, str]:
        """Return the text of each file. `choices` are the bindings to activate, by capability."""
        texts = {PROJECT_FILE: self._render_project_config(contradictions)}
        theirs = os.path.dirname(self.host) != self.home
        if theirs:
            texts |= self._host_files()
        if choices:
            kept = self._active_now()
            chosen = kept | dict(choices)
            texts[f"{HOST_FOLDER}/{ACTIVE_FILE}"] = (
                json.dumps(chosen, indent=2, ensure_ascii=False) + "\n"
            )
        return texts

    def _render_project_config(self, contradictions: list[Problem]) -> str:
        """Return the text of `cogcli.toml`: the list `registry`, and a table for each lenient root."""
        configured = [root.path for root in self.settings.roots if root.by_project]
        home = os.path.realpath(self.home)
        roots = [root for root in (*configured, *self.roots) if os.path.realpath(root) != home]
        names = [_toml_string(self._path_from_home(root)) for root in dict.fromkeys(roots)]
        lines = [f"registry = [{', '.join(names)}]"] if names else []
        for root in self.roots:
            if os.path.realpath(root) != home:
                lines += self._lenient_lines(root, contradictions)
        return "\n".join(lines) + "\n"

    def _lenient_lines(self, root: str, contradictions: list[Problem]) -> list[str]:
        """Return the lines that allow the contradictions of a root; empty if it has none."""
        inside, base = root.rstrip(os.sep) + os.sep, self.settings.base
        found = [p for p in contradictions if os.path.join(base, p.file).startswith(inside)]
        if not found:
            return []
        place, count = visible(f"{found[0].file}:{found[0].line}"), len(found)
        what = f"{count} contradiction{'s' if count > 1 else ''}, the first in {place}"
        return [
            "",
            f"# {what}",
            f"[roots.{_toml_string(self._path_from_home(root))}]",
            'contracts = "lenient"',
        ]

    def _path_from_home(self, root: str) -> str:
        try:
            return os.path.relpath(root, self.home).replace(os.sep, "/")
        except ValueError:  # another drive
            return root.replace(os.sep, "/")

    def _host_files(self) -> dict[str, str]:
        """Return the host overrides of the tool's folder unchanged, for the project."""
        texts: dict[str, str] = {}
        for each in self._list_host_files():
            name = os.path.relpath(each.path, self.host).replace(os.sep, "/")
            try:
                texts[f"{HOST_FOLDER}/{name}"] = read_regular(each.path, limit=_MAX_BYTES).decode()
            except (UnreadableFile, UnicodeDecodeError):
                continue  # reported as a problem
        return texts

    def _list_host_files(self) -> Iterator[LayoutFile]:
        places = [layout_of(layer) for layer in self.layers if layer.host]
        for place in places:
            yield from place.single_files()
        for place in places:
            yield from place.all("binding")
            yield from place.all("capability")

    def _active_now(self) -> Json:
        """Return the current choices of the host; empty if their file cannot be read."""
        path = os.path.join(self.host, ACTIVE_FILE)
        if path in self.links:
            return {}
        try:
            chosen = loads(read_regular(path, limit=_MAX_BYTES))
        except (UnreadableFile, InvalidJson):
            return {}
        return object_at(chosen)


def _toml_string(text: str) -> str:
    """Return a string of printable characters as a TOML string."""
    return json.dumps(text, ensure_ascii=False)
