"""Packs on the command line: the lookup by reference, pin or file, checks, and trials of their
policy (docs/reference/pack.md#check)."""

from __future__ import annotations

import os
from typing import Final

from cogcli.app.checks.registry_check import RegistryCheck, check_registry
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.pins import active_environment, active_pins, has_untrusted_pin
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.jsonvalue import Json, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, sort_problems, suggestion
from cogcli.declarations.pack_spec import MODES, Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.policy.customer_text import list_rule_values
from cogcli.policy.limits import apply_limits, find_claims, use_in_data
from cogcli.policy.pack_check import RuleTestResult, expects_texts, run_tests
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.policy_check import check_reach
from cogcli.policy.verdict import Verdict, mode_under
from cogcli.specs.catalog import Catalog
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.registry import Registry
from cogcli.specs.skill_tools import find_tool, skill_tools, tool_names
from cogcli.specs.unchecked import value_at

_POLICY: Final = "/policy_layer"


class PackInRegistry(NamedTuple):
    """A pack, its file, and the registry in which its references are resolved."""

    pack: Pack
    file: str
    catalog: Catalog


def check_pack_file(settings: Settings, name: str) -> RegistryCheck:
    """Return the problems of a pack, which is given by reference or file.

    Raise the errors of `find_pack`, but return the problems of a pack with errors."""
    return check_registry(settings, [_locate_pack(settings, name).path], kind="pack")


def check_policy(settings: Settings, name: str) -> RegistryCheck:
    """Return the problems of a pack's policy, and its rules that never decide.

    Raise the errors of `find_pack`, but return the problems of a pack with errors. For an
    unreadable file, return all its problems."""
    checked = check_pack_file(settings, name)
    catalog = checked.catalog
    pack = next(
        (each for each in catalog.packs.values() if each.file in (catalog.only or ())), None
    )
    if pack is None:
        return checked
    report = ProblemReport(
        pack.file, catalog.places.get(pack.file), subject=f"pack `{pack.pack_id}`"
    )
    check_reach(pack, report, tool_names(catalog), skill_tools(catalog, pack, catalog.by_name))
    own = [
        each
        for each in checked.problems
        if each.code.startswith("policy.") or each.path.startswith(_POLICY)
    ]
    return checked._replace(problems=sort_problems([*own, *report.problems]))


def run_rule_tests(settings: Settings, name: str, pack: Pack) -> list[RuleTestResult]:
    """Return the results of the tests in a pack. `name` is the pack's name for error messages. The registry is read
    only if a test expects a text, because the classification of a fact is in its capability.
    """
    rules = pack.policy.rules
    if not expects_texts(rules):
        return run_tests(rules)
    catalog = find_pack(settings, name).catalog
    known = {**catalog.by_name, **skill_tools(catalog, pack, catalog.by_name)}
    return run_tests(rules, list_rule_values(pack, known))


def resolve_pack(settings: Settings, name: str, skill_id: str = "") -> str:
    """Return the reference of a named pack: the name itself, or the pinned reference of a bare id.

    The searched layers are those of a run of the skill. Without a skill, they are those of a run of the pack's agent.
    Raise UnusableEnvironment `pack.unpinned` or `pack.unknown`. Raise `pack.mismatch` if layers contain different packs
    of this version and no hash selects one.
    """
    return _locate_pack(
        settings, name, run_of=("skill", skill_id) if skill_id else ("pack", "")
    ).reference


def read_pack(settings: Settings, name: str) -> Pack:
    """Return a pack by reference, bare id or file. Raise the errors of `find_pack`."""
    return _load_pack(settings, name, packs_alone=True).pack


def find_pack(settings: Settings, name: str) -> PackInRegistry:
    """Return a pack and its registry. The pack is given by reference, bare id or file.

    Raise the errors of `resolve_pack`, `pack.mismatch` if its hash is not the one in the reference,
    and ProblemsFound for a pack with errors."""
    return _load_pack(settings, name, packs_alone=False)


