"""`registry contracts` and `smoke`: capabilities called through their bindings by a real run, and
judged (docs/reference/command-line.md#registry-checks).

1. Every call of a round is a step of one run: its own bindings, no fallbacks, all trust, its runs
   directory, the user's state and the stores of the project in a temporary directory. Files of
   examples are written there, too.
2. A service outside this machine is called only if the caller names it, or if the call has no
   effects and the network may be used. Of calls with effects only shipped functions run: these
   change only their directory. Nothing from an untrusted layer is called.
3. A call that is left out for such a reason counts as skipped, with its need; it has not passed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from typing import Final

from cogcli.app.needs import (
    NETWORK,
    MissingRequirement,
    RequirementSearch,
    find_outside_need,
    first_eligible_link,
    protocol_extra,
)
from cogcli.app.registry import Layers, open_registry, selection_options, writing_to
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.authoring.spec_results import (
    TRUST,
    SpecResult,
    is_shipped,
    load_valid_catalog,
    match_ids,
)
from cogcli.authoring.verification.case import (
    Answers,
    Case,
    CaseTarget,
    Expectation,
    Inputs,
    judge,
    run_case,
)
from cogcli.authoring.verification.check_result import (
    PASSED,
    SKIPPED,
    CheckResult,
    conclude,
)
from cogcli.authoring.verification.contract import (
    ContractCall,
    example_calls,
    expect_call,
    find_step,
    minimal_inputs,
    refused_calls,
    write_files,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system_text import variable
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.options import RunOptions
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.run_history import StepHistory
from cogcli.protocols.exchange_checks import Check
from cogcli.protocols.live.breaker import Circuits
from cogcli.run.prepare import PreparedRun, RunEnvironment, RunRequest, prepare_one_step
from cogcli.specs.binding_chain import ChainLink
from cogcli.specs.catalog import Catalog
from cogcli.specs.examples import Example, examples_of
from cogcli.specs.layers import BUILT_IN, Layer
from cogcli.specs.selection import SelectionOptions

_SKILL: Final = "registry.contracts"
_STATE: Final = "XDG_STATE_HOME"
_CURES: Final = {"env.extra": "extra", "env.missing": "service"}
"""The kind of need for each code of a call that could not be made here."""


class ContractResults(NamedTuple):
    """The results by capability in order, the total seconds, the histories of the runs, and their
    catalog.
    """

    checked: tuple[SpecResult, ...]
    seconds: float
    histories: tuple[History, ...]
    catalog: Catalog


class _PlannedCall(NamedTuple):
    """A call of a round, and its binding. With `exact`, values are compared, else only their kinds."""

    capability: Capability
    binding: Binding
    call: ContractCall
    exact: bool

    @property
    def name(self) -> str:
        """The name of the call's check."""
        return self.call.name if self.exact else f"{self.call.name}, {self.binding.id}"

    def output_variables(self, step: str) -> dict[str, str]:
        """Return the variable of each output of the call's step."""
        return {name: f"{step}_{name}" for name in self.capability.outputs}

    def expectation(self, step: str) -> Expectation:
        """Return the expectation about this step of a run."""
        variables = self.output_variables(step)
        return expect_call(self.call, self.name, step, variables, exact=self.exact)


class _JudgedCall(NamedTuple):
    """A finished call: its check, its need if it could not be made on this machine, and its
    milliseconds.
    """

    check: Check
    need: MissingRequirement | None
    ms: int


def check_contracts(
    settings: Settings, words: Sequence[str] = (), *, real: Collection[str] = (), once: bool = False
) -> ContractResults:
    """Call each capability, or the named ones, with its examples through each callable binding, and
    with invalid inputs.

    With `once` it is called only with its first example through the selected binding. `real` are
    capabilities that are called at any address and with any effects. Raise ProblemsFound,
    UnusableEnvironment or UsageError.
    """
    catalog = load_valid_catalog(settings)
    ids, begun = match_ids(words, catalog.capabilities, "capability"), time.monotonic()
    with writing_to("the directory of temporary files"):
        place = tempfile.TemporaryDirectory(prefix="cogcli-registry-", ignore_cleanup_errors=True)
    with place as folder:
        survey = _ContractSurvey(settings, catalog, folder, real)
        for id in ids:
            survey.add(catalog.capabilities[id], first_only=once)
        histories = tuple(survey.run(place, calls) for (_, place), calls in survey.rounds.items())
        checked = tuple(survey.conclude(catalog.capabilities[id]) for id in ids)
    return ContractResults(checked, time.monotonic() - begun, histories, catalog)


