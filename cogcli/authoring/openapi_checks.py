"""`openapi verify-bindings`: static checks, a governed call, then checks of request, reply and
outputs (docs/reference/protocols.md#scenarios).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from cogcli.app.settings import Settings
from cogcli.authoring.scenario_run import CallSpecs, scenario_target, with_mock_server
from cogcli.authoring.scenario_sources import ScenarioSource, is_trusted_folder
from cogcli.authoring.verification.case import (
    Answers,
    Case,
    CaseTarget,
    Expectation,
    Outcome,
    judge,
    run_case,
)
from cogcli.authoring.verification.check_result import (
    FAILED,
    PASSED,
    CheckResult,
    CheckResults,
    conclude,
    run_check,
    verify_all,
)
from cogcli.authoring.verification.expectations import expect_outputs
from cogcli.authoring.verification.loopback_server import Loopback
from cogcli.authoring.verification.named_mocks import canned_replies, named_mock
from cogcli.base.errors import CogcliError
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.problems import Problem, suggestion
from cogcli.base.redact import Redactor
from cogcli.base.scratch import scratch_folder
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.scenario_spec import BY_DOCUMENT, MockServer, Scenario
from cogcli.declarations.service_spec import Service
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import (
    ObservedExchange,
    Responder,
    exchange_from_mock,
    exchange_from_record,
)
from cogcli.protocols.exchange_checks import Check, Judge, NotRunnable
from cogcli.protocols.http.curl import curl_line
from cogcli.protocols.live_document import document_server, judge_of
from cogcli.protocols.secrets import Secrets
from cogcli.run.prepare import PreparedRun
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.layers import BUILT_IN, Layer, bounded_layers
from cogcli.specs.registry import Registry
from cogcli.specs.scenario_folders import REGISTRY
from cogcli.specs.selection import SelectionOptions

OUTPUTS: Final = "outputs equal expected_output"
LIVE: Final = "live service"
_MOCK: Final = "mock server"
_SHIPPED: Final = "shipped tool"


def verify_bindings(
    settings: Settings,
    source: ScenarioSource,
    scenarios: Sequence[Scenario],
    *,
    protocol: str,
    live: bool = False,
    strict: bool = False,
    jobs: int = 4,
    listener: Callable[[CheckResult], None] | None = None,
) -> CheckResults:
    """Verify each scenario, `jobs` at a time, and return the results. `listener` receives each result, in the order of
    the scenarios. With `strict` the whole reply must match its schema, not only the members used by outputs.
    """
    with scratch_folder("verify", keep=True) as runs_dir:
        verifier = _Verifier(
            settings, source, scenarios, protocol, live=live, strict=strict, runs_dir=runs_dir
        )
        return verify_all(scenarios, verifier.check, jobs, listener)


class _Verifier:
    """A verifier of one command's scenarios over one catalog, with temporary episodes in one
    directory.
    """

    def __init__(
        self,
        settings: Settings,
        source: ScenarioSource,
        scenarios: Sequence[Scenario],
        protocol: str,
        *,
        live: bool,
        strict: bool,
        runs_dir: str,
    ) -> None:
        self._settings = settings
        self._protocol = protocol
        self._live = live
        self._strict = strict
        self._catalog = _load_catalog(settings, source, scenarios)
        options = SelectionOptions({}, None, settings.environ)
        self._problems = check(self._catalog, options=options, shipped_too=True)
        self._runs_dir = runs_dir

    def check(self, scenario: Scenario) -> CheckResult:
        """Return the result of a scenario. A fault of the scenario, the binding or the service
        becomes a result, not an exception.
        """
        base = CheckResult(scenario.id, FAILED, subject=scenario.binding_id, file=scenario.file)

        def verify() -> CheckResult:
            try:
                return self._verify_scenario(scenario, base)
            except DocumentFault as fault:
                reason = f"{fault.code}: {fault.located_message}"
                raise NotRunnable(reason, fault.code) from fault

        return run_check(base, verify)

    def _verify_scenario(self, scenario: Scenario, base: CheckResult) -> CheckResult:
        specs = self._call_specs(scenario)
        static = self._static_checks(specs)
        judge_exchange = judge_of(self._checked_binding(specs.binding), specs.service)
        server = self._start_server(scenario, specs.service)
        base = base._replace(called=_answerer_name(server, specs.service))

        def target() -> CaseTarget:
            called = with_mock_server(specs, server.url) if server else specs
            if server and not (scenario.mock_server and scenario.mock_server.replies):
                # A mock by the document gives the same page for ever.
                called = called._replace(binding=called.binding.replace(page=None))
            return scenario_target(
                self._settings, self._catalog, called, scenario, self._runs_dir, live=not server
            )

        def exchange_of(outcome: Outcome) -> ObservedExchange | None:
            return _last_exchange(server, specs.capability.id, outcome)

        expectation = [expect_outputs(OUTPUTS, scenario.expected_output, scenario.match)]
        if judge_exchange is not None:
            expectation.insert(0, _expect_exchange(exchange_of, judge_exchange))
        if scenario.expected_service_id is not None:
            expectation.insert(0, _expect_service(scenario.expected_service_id, specs.service.id))
        answers = Answers((server,) if server else ())
        case = Case(target, scenario.input, answers, expectation)
        outcome = run_case(case)
        if outcome.refusal is not None:
            raise outcome.refusal
        checks = [*static, *judge(case.expectation, outcome)]
        return _build_result(base, checks, outcome, specs, exchange_of(outcome))

    def _checked_binding(self, binding: Binding) -> Binding:
        """Return the binding for checking the exchanges."""
        if not self._strict:
            return binding
        metadata = binding.metadata.replace(conformance_profile="strict")
        return binding.replace(metadata=metadata)

    def _call_specs(self, scenario: Scenario) -> CallSpecs:
        """Return the specs of the call. Raise NotRunnable."""
        catalog = self._catalog
        capability = catalog.capability(scenario.capability_id)
        if capability is None:
            near = suggestion(scenario.capability_id, catalog.capabilities)
            raise NotRunnable(
                f"no capability `{scenario.capability_id}`{near and f'; {near}'}",
                "capability.unknown",
            )
        binding = catalog.bindings.get(scenario.binding_id)
        if binding is None:
            known = catalog.bindings_of.get(capability.id, ())
            raise NotRunnable(
                self._missing_spec("binding", scenario.binding_id, known), "binding.unknown"
            )
        if catalog.aliases.get(binding.capability, binding.capability) != capability.id:
            reason = (
                f"binding `{binding.id}` is of `{binding.capability}`, not of `{capability.id}`"
            )
            raise NotRunnable(reason, "binding.capability")
        if binding.protocol != self._protocol:
            protocol = binding.protocol
            reason = f"binding `{binding.id}` speaks {protocol}; say --protocol {protocol}"
            raise NotRunnable(reason, "binding.protocol")
        service = catalog.services.get(binding.service)
        if service is None:
            raise NotRunnable(
                self._missing_spec("service", binding.service, catalog.services), "service.unknown"
            )
        return CallSpecs(capability, binding, service, self._settings.environ)

    def _missing_spec(self, kind: str, id: str, known_ids: Iterable[str]) -> str:
        """Return why a spec is not in the catalog: its file has errors, or it does not exist."""
        if file := self._catalog.broken.get(f"{kind}:{id}"):
            return f"{kind} `{id}`: its file {file} has errors"
        suggested = suggestion(id, known_ids)
        return f"no {kind} `{id}`{suggested and f'; {suggested}'}"

    def _static_checks(self, specs: CallSpecs) -> list[Check]:
        """Return the failed static check of the binding's and service's files, if any. Raise
        NotRunnable if no call is possible.
        """
        files = {specs.binding.file, specs.service.file}
        ignored = () if self._live else ("service.untrusted",)
        found = [p for p in self._problems if p.file in files and p.code not in ignored]
        preventing = list(filter(_prevents_call, found))
        problems = list(dict.fromkeys([*preventing, *filter(_is_rejected_value, found)]))
        if not problems:
            return []
        first, *others = problems
        more = f" (and {len(others)} more)" if others else ""
        text = f"{first.code}: {first.file}:{first.line}: {first.message}{more}"
        failed = Check("static checks", False, text)
        if preventing:
            raise NotRunnable(failed.reason, first.code, check=failed)
        return [failed]

    def _start_server(self, scenario: Scenario, service: Service) -> Loopback | None:
        """Return the mock server of a scenario; None if the real service is called. Raise
        NotRunnable.
        """
        mock = scenario.mock_server
        if mock is not None and PROTOCOLS[service.kind].document is None:
            reason = f"no mock server speaks {service.kind}: leave `mock_server` out"
            raise NotRunnable(reason, "input.unknown")
        if mock is None:
            if self._live or service.keys.server:
                return None
            if not service.keys.spec_ref:
                raise NotRunnable("live (add --live)", skipped=True)
            mock = MockServer()
        return Loopback(_make_responder(mock, service), host=mock.host, port=mock.port)


def _answerer_name(server: Loopback | None, service: Service) -> str:
    """Return the name of the answering side of a scenario: the mock server, the shipped server or the live service."""
    if server is not None:
        return _MOCK
    return _SHIPPED if service.keys.server else LIVE


def _last_exchange(
    server: Loopback | None, capability: str, outcome: Outcome
) -> ObservedExchange | None:
    """Return the last request of a capability and its reply; None if none was sent."""
    if server is not None:
        return exchange_from_mock(*server.exchanges[-1]) if server.exchanges else None
    own = (
        one for one in outcome.attempts if one.attempt.capability_id == capability
    )  # the call is not a gate's
    records = [one.record for one in own if one.record is not None]
    return exchange_from_record(records[-1]) if records else None


def _expect_service(expected: str, actual: str) -> Expectation:
    mismatch = "" if expected == actual else f"found {actual}"
    return lambda outcome: [Check(f"service is {expected}", not mismatch, mismatch)]


def _expect_exchange(
    exchange_of: Callable[[Outcome], ObservedExchange | None], judge_exchange: Judge
) -> Expectation:
    """Return the expectation that request and reply follow the service's document."""

    def expected(outcome: Outcome) -> list[Check]:
        exchange = exchange_of(outcome)
        if exchange is None or not exchange.status:
            return [Check("the service answers", False, str(outcome.failure) or outcome.status)]
        return judge_exchange(exchange)

    return expected


