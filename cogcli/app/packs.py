"""Packs from the command line: found by reference or file, checked, and their policy tried out
(docs/reference/pack.md#check)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from cogcli.app.checks.registry_check import RegistryCheck, check_registry
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.core.errors import EnvironmentRefusal, UsageError
from cogcli.core.jsonvalue import object_of, text_of
from cogcli.core.problems import ProblemsFound, suggestion
from cogcli.governance.policy import GovernedCall, Policy
from cogcli.governance.verdict import Verdict, approval_mode
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack import Pack, PackTool


class FoundPack(NamedTuple):
    """A pack, its file, and the registry that it refers to."""

    pack: Pack
    file: str
    catalog: Catalog


def check_pack_file(settings: Settings, name: str) -> RegistryCheck:
    """The problems of a pack, by reference or file. Raises as `find_pack`, but for a pack with errors."""
    return check_registry(settings, [_file_of(settings, name)])


def find_pack(settings: Settings, name: str) -> FoundPack:
    """A pack by `id@version`, perhaps with its hash, or by its file. Raises EnvironmentRefusal `pack.unknown`,
    `pack.mismatch`; ProblemsFound for one with errors."""
    file = _file_of(settings, name)
    catalog = open_registry(settings).files([file])
    pack = next((each for each in catalog.packs.values() if each.file in (catalog.only or ())), None)
    if pack is None:
        raise ProblemsFound(list(catalog.problems))
    wanted = name.partition("#")[2]
    if wanted and wanted != pack.hash:
        text = f"pack `{pack.pack_id}@{pack.version}` is {pack.hash}, not {wanted}"
        raise EnvironmentRefusal("pack.mismatch", text, hint="restore it, or name the pack that you mean")
    return FoundPack(pack, file, catalog)


def _file_of(settings: Settings, name: str) -> str:
    if name.endswith((".yaml", ".yml")):
        if not os.path.lexists(name):
            raise UsageError("input.file", f"`{name}` does not exist", hint="name the file of a pack")
        return name
    registry, id = open_registry(settings), name.partition("#")[0]
    paths = registry.paths("pack", id)
    if not paths:
        known = registry.ids("pack")
        hint = suggestion(id, known) or "packs lie in packs/ID/VERSION.yaml"
        raise EnvironmentRefusal("pack.unknown", f"no pack `{id}`", hint=hint)
    return paths[-1]


def evaluate_call(found: FoundPack, capability_id: str, data: Mapping[str, Any]) -> Verdict:
    """What the three checks say of a call with this data (docs/reference/pack.md#rules): intent, role, ceiling, user
    and arguments are in `request`, `agent`, `run`, `user` and `args`. Raises UsageError for an unknown capability."""
    capability = found.catalog.capability(capability_id)
    if capability is None:
        hint = suggestion(capability_id, found.catalog.capabilities)
        raise UsageError("usage.value", f"no capability `{capability_id}`", hint=hint)
    pack = found.pack
    declared = pack.tooling.capabilities.get(capability.id, PackTool()).approval_mode
    given = {name: object_of(data.get(name)) for name in ("request", "user", "agent", "run")}
    arguments = data.get("args")
    call = GovernedCall(
        capability.id,
        approval_mode(capability, declared),
        text_of(given["agent"].get("role")) or pack.tone.role,
        text_of(given["run"].get("safety_mode")) or pack.defaults.safety_mode,
        arguments if isinstance(arguments, dict) else None,
        named_user=given["user"].get("id", "default") != "default",
    )
    rules = Policy.of(pack)
    return rules.decide(text_of(given["request"].get("intent")), call, data)
