"""The scenarios of a protocol: their directory, the named ones, and the bindings without scenarios
(docs/reference/protocols.md#scenarios).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.authoring.verification.named_mocks import STAND_INS
from cogcli.authoring.verification.scenario import files_in, read_scenario
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.scenario_spec import Scenario
from cogcli.specs.layers import BUILT_IN, builtin_root
from cogcli.specs.scenario_folders import REGISTRY, directory_of


class ScenarioSource(NamedTuple):
    """A directory of scenarios. With `trusted`, the registry next to them may read the environment."""

    directory: str
    trusted: bool
    shipped: bool = False
    """Whether they are shipped with cogcli, and not the project's own."""


def find_scenarios(
    settings: Settings, protocol: str, directory_argument: str | None
) -> ScenarioSource:
    """Return the directory of scenarios: the argument, else the project's, else the shipped one.

    Raise UsageError `input.file` if the argument is not a directory.
    """
    if directory_argument is not None:
        directory = settings.require_inside(os.path.abspath(directory_argument))
        if not os.path.isdir(directory):
            raise UsageError(
                "input.file",
                f"`--scenarios-dir`: `{directory_argument}` is not a directory",
                hint="name one",
            )
        return ScenarioSource(directory, is_trusted_folder(settings, directory))
    shipped = os.path.join(builtin_root(), directory_of(protocol))
    own = settings.require_inside(
        os.path.join(settings.project or settings.base, directory_of(protocol))
    )
    if files_in(own) and os.path.realpath(own) != os.path.realpath(shipped):
        return ScenarioSource(own, is_trusted_folder(settings, own))
    return ScenarioSource(shipped, True, shipped=os.path.realpath(own) != os.path.realpath(shipped))


def is_trusted_folder(settings: Settings, directory: str) -> bool:
    """Return whether the registry next to scenarios is trusted, which is the case if its project is.
    Naming scenarios grants no trust.
    """
    place = os.path.realpath(directory) + os.sep
    if place.startswith(os.path.realpath(os.path.join(builtin_root(), "tooling")) + os.sep):
        return True
    return settings.trust.covers(os.path.join(directory, REGISTRY))


def read_scenarios(
    settings: Settings, source: ScenarioSource, names: Sequence[str] | None
) -> list[Scenario]:
    """Return all scenarios of a directory, or those named by path or by `list_names`. Raise
    UsageError."""
    known = {
        os.path.basename(path).removesuffix(".json"): path for path in files_in(source.directory)
    }

    def path_of(name: str) -> str:
        if os.path.lexists(name):
            return os.path.abspath(name)
        stem = os.path.basename(name.replace("\\", "/")).removesuffix(".json")
        if stem not in known:
            hint = suggestion(stem, known) or "see the list: leave it out"
            raise UsageError("input.file", f"`--scenario`: there is no file `{name}`", hint=hint)
        return known[stem]

    paths = known.values() if names is None else map(path_of, names)
    found = [
        read_scenario(settings.require_inside(path), settings.display_path(path), STAND_INS)
        for path in dict.fromkeys(paths)
    ]
    ids: dict[str, str] = {}
    for scenario in found:
        other = ids.setdefault(scenario.id, scenario.file)
        if other != scenario.file:
            message = f"scenario `{scenario.file}`: id `{scenario.id}` is also that of `{other}`"
            raise UsageError("input.enum", message, hint="give each scenario an id of its own")
    return found


def bindings_without_scenario(
    settings: Settings, scenarios: Sequence[Scenario], protocol: str
) -> tuple[str, ...]:
    """Return the sorted ids of a protocol's bindings that no scenario calls, without shipped ones."""
    named = {scenario.binding_id for scenario in scenarios}
    found = open_registry(settings).everything().bindings.values()
    own = (one for one in found if one.protocol == protocol and one.layer != BUILT_IN)
    return tuple(sorted(one.id for one in own if one.id not in named))


def list_names(source: ScenarioSource) -> list[str]:
    """Return the names of the scenarios in a directory, as `--scenario` takes them."""
    return [os.path.basename(path).removesuffix(".json") for path in files_in(source.directory)]