def _build_result(
    base: CheckResult,
    checks: Sequence[Check],
    outcome: Outcome,
    specs: CallSpecs,
    exchange: ObservedExchange | None,
) -> CheckResult:
    """Return the result with these checks and masked secrets. The episode of a passed scenario is
    removed.
    """
    redactor = Redactor()
    if outcome.prepared is not None:
        _learn_secrets(redactor, outcome.prepared, specs)
    mask = redactor.mask_text
    masked = [
        each._replace(
            detail=mask(each.detail),
            frame=each.frame and each.frame._replace(text=mask(each.frame.text)),
        )
        for each in checks
    ]
    outputs = outcome.result and redactor.mask_known(outcome.result.outputs)
    result = conclude(base, masked)._replace(code=outcome.failure.code, outputs=outputs)
    if result.status == PASSED:
        shutil.rmtree(outcome.directory, ignore_errors=True)
        return result
    curl = mask(_curl_line(exchange, outcome, specs)) if exchange else ""
    return result._replace(curl=curl, episode=outcome.directory)


def _curl_line(exchange: ObservedExchange, outcome: Outcome, specs: CallSpecs) -> str:
    """Return the command that repeats the request to the service instead of its mock server."""
    prepared = outcome.prepared
    called = prepared.catalog.services[specs.service.id] if prepared else specs.service
    services = (specs.service, called)
    found = [each.settings.get(key) for key in ("base_url", "url") for each in services]
    address = next(filter(None, found), "")
    return curl_line(exchange.seen, address, specs.service, specs.binding)