class _ContractSurvey:
    """The planned calls and their results.

    Calls run in rounds, because a run uses one binding for a capability.
    """

    def __init__(
        self, settings: Settings, catalog: Catalog, folder: str, real: Collection[str]
    ) -> None:
        self.rounds: dict[tuple[int, str], list[_PlannedCall]] = {}
        """By number of the binding and the folder of an example that has one of its own."""
        self._settings = settings
        self._options = selection_options(settings)
        self._layers = Layers(settings)
        registry = open_registry(settings)
        if not registry.is_trusted:
            # Only declarations of trusted layers are called: an untrusted project chooses no binding.
            catalog = registry.trusted_layers().everything()
        self._catalog = _without_fallbacks(catalog)
        self._folder = folder
        self._real = real
        self._needs: dict[str, tuple[MissingRequirement, ...]] = {}
        self._judged: dict[str, list[_JudgedCall]] = {}
        self._all_needs = RequirementSearch(self._catalog, self._options)

    def add(self, capability: Capability, *, first_only: bool) -> None:
        """Plan the calls of a capability, unless it requires something that is missing here."""
        needs = self._needs[capability.id] = self._find_needs(capability)
        if needs:
            return
        for number, binding in enumerate(
            self._callable_bindings(capability)[: 1 if first_only else None]
        ):
            for call in self._contract_calls(capability, first=number == 0, first_only=first_only):
                example = call.example
                own = example is not None and example.own_folder
                place = self._place_of(capability, example) if example and own else ""
                planned = _PlannedCall(capability, binding, call, number == 0)
                self.rounds.setdefault((number, place), []).append(planned)

    def _find_needs(self, capability: Capability) -> tuple[MissingRequirement, ...]:
        usable = self._catalog.capabilities.get(capability.id)
        if usable is None or usable.file != capability.file:
            return (TRUST,)
        capabilities = dict.fromkeys(
            (capability.id, *(gate.capability for gate in capability.gates))
        )
        needs = [need for id in capabilities for need in self._all_needs.capability(id)]
        needs = needs or list(self._call_obstacles(capability))
        if not needs and not examples_of(capability):
            needs.append(MissingRequirement("example", "no example that runs"))
        return tuple(needs)

    def _call_obstacles(self, capability: Capability) -> Iterator[MissingRequirement]:
        """Yield the reasons for not calling the selected binding of a capability, although it is
        callable.
        """
        if capability.id in self._real:
            return
        link = first_eligible_link(self._catalog, capability.id, self._options)
        layers = self._layers_of(capability, link)
        if not all(layer.trusted for layer in layers):
            yield TRUST
            return
        remote_need = find_outside_need(self._catalog, capability, link)
        if remote_need is not None:
            yield from self._remote_needs(capability, remote_need)
        elif capability.effect != "none" and {layer.name for layer in layers} != {BUILT_IN}:
            yield MissingRequirement("effects", f"its effect class is {capability.effect}")

    def _remote_needs(
        self, capability: Capability, remote_need: MissingRequirement
    ) -> Iterator[MissingRequirement]:
        """Yield the needs that prevent calling a capability outside this machine."""
        if capability.effect != "none":
            yield remote_need._replace(cure="")
        elif not variable(self._settings.environ, NETWORK):
            yield remote_need._replace(cure=f"{NETWORK}=1")

    def _layers_of(self, capability: Capability, link: ChainLink) -> list[Layer]:
        """Return the layers that declare the capability with its examples, the binding and the
        service of a call.

        A spec in no layer is untrusted.
        """
        binding = self._catalog.bindings[link.binding_id]
        service = self._catalog.services[link.service_id or ""]
        known = {layer.name: layer for layer in self._settings.layers}
        names = (self._layers.of(capability.file), binding.layer, service.layer)
        return [known.get(name) or Layer(name, "", False) for name in names]

    def _callable_bindings(self, capability: Capability) -> list[Binding]:
        """Return the selected binding, then the others that are callable here."""
        catalog = self._catalog
        first = first_eligible_link(catalog, capability.id, self._options).binding_id
        found = [catalog.bindings[first]]
        for id in catalog.bindings_of.get(capability.id, ()):
            named = self._options._replace(binds={capability.id: id})
            link = first_eligible_link(catalog, capability.id, named)
            service = catalog.services.get(link.service_id or "")
            if id == first or service is None or not link.eligible:
                continue
            if find_outside_need(catalog, capability, link) or protocol_extra(service):
                continue
            if not all(layer.trusted for layer in self._layers_of(capability, link)):
                continue
            found.append(catalog.bindings[id])
        return found

    def _contract_calls(
        self, capability: Capability, *, first: bool, first_only: bool
    ) -> list[ContractCall]:
        calls = example_calls(capability, self._path_of(capability))
        if first_only:
            return calls[:1]
        if first:
            inputs = calls[0].inputs if calls else minimal_inputs(capability)
            calls += refused_calls(capability, inputs)
        return calls

    def _path_of(self, capability: Capability) -> Callable[[Example, str], str]:
        def path(example: Example, name: str) -> str:
            return os.path.normpath(os.path.join(self._place_of(capability, example), name))

        return path

    def _place_of(self, capability: Capability, example: Example) -> str:
        """Return the folder with the files of an example, after creating it if necessary."""
        folder = os.path.join(self._folder, "files", capability.id, str(example.number))
        if not os.path.isdir(folder):
            os.makedirs(folder)
            write_files(folder, example.files)
        return folder

    def run(self, place: str, planned: Sequence[_PlannedCall]) -> History:
        """Run calls as the steps of one run, in this working directory, and return its history."""
        calls = {f"c{number}": call for number, call in enumerate(planned)}
        case = Case(
            lambda: self._round_target(place or os.path.join(self._folder, "none"), calls),
            {},
            Answers(),
            [call.expectation(step) for step, call in calls.items()],
        )
        outcome = run_case(case)
        if outcome.refusal is not None:
            raise outcome.refusal
        for (step, call), judged in zip(
            calls.items(), judge(case.expectation, outcome), strict=True
        ):
            found = find_step(outcome, step)
            need = _need_of_call(call, found)
            made = self._judged.setdefault(call.capability.id, [])
            made.append(_JudgedCall(judged, need, found.ms or 0))
        return outcome.history

    def _round_target(self, place: str, calls: Mapping[str, _PlannedCall]) -> CaseTarget:
        """Return the target of a run whose steps are these calls, in this working directory."""
        binds = {each.capability.id: each.binding.id for each in calls.values()}
        options = RunOptions(
            trust_level="privileged",
            confirm=list(binds),
            bind=binds,
            keep_going=True,
            durability="none",
        )
        request = RunRequest(_SKILL, {}, options)
        environ = {**self._settings.environ, _STATE: os.path.join(self._folder, "state")}
        selection = SelectionOptions(binds, None, environ)

        def prepare(inputs: Inputs) -> PreparedRun:
            return prepare_one_step(self._catalog, _build_skill_of_calls(calls), request, selection)

        @contextmanager
        def surroundings() -> Iterator[None]:
            os.makedirs(place, exist_ok=True)
            # Shipped functions write only below the working directory.
            with _set_variable(_STATE, environ[_STATE]), chdir(place):
                yield

        return CaseTarget(self._run_environment(environ), prepare, surroundings)

    def _run_environment(self, environ: Mapping[str, str]) -> RunEnvironment:
        # Files need no confinement to an untrusted project, because nothing of it is called.
        return environment_of(self._settings.copy_for_run())._replace(
            reads=None,
            runs_dir=os.path.join(self._folder, "runs"),
            state_dir=os.path.join(self._folder, "state", "cogcli"),
            store_dir=os.path.join(self._folder, "state", "stores"),
            environ=environ,
            signer=lambda: None,
            owner=lambda: None,
            circuits=Circuits(),
            export=None,
            hooks=None,
        )

    def conclude(self, capability: Capability) -> SpecResult:
        """Return the result of a capability."""
        subject, file = " ".join(capability.description.split()), capability.file
        base = CheckResult(capability.id, SKIPPED, subject=subject, file=file)
        needs = self._needs[capability.id]
        result = base
        if not needs:
            judged = self._judged[capability.id]
            checks = [each.check for each in judged if not each.need]
            result = conclude(base, checks)._replace(ms=sum(each.ms for each in judged))
            if result.status == PASSED:
                needs = tuple(dict.fromkeys(each.need for each in judged if each.need))
        if needs:
            result = result._replace(status=SKIPPED, reason=needs[0].sentence)
        return SpecResult(result, needs, is_shipped(self._settings, file))


