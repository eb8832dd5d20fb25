"""Checks of a test case against the specs: the names of its stubs, their contracts, and the
services it may reach (docs/reference/test-case.md#run)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NoReturn

from cogcli.app.registry import selection_options
from cogcli.app.settings import Settings
from cogcli.authoring.verification.skill_case import CaseFault, SkillCase
from cogcli.authoring.verification.stubs import Stub
from cogcli.base.errors import BindingResolutionError
from cogcli.base.problems import KeyPath, suggestion
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Catalog
from cogcli.specs.catalog_builder import CatalogBuilder
from cogcli.specs.fields import fit_values
from cogcli.specs.registry import Registry
from cogcli.specs.selection import named_binding
from cogcli.specs.skill import targets_of


class CaseRegistry(Registry):
    """The registry of a case.

    Its catalogs contain the stubbed capabilities, and steps that call stubs do not wait before a
    retry.
    """

    def __init__(self, settings: Settings, case: SkillCase) -> None:
        cache = CompiledCache(settings.cache_file)
        super().__init__(
            settings.layers,
            protocols=PROTOCOLS,
            cache=cache,
            base=settings.base,
            environ=settings.environ,
            ceilings=settings.ceilings,
        )
        self._case = case

    def _build_catalog(self, builder: CatalogBuilder, *, partial: bool) -> Catalog:
        catalog, case = super()._build_catalog(builder, partial=partial), self._case
        stubbed = {catalog.aliases.get(name, name) for name in case.stubs}
        if case.recorded:
            stubbed = set(catalog.capabilities) - {
                catalog.aliases.get(name, name) for name in case.real
            }
        return _without_waits(catalog._replace(stubbed=frozenset(stubbed)))


def _without_waits(catalog: Catalog) -> Catalog:
    def stubbed(name: str) -> bool:
        return catalog.aliases.get(name, name) in catalog.stubbed

    def step_of(step: Step) -> Step:
        retry = step.config.retry
        if retry is None or not all(stubbed(target) for _, target in targets_of(step)):
            return step
        return step.replace(config=step.config.replace(retry=retry.replace(backoff_seconds=0.0)))

    skills = {
        id: skill.replace(steps=tuple(map(step_of, skill.steps)))
        for id, skill in catalog.skills.items()
    }
    bindings = {
        id: one.replace(metadata=one.metadata.replace(retry_backoff_base=0.0))
        if stubbed(one.capability)
        else one
        for id, one in catalog.bindings.items()
    }
    return catalog._replace(skills=skills, bindings=bindings)


def require_own_skill(settings: Settings, case: SkillCase, catalog: Catalog) -> None:
    skill = catalog.skills.get(case.skill_id)
    own = os.path.realpath(os.path.dirname(case.source.folder))
    if (
        skill is not None
        and os.path.realpath(os.path.join(settings.base, os.path.dirname(skill.file))) != own
    ):
        message = (
            f"`{case.skill_id}` is replaced by {skill.file}, and this case belongs to another one"
        )
        raise CaseFault(case, "test.skill", (), message)


def read_stubs(case: SkillCase, catalog: Catalog) -> Iterator[Stub]:
    """Yield the stubs, after checking their outputs by the contract of the capability. Raise
    CaseFault `test.stub`.
    """
    for name, answers in case.stubs.items():
        capability = catalog.capability(name) or _raise_unknown(
            case, catalog, name, ("stubs", name)
        )
        for number, one in enumerate(answers):
            output, error = one.output, one.error
            if output is not None:
                output = _require_fitting_output(
                    case, capability, output, ("stubs", name, number, "output")
                )
            yield Stub(capability.id, number, one.when, output, error.json if error else None)


def require_called_by_skill(
    case: SkillCase, catalog: Catalog, *path: str, names: Iterable[str]
) -> None:
    """Raise CaseFault `test.stub` for a name at a path of the case that is not a capability called
    by the skill.
    """
    for number, name in enumerate(names):
        if catalog.capability(name) is None:
            _raise_unknown(
                case, catalog, name, (*path, name if isinstance(names, dict) else number)
            )


def _raise_unknown(case: SkillCase, catalog: Catalog, name: str, path: KeyPath) -> NoReturn:
    if file := catalog.broken.get(f"capability:{name}"):
        raise CaseFault(case, "test.stub", path, f"capability `{name}`: its file {file} has errors")
    known = sorted({*catalog.capabilities, *catalog.aliases})
    hint = (
        suggestion(name, known)
        or f"it calls {', '.join(sorted(catalog.capabilities)) or 'nothing'}"
    )
    raise CaseFault(
        case, "test.stub", path, f"`{case.skill_id}` calls no capability `{name}`", hint
    )


def _require_fitting_output(
    case: SkillCase, capability: Capability, output: Json, path: KeyPath
) -> Json:
    for name in output:
        if name not in capability.outputs:
            message, hint = (
                f"`{capability.id}` has no output `{name}`",
                suggestion(name, capability.outputs),
            )
            raise CaseFault(case, "test.stub", (*path, name), message, hint)
    kept, violations = fit_values(capability.outputs, output)
    if violations:
        first = violations[0]
        place = path if first.kind == "missing" else (*path, *first.place.split("/")[:1])
        raise CaseFault(
            case,
            "test.stub",
            place,
            f"output {first.message}, by the contract of `{capability.id}`",
        )
    return kept


def require_harmless(
    settings: Settings, case: SkillCase, catalog: Catalog, *, may_be_real: bool
) -> None:
    """Raise CaseFault `test.effects` for a capability with possible outside effects that is neither
    stubbed nor real.
    """
    if case.real and not may_be_real:
        hint = "trust the project, if you mean it: cogcli config trust\nor allow a host for one run: --allow-host HOST"
        raise CaseFault(
            case, "test.effects", ("real",), "`real` counts in a trusted project only", hint
        )
    real = {catalog.aliases.get(name, name) for name in case.real}
    for capability in catalog.reached(case.skill_id):
        if capability.id in catalog.stubbed or capability.id in real:
            continue
        if why := outside_reach_reason(
            settings, catalog, capability, case.options.get("bind") or {}
        ):
            message = f"`{capability.id}` {why}, and is neither stubbed nor listed in `real`"
            raise CaseFault(
                case,
                "test.effects",
                (),
                message,
                f"add stubs: {{{capability.id}: [{{output: ...}}]}}",
            )


def outside_reach_reason(
    settings: Settings, catalog: Catalog, capability: Capability, binds: Mapping[str, str]
) -> str:
    """Return why a call may change or depend on something outside the run; empty for a local
    function without effects.
    """
    if capability.effect != "none":
        return (
            "does not say whether it has effects"
            if capability.effect == "unknown"
            else "has effects"
        )
    options = selection_options(settings)._replace(binds=binds)
    try:
        chain = named_binding(catalog, capability.id, options).chain
    except BindingResolutionError:
        return ""  # reported before the run
    services = [catalog.services.get(link.service_id or "") for link in chain]
    outside = [service.id for service in services if service and not catalog.in_process(service)]
    return f"is served by `{outside[0]}`, outside of this process" if outside else ""