def _load_catalog(
    settings: Settings, source: ScenarioSource, scenarios: Iterable[Scenario]
) -> Catalog:
    """Return all specs of the layers. The registries next to the scenarios directly follow the
    built-in layer.
    """
    directories = {source.directory: source.trusted}
    for scenario in scenarios:
        folder = os.path.dirname(os.path.join(settings.base, scenario.file))
        directories.setdefault(folder, is_trusted_folder(settings, folder))
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


def _is_rejected_value(problem: Problem) -> bool:
    """Return whether a static problem is a value that the service would reject."""
    return problem.code == "wire.type" and bool(_REJECTED.search(problem.message))


def _prevents_call(problem: Problem) -> bool:
    """Return whether a static problem prevents a call: an error, an unreadable document, an untrusted
    service.
    """
    return problem.severity == "E" or problem.code in ("wire.document", "service.untrusted")


def _make_responder(mock: MockServer, service: Service) -> Responder:
    if mock.replies:
        return canned_replies(mock.replies)
    if mock.type != BY_DOCUMENT:
        return named_mock(mock.type)
    server = document_server(service)
    if server is None:
        raise NotRunnable(
            f"service `{service.id}` has no document: give `replies` or a mock server's type"
        )
    return server


def _learn_secrets(redactor: Redactor, prepared: PreparedRun, specs: CallSpecs) -> None:
    """Add every secret that the call may have used to a redactor."""
    service = prepared.catalog.services[specs.service.id]
    binding = prepared.catalog.bindings[specs.binding.id]
    if not (service.trusted and binding.trusted):
        return
    secrets = Secrets(prepared.selection.environ, redactor.add)
    headers = {**service.metadata.headers, **binding.metadata.headers}
    for header in headers.values():
        with suppress(CogcliError):
            secrets.expand(header)
    refs = [ref for each in service.credentials.values() for ref in each.secrets]
    for ref in filter(None, (service.auth_ref, *refs)):
        with suppress(CogcliError):
            secrets.resolve(ref)