def _need_of_call(planned: _PlannedCall, step: StepHistory) -> MissingRequirement | None:
    """Return the need of a call that could not be made; None if it has none.

    The inputs of an example are valid. If a function that starts programs rejects them as
    unsupported, this machine does not support it.
    """
    error = step.error
    if error is None:
        return None
    kind = _CURES.get(error.code)
    safety = planned.capability.safety
    is_sandboxed = safety is not None and "sandboxed_execution" in safety.scope_constraints
    if is_sandboxed and planned.call.example and error.reason == "unsupported":
        kind = "isolation"
    return (
        MissingRequirement(kind, error.message or step.reason, error.hint or "") if kind else None
    )


def _build_skill_of_calls(calls: Mapping[str, _PlannedCall]) -> Json:
    """Return a skill that makes these calls in order. Each output is written to its own variable."""
    steps = [
        {
            "id": step,
            "uses": each.capability.id,
            "input": {name: {"$literal": value} for name, value in each.call.inputs.items()},
            "output": {name: f"vars.{key}" for name, key in each.output_variables(step).items()},
            "config": {"depends_on": []},
        }
        for step, each in calls.items()
    ]
    head = {
        "id": _SKILL,
        "name": "Contracts",
        "description": "Calls of capabilities.",
        "version": "1.0.0",
    }
    return {**head, "inputs": {}, "outputs": {}, "steps": steps}


def _without_fallbacks(catalog: Catalog) -> Catalog:
    def alone(binding: Binding) -> Binding:
        return binding.replace(metadata=binding.metadata.replace(fallback_binding_id=None))

    return catalog._replace(bindings={id: alone(one) for id, one in catalog.bindings.items()})


@contextmanager
def _set_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable of this process within the block.

    Shipped functions run in this process and find the user's state by it.
    """
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
