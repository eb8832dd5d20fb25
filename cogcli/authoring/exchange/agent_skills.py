"""`import agent-skills`: the settings with which skills of agent-skills run in a project
(docs/how-to/come-from-agent-skills.md).

1. Nothing is written, and no code of those folders runs: they are read as an untrusted registry.
2. The proposal is tested in memory: with its choices the counted skills could run.
3. Each problem that settings, choices and variables cannot solve is reported with its place and
   reason."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from cogcli.app.needs import RequirementSearch
from cogcli.app.registry import selection_options
from cogcli.app.settings import Settings
from cogcli.app.settings.config import PROJECT_FILE
from cogcli.authoring.exchange.foreign_folder import (
    find_outward_links,
    has_specs,
    require_folder,
)
from cogcli.authoring.exchange.module_faults import ImportRemark, ModuleFaultSearch, line_of
from cogcli.authoring.exchange.project_files import ProjectFiles
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import FILE_HAS_ERRORS, Problem
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.eligibility import path_of_variable, reasons, variables_of
from cogcli.specs.host_overrides import ActiveChoice
from cogcli.specs.layers import (
    BUILT_IN,
    HOST,
    HOST_FOLDER,
    PROJECT,
    Layer,
    bounded_layers,
    builtin_root,
    distinct,
)
from cogcli.specs.registry import Registry
from cogcli.specs.selection import CANDIDATE, Explanation, SelectionOptions, explain_selection
from cogcli.specs.service import is_shipped
from cogcli.specs.service_variables import lacking_variables
from cogcli.specs.skill import list_targets

BESIDE: Final = "agent-skill-registry"
"""The folder of the registry next to the tool, under the name in the agent-skills documentation."""
_SETTLED: Final = frozenset((
    "service.untrusted", "service.isolation", "env.missing", "binding.none", "binding.ambiguous", "binding.ineligible",
    "active.binding", "active.capability",
))  # fmt: skip
"""Codes of problems that trust, variables and choices solve. The rest is reported for the skills
that cannot run."""


class Setup(NamedTuple):
    """The files to paste, the variables to set, the commands to run, and the remaining problems."""

    files: dict[str, str]
    """The text for each file; for an existing file the lines that it must contain."""
    there: tuple[str, ...]
    """The files that exist already."""
    choices: dict[str, ImportRemark]
    """The reason for each chosen binding, by capability; the text of the remark is the binding."""
    variables: dict[str, ImportRemark]
    """The reason for each unset variable, by name."""
    commands: tuple[str, ...]
    left: tuple[ImportRemark, ...]
    skills: int
    usable: int
    """The number of skills that could run with this setup."""
    own: int
    """The number of these that call only functions and services of the folders."""
    builtin: bool = True
    """Whether the shipped registry is used."""

    def to_payload(self) -> Json:
        """Return the setup as a JSON object."""
        return {
            **self._asdict(),
            "there": list(self.there),
            "choices": {id: each.to_payload() for id, each in self.choices.items()},
            "variables": {name: each.to_payload() for name, each in self.variables.items()},
            "commands": list(self.commands),
            "left": [each.to_payload() for each in self.left],
        }


def propose(settings: Settings, runtime: str, registry: str | None) -> Setup:
    """Return the setup for the tool's folder and its registry's folder in the current project,
    which may not exist yet.

    Raise UsageError for a folder that does not exist or contains no specs, UnusableEnvironment
    `config.key` or `project.link`.
    """
    builtin = settings.value("builtin")
    proposal = _Proposal(settings, runtime, registry, builtin=builtin)
    setup = proposal.setup()
    if not builtin or setup.own == setup.skills or proposal.project_has_specs:
        return setup
    alone = _Proposal(settings, runtime, registry, builtin=False).setup()
    if alone.usable < setup.usable or alone.own <= setup.own:
        return setup
    line = (
        f"# With the shipped registry {setup.own} of {setup.skills} skills call only what is in these folders,"
        f" without it {alone.own}.\nbuiltin = false\n"
    )
    return alone._replace(files={**alone.files, PROJECT_FILE: line + alone.files[PROJECT_FILE]})


class _Proposal:
    """The folders, and the registry that a project with them would have, optionally with the
    shipped specs.

    `home` is the folder of the project, even if it does not exist yet.
    """

    def __init__(
        self, settings: Settings, runtime: str, registry: str | None, *, builtin: bool
    ) -> None:
        self.settings, self.builtin = settings, builtin
        self.home = settings.project or settings.base
        for folder in (runtime, registry):
            settings.require_inside(folder or runtime)
        tool = require_folder(runtime, "RUNTIME")
        self.roots = _find_roots(tool, registry)
        own = os.path.join(self.home, HOST_FOLDER)
        self.host = own if os.path.isdir(own) else os.path.join(tool, HOST_FOLDER)
        self.links = [path for root in self.roots for path in find_outward_links(root)]
        self.layers = self._proposed_layers(settings)
        reader = Registry(
            self.layers,
            protocols=PROTOCOLS,
            cache=None,
            base=settings.base,
            environ=settings.environ,
        )
        self.read = reader.everything()
        """The catalog of an untrusted project, which is checked."""
        self.catalog = _as_trusted(self.read)
        """The catalog of the project once it is trusted, without its modules. Bindings are chosen
        from it.
        """
        self.options = selection_options(settings)

    @property
    def project_has_specs(self) -> bool:
        """Whether the project has other specs, which may need the shipped registry."""
        return self.home not in self.roots and has_specs(self.home)

    def _proposed_layers(self, settings: Settings) -> list[Layer]:
        """Return the future layers of the project, all untrusted, so that the checks import nothing."""
        mine = set(map(os.path.realpath, self.roots))
        known = [
            Layer(root.path, root.path, False)
            for root in settings.roots
            if os.path.realpath(root.path) not in mine
        ]
        named = [Layer(root, root, False, lenient=True, confined=True) for root in self.roots]
        layers = [Layer(BUILT_IN, builtin_root(), True)] if self.builtin else []
        layers.append(Layer(PROJECT, self.home, False, confined=self.home in self.roots))
        if os.path.isdir(self.host) and self.host not in self.links:
            theirs = os.path.dirname(self.host) in self.roots
            named.append(Layer(HOST, self.host, False, host=True, confined=theirs))
        return bounded_layers(distinct([*layers, *known, *named]), settings.bound)

    def setup(self) -> Setup:
        """Return the setup."""
        mine = self._list_problems()
        contradictions = [problem for problem in mine if self._is_contradiction(problem)]
        left = list(self._find_blocking_problems(mine, contradictions))
        python = list(
            ModuleFaultSearch(self.settings, self.home, self.read, self._is_of_project).find_all()
        )
        broken = {remark.file for remark in left} | {file for file, _ in python}
        left += [remark for _, remark in python]
        self.catalog = _without_bindings(self.catalog, broken)
        choices, variables = self._choose_bindings()
        skills = [
            skill for skill in self.catalog.skills.values() if self._is_of_project(skill.file)
        ]
        needs = self._remaining_needs(choices, variables)
        left += self._unusable_skills(skills, needs, broken)
        usable = [skill.id for skill in skills if not needs.skill(skill.id)]
        files = ProjectFiles(
            self.settings, self.home, self.host, self.roots, self.links, self.layers
        ).render(contradictions, {id: each.text for id, each in choices.items()})
        return Setup(
            files=files,
            there=tuple(name for name in files if os.path.lexists(os.path.join(self.home, name))),
            choices=choices,
            variables=variables,
            commands=("cogcli config trust", "cogcli validate", "cogcli skills ls --usable"),
            left=tuple(sorted(set(left))),
            skills=len(skills) + self._count_unreadable(),
            usable=len(usable),
            own=sum(self._is_own(id, choices) for id in usable),
            builtin=self.builtin,
        )

    def _list_problems(self) -> list[Problem]:
        """Return the problems of these folders, if no contradiction is allowed in them."""
        strict = _without_modules(self.read)._replace(lenient=frozenset())
        found = check(strict, options=self.options)
        return [problem for problem in found if self._is_of_project(problem.file)]

    def _unusable_skills(
        self, skills: Iterable[Skill], needs: RequirementSearch, broken: Collection[str]
    ) -> Iterator[ImportRemark]:
        """Yield the skills that cannot run, with the reason, but for those whose file is broken."""
        for skill in skills:
            if needs.skill(skill.id) and skill.file not in broken:
                reason = "; ".join(self._describe_lacking_calls(skill, needs))
                yield ImportRemark(skill.file, 1, f"skill `{skill.id}` cannot run", reason)

    def _count_unreadable(self) -> int:
        """Return the number of skills whose files cannot be read."""
        broken = self.catalog.broken.items()
        return sum(key.startswith("skill:") and self._is_of_project(file) for key, file in broken)

    # -- what is wrong ----------------------------------------------------------------------------------------------

    def _is_of_project(self, file: str) -> bool:
        path = os.path.join(self.settings.base, file)
        return any(
            path.startswith(root.rstrip(os.sep) + os.sep) for root in (*self.roots, self.host)
        )

    def _is_contradiction(self, problem: Problem) -> bool:
        """Return whether a problem is allowed in a lenient root."""
        typed = problem.code == "flow.type" and problem.file in self.catalog.lenient
        return typed or (problem.code == "yaml.duplicate-key" and problem.severity == "W")

    def _find_blocking_problems(
        self, problems: Iterable[Problem], contradictions: list[Problem]
    ) -> Iterator[ImportRemark]:
        """Yield the problems that only a change of the file solves: errors, specs that are not
        loaded, links that are not followed.
        """
        for path in self.links:
            message = "this link leads out of its folder, so it is not read"
            hint = "put the file itself there"
            yield ImportRemark(self.settings.display_path(path), 0, message, hint)
        if not any(_holds_skills(root) for root in self.roots):
            display_path = self.settings.display_path(self.roots[-1])
            yield ImportRemark(
                display_path,
                0,
                "no skills and no capabilities are here",
                "name the folder of the registry, too",
            )
        for problem in problems:
            if _is_refusal(problem) and problem not in contradictions:
                text = f"{problem.code}: {problem.message}"
                yield ImportRemark(
                    problem.file, problem.line, text, problem.hint.replace("\n", "; ")
                )

    def _describe_lacking_calls(self, skill: Skill, needs: RequirementSearch) -> Iterator[str]:
        """Yield the calls that keep a skill from running, each with the reason."""
        for target in list_targets(skill):
            nested, name = target.startswith(NESTED), target.removeprefix(NESTED)
            lacking = needs.skill(name) if nested else needs.capability(target)
            if not lacking:
                continue
            files = set() if nested else self._refused_bindings(target)
            if files:
                yield f"`{target}`: none of its bindings can be used ({', '.join(sorted(files))})"
            elif nested and name in self.catalog.skills:
                yield f"`{target}` cannot run"  # its own remark reports this, or `doctor` if it is shipped
            else:
                yield f"`{target}`: {lacking[0].text}"

    def _refused_bindings(self, capability: str) -> set[str]:
        """Return the bindings of a capability that were read and cannot be used, with their files."""
        return {
            f"`{id}` in {self.read.bindings[id].file}"
            for id in self.read.bindings_of.get(capability, ())
            if id not in self.catalog.bindings
        }

    # -- what to choose ---------------------------------------------------------------------------------------------

    def _choose_bindings(self) -> tuple[dict[str, ImportRemark], dict[str, ImportRemark]]:
        """Return the bindings to activate instead of uncallable ones, and the unset variables of
        capabilities without a callable binding.
        """
        choices: dict[str, ImportRemark] = {}
        variables: dict[str, ImportRemark] = {}
        for id in self._needed_capabilities():
            explained = explain_selection(self.catalog, id, self.options)
            other = self._best_callable_binding(id)
            if explained.error is None:
                if choice := self._own_choice(id, explained, other):
                    choices[id] = choice
                continue
            unset = dict(self._list_unset_variables(explained))
            if other:
                file, line = next(
                    ((each.file, each.line) for each in unset.values()),
                    self._find_binding_choice(id),
                )
                choices[id] = ImportRemark(file, line, other, explained.error.message)
            else:
                variables = unset | variables
        return choices, variables

    def _own_choice(
        self, id: str, explanation: Explanation, own_binding: str
    ) -> ImportRemark | None:
        """Return the folders' binding for one of their capabilities that a shipped binding would
        otherwise serve; None without one.
        """
        selected = explanation.selection.chain[0].binding_id if explanation.selection else ""
        catalog = self.catalog
        if (
            not selected
            or not own_binding
            or not self._is_of_project(catalog.capabilities[id].file)
        ):
            return None
        if self._is_of_project(catalog.bindings[selected].file) or not self._is_of_project(
            catalog.bindings[own_binding].file
        ):
            return None
        file, line = self._find_binding_choice(id)
        return ImportRemark(
            file, line, own_binding, f"else the shipped binding `{selected}` would answer"
        )

    def _is_own(
        self, id: str, choices: Mapping[str, ImportRemark], visited: frozenset[str] = frozenset()
    ) -> bool:
        """Return whether a skill calls only functions and services of the folders.

        The choices that prefer these to shipped ones are ignored.
        """
        skill = self.catalog.skills.get(id)
        if skill is None or id in visited:
            return skill is not None
        for target in list_targets(skill):
            if target.startswith(NESTED):
                if not self._is_own(target.removeprefix(NESTED), choices, visited | {id}):
                    return False
            elif not self._is_of_project(self._called_file(target, choices)):
                return False
        return True

    def _called_file(self, target: str, choices: Mapping[str, ImportRemark]) -> str:
        """Return the file of the binding through which a capability is called; empty without one."""
        capability = self.catalog.by_name.get(target)
        if capability is None:
            return ""
        explained = explain_selection(self.catalog, capability.id, self.options)
        chain = explained.selection.chain if explained.error is None and explained.selection else ()
        binding = chain[0].binding_id if chain else ""
        if not binding and capability.id in choices:
            binding = choices[capability.id].text
        found = self.catalog.bindings.get(binding)
        return found.file if found else ""

    def _needed_capabilities(self) -> list[str]:
        """Return the capabilities that the folders declare, and those of their bindings."""
        capabilities = self.catalog.capabilities
        own = [
            id for id, capability in capabilities.items() if self._is_of_project(capability.file)
        ]
        bound = [
            each.capability
            for each in self.catalog.bindings.values()
            if self._is_of_project(each.file)
        ]
        return sorted({id for id in (*own, *bound) if id in capabilities})

    def _best_callable_binding(self, id: str) -> str:
        """Return the best callable binding of a capability: the folders' bindings before shipped
        ones, functions before others.
        """
        catalog = self.catalog
        found = [
            (
                not self._is_of_project(binding.file),
                not PROTOCOLS[binding.protocol].in_process,
                binding.id,
            )
            for binding in (catalog.bindings[name] for name in catalog.bindings_of.get(id, ()))
            if binding.channel != CANDIDATE and not reasons(catalog, binding, self.options)
        ]
        return min(found)[2] if found else ""

    def _list_unset_variables(self, explanation: Explanation) -> Iterator[tuple[str, ImportRemark]]:
        """Yield the unset variables, by name, that the named binding of a capability needs."""
        for link in explanation.selection.chain if explanation.selection else ():
            binding = self.catalog.bindings.get(link.binding_id)
            service = self.catalog.services.get(link.service_id or "")
            if service is None:
                continue
            for name in self._missing_variables(binding, service):
                yield name, self._remark_for(name, service, explanation.capability_id)

    def _missing_variables(self, binding: Binding | None, service: Service) -> list[str]:
        """Return the names of the variables that a call through a service needs, and that are not set."""
        environ = self.settings.environ
        names = [name for name in variables_of(binding, service) if not environ.get(name)]
        if service.variables:
            names += lacking_variables(service, environ, binding)
        return names

    def _remark_for(self, variable: str, service: Service, capability_id: str) -> ImportRemark:
        """Return the remark that a service of a capability needs a variable."""
        line = line_of(
            self.catalog, service.file, (*service.at, *path_of_variable(service, variable))
        )
        return ImportRemark(service.file, line, f"service `{service.id}`", capability_id)

    def _find_binding_choice(self, id: str) -> tuple[str, int]:
        """Return file and line that currently name a binding for a capability, else the place of the
        capability.
        """
        host, defaults = self.catalog.host, self.catalog.defaults
        if (active := host.active.get(id)) is not None:
            return active.file, line_of(self.catalog, active.file, (active.key,))
        if (file := defaults.files.get(id)) is not None:
            return file, line_of(self.catalog, file, ("defaults", id))
        return self.catalog.capabilities[id].file, 1

    def _remaining_needs(
        self, choices: Mapping[str, ImportRemark], variables: Iterable[str]
    ) -> RequirementSearch:
        """Return the remaining needs of skills with these choices and variables."""
        host = self.catalog.host
        active = host.active | {id: ActiveChoice(each.text, "", id) for id, each in choices.items()}
        chosen = self.catalog._replace(host=host._replace(active=active))
        environ = {**self.settings.environ, **dict.fromkeys(variables, "set")}
        options: SelectionOptions = self.options._replace(environ=environ)
        return RequirementSearch(chosen, options)


def _find_roots(tool: str, registry: str | None) -> list[str]:
    """Return the folder of the registry and that of the tool, which may be the same. Without a
    registry it is the folder next to a tool that has no skills. Raise UsageError `usage.value` for a
    folder without specs."""
    beside = os.path.join(os.path.dirname(tool), BESIDE)
    if registry is None and not _holds_skills(tool) and os.path.isdir(beside):
        registry = beside
    specs = require_folder(registry, "REGISTRY") if registry is not None else tool
    roots = list(dict.fromkeys((specs, tool)))
    for root in roots:
        if not has_specs(root):
            hint = "name the tool's folder, which has bindings/ and services/, then that of its registry"
            raise UsageError("usage.value", f"`{root}` holds no specs", hint=hint)
    return roots


def _is_refusal(problem: Problem) -> bool:
    """Return whether a problem prevents the use of a spec, and no setting, choice or variable solves it."""
    if problem.message.endswith(FILE_HAS_ERRORS):  # caused by a file whose own errors are reported
        return False
    is_wrong = (
        problem.severity == "E" or problem.code.startswith("layout.") or problem.code == "id.format"
    )
    return is_wrong and problem.code not in _SETTLED


def _holds_skills(root: str) -> bool:
    return any(os.path.isdir(os.path.join(root, name)) for name in ("skills", "capabilities"))


def _as_trusted(catalog: Catalog) -> Catalog:
    """Return the catalog as it will be in a trusted project, without the modules of its services."""
    services = {
        id: service.replace(trusted=True, distrust="")
        for id, service in _without_modules(catalog).services.items()
    }
    bindings = {
        id: each.replace(trusted=True, distrust="") for id, each in catalog.bindings.items()
    }
    return catalog._replace(services=services, bindings=bindings)


def _without_modules(catalog: Catalog) -> Catalog:
    """Return the catalog without the modules of untrusted services, so that no check looks for one.

    `module_faults` reports about them."""
    services = {
        id: service
        if service.trusted or is_shipped(service.module or "")
        else service.replace(module=None)
        for id, service in catalog.services.items()
    }
    return catalog._replace(services=services)


def _without_bindings(catalog: Catalog, broken: set[str]) -> Catalog:
    """Return the catalog without the bindings whose file, or whose service's file, is unusable."""
    services = {id for id, service in catalog.services.items() if service.file in broken}
    kept = {
        id: each
        for id, each in catalog.bindings.items()
        if each.file not in broken and each.service not in services
    }
    by_capability = {
        capability: tuple(id for id in ids if id in kept)
        for capability, ids in catalog.bindings_of.items()
    }
    return catalog._replace(bindings=kept, bindings_of=by_capability)
