"""`openapi verify-bindings`: static checks, a governed call, then checks of request, reply and outputs
(docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple

from cogcli.app import scenario_run
from cogcli.app.registry import open_registry
from cogcli.app.scenario_run import Stage
from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError, UsageError
from cogcli.core.json_pointer import DocumentFault
from cogcli.core.problems import Problem, suggestion
from cogcli.core.redact import Redactor
from cogcli.core.scratch import scratch_folder
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import (
    Answering,
    ObservedExchange,
    exchange_from_mock,
    exchange_from_record,
)
from cogcli.protocols.exchange_checks import Check, Judge
from cogcli.protocols.http.curl import curl_line
from cogcli.protocols.live_document import document_server, judge_of
from cogcli.protocols.secrets import Secrets
from cogcli.runs.results import RunResult
from cogcli.specs.binding import Binding
from cogcli.specs.cache import CompiledCache
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.layers import BUILT_IN, Layer, bounded_layers, builtin_root
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.service import Service
from cogcli.verification.check_result import (
    FAILED,
    PASSED,
    SKIPPED,
    CheckResult,
    CheckResults,
    join_differences,
    verify_all,
)
from cogcli.verification.loopback_server import Loopback
from cogcli.verification.named_mocks import STAND_INS, canned_replies, stand_in
from cogcli.verification.output_diff import differences
from cogcli.verification.scenario import (
    REGISTRY,
    SPEC,
    MockServer,
    Scenario,
    directory_of,
    files_in,
    read_scenario,
)

OUTPUTS: Final = "outputs equal expected_output"


class ScenarioSource(NamedTuple):
    """A directory of scenarios. `trusted`: whether the registry beside them may read the environment."""

    directory: str
    trusted: bool
    shipped: bool = False
    """Whether they come with cogcli and are not those of the project."""


def find_scenarios(settings: Settings, protocol: str, named: str | None) -> ScenarioSource:
    """The directory of scenarios: the named one, else the project's, else the shipped one.

    Raises UsageError `input.file` where `named` is not a directory.
    """
    if named is not None:
        directory = settings.inside(os.path.abspath(named))
        if not os.path.isdir(directory):
            raise UsageError(
                "input.file", f"`--scenarios-dir`: `{named}` is not a directory", hint="name one"
            )
        return ScenarioSource(directory, _is_trusted(settings, directory))
    shipped = os.path.join(builtin_root(), directory_of(protocol))
    own = settings.inside(os.path.join(settings.project or settings.base, directory_of(protocol)))
    if files_in(own) and os.path.realpath(own) != os.path.realpath(shipped):
        return ScenarioSource(own, _is_trusted(settings, own))
    return ScenarioSource(shipped, True, shipped=os.path.realpath(own) != os.path.realpath(shipped))


def _is_trusted(settings: Settings, directory: str) -> bool:
    """Whether the registry beside scenarios is trusted: if its project is. Naming scenarios grants no trust."""
    place = os.path.realpath(directory) + os.sep
    if place.startswith(os.path.realpath(os.path.join(builtin_root(), "tooling")) + os.sep):
        return True
    return settings.trust.covers(os.path.join(directory, REGISTRY))


def read_scenarios(
    settings: Settings, source: ScenarioSource, names: Sequence[str] | None
) -> list[Scenario]:
    """All scenarios of a directory, or those named by path or by `list_names`. Raises UsageError."""
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
        read_scenario(settings.inside(path), settings.display_path(path), STAND_INS)
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
    """The ids of the bindings of a protocol that no scenario calls, sorted; of shipped ones nobody is asked for any."""
    named = {scenario.binding_id for scenario in scenarios}
    found = open_registry(settings).everything().bindings.values()
    own = (one for one in found if one.protocol == protocol and one.layer != BUILT_IN)
    return tuple(sorted(one.id for one in own if one.id not in named))


def list_names(source: ScenarioSource) -> list[str]:
    """The names of the scenarios in a directory, as `--scenario` takes them."""
    return [os.path.basename(path).removesuffix(".json") for path in files_in(source.directory)]


def verify_bindings(
    settings: Settings,
    source: ScenarioSource,
    scenarios: Sequence[Scenario],
    *,
    protocol: str,
    live: bool = False,
    jobs: int = 4,
    listener: Callable[[CheckResult], None] | None = None,
) -> CheckResults:
    """Verify each scenario, `jobs` at a time; `listener` gets each result, in the order of the scenarios."""
    with scratch_folder("verify", keep=True) as runs_dir:
        verifier = _Verifier(settings, source, scenarios, protocol, live=live, runs_dir=runs_dir)
        return verify_all(scenarios, verifier.check, jobs, listener)


class _NotRunnable(Exception):
    """A scenario cannot be run, for this reason; `skipped` where that is not a failure."""

    def __init__(self, reason: str, code: str = "", *, skipped: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.skipped = skipped


class _Verifier:
    """Verifies the scenarios of one command over one catalog, with temporary episodes in one directory."""

    def __init__(
        self,
        settings: Settings,
        source: ScenarioSource,
        scenarios: Sequence[Scenario],
        protocol: str,
        *,
        live: bool,
        runs_dir: str,
    ) -> None:
        self._settings = settings
        self._protocol = protocol
        self._live = live
        self._catalog = _catalog(settings, source, scenarios)
        options = SelectionOptions({}, None, settings.environ)
        self._problems = check(self._catalog, options=options, shipped_too=True)
        self._runs_dir = runs_dir

    def check(self, scenario: Scenario) -> CheckResult:
        """The result of one scenario. What the scenario, the binding or the service does wrong is never raised."""
        begun = time.monotonic()
        base = CheckResult(scenario.id, FAILED, subject=scenario.binding_id, file=scenario.file)
        try:
            found = self._verify(scenario, base)
        except _NotRunnable as error:
            status = SKIPPED if error.skipped else FAILED
            found = base._replace(status=status, reason=error.reason, code=error.code)
        except DocumentFault as fault:
            found = base._replace(reason=f"{fault.code}: {fault.located_message}", code=fault.code)
        except CogcliError as error:
            found = base._replace(reason=f"{error.code}: {error.message}", code=error.code)
        took = round((time.monotonic() - begun) * 1000)
        return found._replace(ms=took)

    def _verify(self, scenario: Scenario, base: CheckResult) -> CheckResult:
        capability, binding, service = self._specs(scenario)
        checks = []
        if wrong := self._blocking_problems(binding, service):
            first = wrong[0]
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            text = f"{first.code}: {first.file}:{first.line}: {first.message}{more}"
            checks.append(Check("static checks", False, text))
            if _prevents_call(first):
                reason = f"static checks: {text}"
                return base._replace(checks=tuple(checks), reason=reason, code=first.code)
        judge = judge_of(binding, service)
        catalog, environ = self._catalog, self._settings.environ
        server = self._server(scenario, service)
        live = server is None
        with server or nullcontext():
            if server is not None:
                stage = scenario_run.mock_service(catalog, capability, binding, server.url, environ)
            else:
                stage = scenario_run.stage_of(
                    catalog, capability, binding, service, environ, local=False
                )
            result, records = scenario_run.run(
                self._settings, stage, scenario, self._runs_dir, live=live
            )
        exchange = None  # of the last request; None where none was sent
        if server is not None and server.exchanges:
            exchange = exchange_from_mock(*server.exchanges[-1])
        elif server is None and records:
            exchange = exchange_from_record(records[-1])
        if (wanted := scenario.expected_service_id) is not None:
            mismatch = "" if wanted == service.id else f"found {service.id}"
            checks.append(Check(f"service is {wanted}", not mismatch, mismatch))
        if judge is not None:
            checks += _wire_checks(exchange, judge, result)
        checks.append(_outputs_check(scenario, result))
        return self._add_checks(base, stage, service, result, checks, exchange)

    def _specs(self, scenario: Scenario) -> tuple[Capability, Binding, Service]:
        catalog = self._catalog
        capability = catalog.capability(scenario.capability_id)
        if capability is None:
            near = suggestion(scenario.capability_id, catalog.capabilities)
            raise _NotRunnable(
                f"no capability `{scenario.capability_id}`{near and f'; {near}'}",
                "capability.unknown",
            )
        binding = catalog.bindings.get(scenario.binding_id)
        if binding is None:
            known = catalog.bindings_of.get(capability.id, ())
            raise _NotRunnable(
                self._missing_spec("binding", scenario.binding_id, known), "binding.unknown"
            )
        if catalog.aliases.get(binding.capability, binding.capability) != capability.id:
            reason = (
                f"binding `{binding.id}` is of `{binding.capability}`, not of `{capability.id}`"
            )
            raise _NotRunnable(reason, "binding.capability")
        if binding.protocol != self._protocol:
            protocol = binding.protocol
            reason = f"binding `{binding.id}` speaks {protocol}; say --protocol {protocol}"
            raise _NotRunnable(reason, "binding.protocol")
        service = catalog.services.get(binding.service)
        if service is None:
            raise _NotRunnable(
                self._missing_spec("service", binding.service, catalog.services), "service.unknown"
            )
        return capability, binding, service

    def _missing_spec(self, kind: str, id: str, known: Iterable[str]) -> str:
        """The reason for a spec that is not in the catalog: its file has errors, or there is none."""
        if file := self._catalog.broken.get(f"{kind}:{id}"):
            return f"{kind} `{id}`: its file {file} has errors"
        near = suggestion(id, known)
        return f"no {kind} `{id}`{near and f'; {near}'}"

    def _blocking_problems(self, binding: Binding, service: Service) -> list[Problem]:
        """The static problems of the files of binding and service that fail a scenario, errors first.

        A warning fails it where a rejected value is known.
        """
        files = {binding.file, service.file}
        found = [
            p
            for p in self._problems
            if p.file in files and (p.code != "service.untrusted" or self._live)
        ]
        rejected = [p for p in found if p.code == "wire.type" and _REJECTED.search(p.message)]
        preventing = [p for p in found if _prevents_call(p)]
        return preventing + [p for p in rejected if p not in preventing]

    def _server(self, scenario: Scenario, service: Service) -> Loopback | None:
        """The mock server of a scenario; None where the service itself is called. Raises _NotRunnable."""
        mock = scenario.mock_server
        if mock is not None and PROTOCOLS[service.kind].document is None:
            reason = f"no mock server speaks {service.kind}: leave `mock_server` out"
            raise _NotRunnable(reason, "input.unknown")
        if mock is None:
            if self._live or service.settings.get("server"):
                return None
            if not service.settings.get("spec_ref"):
                raise _NotRunnable("live (add --live)", skipped=True)
            mock = MockServer()
        return Loopback(_answering(mock, service), host=mock.host, port=mock.port)

    def _add_checks(
        self,
        base: CheckResult,
        stage: Stage,
        service: Service,
        result: RunResult,
        checks: list[Check],
        exchange: ObservedExchange | None,
    ) -> CheckResult:
        """The result with these checks, secrets masked; the episode of a passed scenario is removed."""
        redactor = _redactor(stage)
        mask = redactor.mask_text
        for number, each in enumerate(checks):
            frame = each.frame and each.frame._replace(text=mask(each.frame.text))
            checks[number] = each._replace(detail=mask(each.detail), frame=frame)
        failed = next((check for check in checks if not check.passed), None)
        code = (result.error or {}).get("code") or ""
        curl = ""
        if failed and exchange:
            origins = (
                service.settings.get(key) or stage.service.settings.get(key)
                for key in ("base_url", "url")
            )
            address = next(filter(None, origins), "")
            curl = mask(curl_line(exchange.seen, address, service, stage.binding))
        if failed is None:
            shutil.rmtree(result.directory, ignore_errors=True)
        reason = f"{failed.name}: {failed.detail}".rstrip(": ") if failed else ""
        return base._replace(
            status=FAILED if failed else PASSED,
            checks=tuple(checks),
            reason=reason,
            code=code,
            outputs=redactor.mask_known(result.outputs),
            curl=curl,
            episode=result.directory if failed else "",
        )


def _catalog(settings: Settings, source: ScenarioSource, scenarios: Iterable[Scenario]) -> Catalog:
    """All specs of the layers; the registries beside the scenarios come right after the built-in layer."""
    directories = {source.directory: source.trusted}
    for scenario in scenarios:
        folder = os.path.dirname(os.path.join(settings.base, scenario.file))
        directories.setdefault(folder, _is_trusted(settings, folder))
    roots = {os.path.join(folder, REGISTRY): trusted for folder, trusted in directories.items()}
    layers = [
        Layer(settings.display_path(root), root, trusted)
        for root, trusted in roots.items()
        if os.path.isdir(root)
    ]
    cache = CompiledCache(settings.cache_file)
    first = [layer for layer in settings.layers if layer.name == BUILT_IN]
    later = [layer for layer in settings.layers if layer not in first]
    return Registry(
        [*first, *bounded_layers(layers, settings.bound), *later],
        protocols=PROTOCOLS,
        cache=cache,
        base=settings.base,
    ).everything()


_REJECTED: Final = re.compile(r" may be .*, which .* rejects", re.DOTALL)


def _prevents_call(problem: Problem) -> bool:
    """Whether a static problem makes a call impossible: an error, an unreadable document, an untrusted service."""
    return problem.severity == "E" or problem.code in ("wire.document", "service.untrusted")


def _answering(mock: MockServer, service: Service) -> Answering:
    if mock.replies:
        return canned_replies(mock.replies)
    if mock.type != SPEC:
        return stand_in(mock.type)
    server = document_server(service)
    if server is None:
        raise _NotRunnable(
            f"service `{service.id}` has no document: give `replies` or a mock server's type"
        )
    return server


def _wire_checks(exchange: ObservedExchange | None, judge: Judge, result: RunResult) -> list[Check]:
    if exchange is None or not exchange.status:
        return [Check("the service answers", False, _error_details(result))]
    return judge(exchange)


def _error_details(result: RunResult) -> str:
    error = result.error or {}
    return f"{error.get('code')}: {error.get('message')}" if error else result.status


def _outputs_check(scenario: Scenario, result: RunResult) -> Check:
    if result.outputs is None:
        return Check(OUTPUTS, False, _error_details(result))
    found = differences(scenario.expected_output, result.outputs, scenario.match)
    return Check(OUTPUTS, not found, join_differences(found, scenario.match))


def _redactor(stage: Stage) -> Redactor:
    """A redactor that knows every secret which the call may have used."""
    redactor, service, binding = Redactor(), stage.service, stage.binding
    if not (service.trusted and binding.trusted):
        return redactor
    secrets = Secrets(stage.environ, redactor.add)
    headers = {**(service.metadata.get("headers") or {}), **(binding.metadata.get("headers") or {})}
    uses: list[tuple[Callable[[str], str], str]] = [
        (secrets.expand, value) for value in headers.values()
    ]
    if auth := service.settings.get("auth_ref"):
        uses.append((secrets.resolve, auth))
    for resolve, text in uses:
        try:
            resolve(text)
        except CogcliError:
            continue
    return redactor
