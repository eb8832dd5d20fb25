"""Layers: the places a registry is made of, later ones winning (formats.md 9)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from cogcli.specs.builtin import builtin_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BUILT_IN = "built-in"
PROJECT = "project"
HOST = "host"
HOST_FOLDER = ".agent-skills"


class Layer(NamedTuple):
    """One registry root. Services of a layer that is not trusted start no code of their own and read no secret."""

    name: str
    root: str
    trusted: bool
    host: bool = False
    """Whether it is a folder of host overrides, laid out as formats.md 8 says."""

    @property
    def home(self) -> str:
        """Where modules and documents of its services are found: the root, of host overrides what holds them."""
        return os.path.dirname(self.root) if self.host else self.root


def layers_for(
    *, project: str | None = None, project_trusted: bool = False, registries: Sequence[str] = ()
) -> list[Layer]:
    """The layers of a command in order: built-in, project, then each extra root, which is trusted and named by
    its path, last the host overrides of the project. A directory standing twice counts once, as the earlier."""
    layers = [Layer(BUILT_IN, builtin_root(), True)]
    if project is not None:
        layers.append(Layer(PROJECT, project, project_trusted))
    layers += [Layer(root, root, True) for root in registries]
    if project is not None and os.path.isdir(folder := os.path.join(project, HOST_FOLDER)):
        layers.append(Layer(HOST, folder, project_trusted, host=True))
    return distinct(layers)


def distinct(layers: Iterable[Layer]) -> list[Layer]:
    """The layers whose directories differ, each directory as its earliest layer."""
    first: dict[str, Layer] = {}
    for layer in layers:
        first.setdefault(os.path.realpath(layer.root), layer)
    return list(first.values())