def _load_pack(settings: Settings, name: str, *, packs_alone: bool) -> PackInRegistry:
    """Return the same as `find_pack`. With `packs_alone`, its registry contains only packs."""
    located = _locate_pack(settings, name)
    catalog = open_registry(settings).files([located.path], packs_alone=packs_alone)
    pack = next(
        (each for each in catalog.packs.values() if each.file in (catalog.only or ())), None
    )
    if pack is None:
        raise ProblemsFound(list(catalog.problems))
    wanted = located.reference.partition("#")[2]
    if wanted and wanted != pack.hash:
        text = f"pack `{pack.pack_id}@{pack.version}` is {pack.hash}, not {wanted}"
        raise UnusableEnvironment(
            "pack.mismatch", text, hint="restore it, or name the pack that you mean"
        )
    return PackInRegistry(pack, located.path, catalog)


class _LocatedPack(NamedTuple):
    """The reference of a pack, empty if it was given as a file, and the path of its file."""

    reference: str
    path: str


def _unknown_pack_error(settings: Settings, registry: Registry, id: str) -> UnusableEnvironment:
    """Return the error for an id without a pack in the searched layers."""
    if open_registry(settings).paths("pack", id):
        return UnusableEnvironment(
            "pack.unknown",
            f"no pack `{id}` but that of the project, which is not trusted",
            hint="a project's packs count once it is trusted",
            next=("cogcli config trust",),
        )
    hint = suggestion(id, registry.ids("pack")) or "packs are in packs/ID/VERSION.yaml"
    return UnusableEnvironment("pack.unknown", f"no pack `{id}`", hint=hint)


def _locate_pack(
    settings: Settings, name: str, *, run_of: tuple[str, str] | None = None
) -> _LocatedPack:
    """Return the reference and the file of a named pack.

    `run_of` is the kind and id of the run whose layers are searched. An empty id stands for the
    pack's own agent."""
    if name.endswith((".yaml", ".yml")):
        return _locate_file(name)
    reference = name if "@" in name else _find_pinned_reference(settings, name)
    id, mark, wanted = reference.partition("#")
    if mark and not wanted:
        hint = (
            "write it, as `cogcli pack hash` shows it, or leave `#` out for whatever the file holds"
        )
        raise UsageError("usage.value", f"`{name}`: no hash behind `#`", hint=hint)
    registry = open_registry(settings)
    if run_of is not None:
        registry = registry.for_run(run_of[0], run_of[1] or id)
    paths = registry.paths("pack", id)
    if not paths:
        raise _unknown_pack_error(settings, registry, id)
    if len(paths) > 1:
        paths = _files_with_hash(settings, registry, id, wanted) or paths
    return _LocatedPack(reference, paths[-1])


def _locate_file(name: str) -> _LocatedPack:
    """Return a pack that is given as a file. Raise UsageError if the file does not exist."""
    if not os.path.lexists(name):
        raise UsageError("input.file", f"`{name}` does not exist", hint="name the file of a pack")
    return _LocatedPack("", name)


def _files_with_hash(
    settings: Settings, registry: Registry, id: str, wanted_hash: str
) -> list[str]:
    """Return the files of a pack with the wanted hash.

    If no hash is wanted, return an empty list, or raise UnusableEnvironment if the files differ."""
    hashes = registry.packs(id)
    if wanted_hash:
        return [path for path, each in hashes.items() if each == wanted_hash]
    if len(set(hashes.values())) > 1:
        named = " or ".join(f"{id}#{each}" for each in dict.fromkeys(hashes.values()) if each)
        text = f"layers hold several packs `{id}`: {', '.join(map(settings.display_path, hashes))}"
        raise UnusableEnvironment(
            "pack.mismatch", text, hint=f"name the one that you mean: {named}"
        )
    return []


