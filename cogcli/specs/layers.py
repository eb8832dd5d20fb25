"""Layers: the sources of a registry. Later ones win (docs/reference/spec-files.md#layers)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from cogcli.base.jsonvalue import Json
from cogcli.base.links import is_below
from cogcli.base.named_tuple import NamedTuple

BUILT_IN = "built-in"
PROJECT = "project"
HOST = "host"
HOST_FOLDER = ".agent-skills"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The directory of this package."""


def builtin_root() -> str:
    """Return the directory with the shipped `skills/`, `capabilities/` and so on.

    It is in the package if that is installed, and next to the package in a checkout.
    """
    inside = os.path.join(PACKAGE, "registry")
    return inside if os.path.isdir(inside) else os.path.dirname(PACKAGE)


class Layer(NamedTuple):
    """One root of a registry. Services of an untrusted layer run none of their own code and read no secret."""

    name: str
    root: str
    trusted: bool
    host: bool = False
    """Whether it is a folder of host overrides (docs/reference/binding.md#host-overrides)."""
    distrust: str = ""
    """The reason why it is not trusted. Empty if there is no special reason."""
    lenient: bool = False
    """Whether contradictions between the types that its specs declare are warnings
    (docs/reference/spec-files.md#lenient)."""
    confined: bool = False
    """Whether links that lead out of its root are ignored, as for a folder that is only inspected."""
    bound: str = ""
    """The folder that no link of the layer may leave (docs/reference/service.md#links). Empty if links are followed."""

    @property
    def home(self) -> str:
        """The directory with the modules and documents of its services.

        It is the root, or the parent of the root for host overrides.
        """
        return os.path.dirname(self.root) if self.host else self.root

    def marks(self) -> Json:
        """Return the data that a service or binding gets from its layer.

        It is the layer's name, whether the layer is trusted, and if not, why.
        """
        return {"layer": self.name, "trusted": self.trusted, "distrust": self.distrust}


def bounded_layers(layers: Iterable[Layer], project: str) -> list[Layer]:
    """Return the layers, each untrusted one with a bound for links.

    The bound is the project, or the root if it is outside the project. Without a project, no layer has a bound.
    """
    return [
        layer
        if layer.trusted or not project
        else layer._replace(
            bound=project if is_below(os.path.abspath(layer.root), project) else layer.root
        )
        for layer in layers
    ]


class Root(NamedTuple):
    """An additional registry root: its absolute path, and whether the project's own file declares it. A root that the
    project declares is trusted like the project. A root that the user declares is trusted.
    """

    path: str
    by_project: bool = False
    lenient: bool = False


def layers_for(
    *,
    project: str | None = None,
    project_trusted: bool = False,
    registries: Sequence[Root] = (),
    distrust: str = "",
    builtin: bool = True,
) -> list[Layer]:
    """Return the layers of a command in order.

    The order is: built-in (optional), project, each additional root, host overrides of the project. A directory that is
    named twice is used once, at the earlier place, and is trusted if either is. A directory that both project and user
    name is at the user's place.
    """
    layers = [Layer(BUILT_IN, builtin_root(), True)] if builtin else []
    if project is not None:
        layers.append(Layer(PROJECT, project, project_trusted, distrust=distrust))
    users = {os.path.realpath(root.path) for root in registries if not root.by_project}
    for root in registries:
        if not root.by_project:
            layers.append(Layer(root.path, root.path, True, lenient=root.lenient))
        elif os.path.realpath(root.path) not in users:
            layer = Layer(
                root.path, root.path, project_trusted, distrust=distrust, lenient=root.lenient
            )
            layers.append(layer)
    if project is not None and os.path.isdir(folder := os.path.join(project, HOST_FOLDER)):
        layers.append(Layer(HOST, folder, project_trusted, True, distrust))
    return distinct(layers)


def distinct(layers: Iterable[Layer]) -> list[Layer]:
    """Return the layers without repeated directories.

    Each directory has its earliest place, and is trusted if any of its layers is.
    """
    first: dict[str, Layer] = {}
    for layer in layers:
        place = os.path.realpath(layer.root)
        earlier = first.setdefault(place, layer)
        if layer.trusted and not earlier.trusted:
            first[place] = earlier._replace(trusted=True, distrust="")
    return list(first.values())