def _find_pinned_reference(settings: Settings, id: str) -> str:
    """Return the pinned reference of a bare id. Raise UnusableEnvironment if the id is not pinned, even if only one
    version exists.
    """
    settings.require_sound_files()
    pin = active_pins(settings).get(id)
    if pin is not None:
        return pin.reference
    known = open_registry(settings).ids("pack")
    versions = [each for each in known if each.startswith(f"{id}@")]
    if not versions:
        hint = suggestion(id, known) or "packs are in packs/ID/VERSION.yaml"
        raise UnusableEnvironment("pack.unknown", f"no pack `{id}`", hint=hint)
    environment = active_environment(settings.environ)
    flag = f" --env {environment}" if environment else ""
    where = f" in the environment `{environment}`" if environment else ""
    next = [f"cogcli pack pin {versions[-1]}{flag}"]
    hint = f"name a version: {', '.join(versions)}"
    if has_untrusted_pin(settings, id):
        next, hint = ["cogcli config trust"], "pins of a project count once it is trusted"
    raise UnusableEnvironment(
        "pack.unpinned", f"no version of `{id}` is pinned{where}", hint=hint, next=tuple(next)
    )


def evaluate_call(pack_in_registry: PackInRegistry, capability_id: str, data: Json) -> Verdict:
    """Return the verdict of a pack's policy on a call with this data (docs/reference/pack.md#rules).

    In the data, `request`, `agent`, `run`, `user` and `args` are intent, role, ceiling, user and arguments. `limits`
    are the values of the limits' counters. Raise UsageError for an unknown capability and for data of a wrong type,
    which would describe another call.
    """
    pack, catalog = pack_in_registry.pack, pack_in_registry.catalog
    capability = find_tool(catalog, capability_id)
    if capability is None:
        hint = suggestion(capability_id, tool_names(catalog))
        raise UsageError("usage.value", f"no capability `{capability_id}`", hint=hint)
    _require_valid_data(data)
    given = read_record(CallData, data)
    call = GovernedCall(
        capability.id,
        mode_under(pack.tooling.capabilities, capability),
        given.agent.role or pack.tone.agent.role,
        given.run.safety_mode or pack.meta.defaults.safety_mode,
        given.args,
        named_user=given.user.id != "default",
    )
    verdict = Policy.of(pack).decide(given.request.intent, call, dict(data))
    owners = {**{slot: value_at(each, "id") for slot, each in data.items()}, "tenant": pack.tenant}
    owners["user"] = given.user.id
    claims = find_claims(pack, given.request.intent, capability.id, given.args or {}, owners)
    return apply_limits(verdict, claims, use_in_data(data.get("limits"), claims))


class CallIdentity(Record):
    """The members of an object in the data that identify a call."""

    intent: str
    id: object = "default"
    role: str
    safety_mode: str


class CallData(Record):
    """The data that describes a call."""

    request: CallIdentity
    user: CallIdentity
    agent: CallIdentity
    run: CallIdentity
    args: Json | None = None


_PARTS: Final = {
    "request": ("intent",),
    "user": ("id",),
    "agent": ("role",),
    "run": ("safety_mode",),
    "args": (),
    "limits": (),
}
"""The text members of the data that identify a call, by object."""


def _require_valid_data(data: Json) -> None:
    """Raise UsageError if a member that identifies the call has a wrong type or an unknown safety
    mode."""
    for name, texts in _PARTS.items():
        part = data.get(name)
        if part is None:
            continue
        if not isinstance(part, dict):
            raise UsageError(
                "input.type", f"`{name}` of the data: expected an object, found {kind_of(part)}"
            )
        for each in texts:
            value = part.get(each)
            if value is not None and not isinstance(value, str):
                text = f"`{name}.{each}` of the data: expected text, found {kind_of(value)}"
                raise UsageError("input.type", text)
    mode = read_record(CallData, data).run.safety_mode
    if mode and mode not in MODES:
        hint = suggestion(mode, MODES)
        raise UsageError(
            "usage.value", f"`run.safety_mode` of the data: no mode `{mode}`", hint=hint
        )
