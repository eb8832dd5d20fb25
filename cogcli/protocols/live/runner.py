"""Live calls: the pinned chain of each capability, and one attempt from input to checked outputs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from cogcli.base.calls import (
    NOT_BEGUN,
    Answer,
    Attempt,
    BindingChain,
    Member,
    ServiceChange,
    SkippedBinding,
)
from cogcli.base.errors import ProtocolRoutingError, RuntimeErrorBase, ServiceResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible_block
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    Invoker,
    InvokerContext,
)
from cogcli.protocols.live import request as request_mapping
from cogcli.protocols.live import response as response_mapping
from cogcli.protocols.live.answer_checks import check_answer
from cogcli.protocols.live.breaker import Circuit, CircuitPermit, Circuits
from cogcli.protocols.live.request import TemplateContext
from cogcli.protocols.sent_file import read_file
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import lower_trust
from cogcli.specs.selection import Selection

DEFAULT_TIMEOUT: Final = 30.0
START_TIMEOUT: Final = 60.0
"""Seconds for the start of a program if its service sets no limit: `npx` and `uvx` download on the
first start."""

Choose = Callable[[str], Selection]
"""A function that selects the binding chain of a capability id. It raises BindingResolutionError.
"""


class _CalledBinding(NamedTuple):
    """The data that all calls of a binding in a run share."""

    service: Service
    binding: Binding
    template: request_mapping.Template
    response: response_mapping.ResponseMapping
    circuit: Circuit


class LiveRunner:
    """Calls services. Chains are chosen once per run.

    `selected`: on resume, the chains from the start of the run. Only their bindings that are still
    eligible are called."""

    def __init__(
        self,
        catalog: Catalog,
        choose: Choose,
        context: InvokerContext,
        circuits: Circuits | None = None,
        selected: Mapping[str, BindingChain] | None = None,
    ) -> None:
        self._catalog = catalog
        self._circuits = circuits or Circuits()
        self.service_changes: deque[ServiceChange] = deque()
        """What services and calls reported that is not yet in a log."""
        self._context = context._replace(note=self.service_changes.append)
        self._choose = choose
        self._selected = selected or {}
        self._chains: dict[str, BindingChain] = {}
        self._called: dict[tuple[str, str], _CalledBinding] = {}
        """By binding and capability. Catalog and allowed hosts never change."""
        self._invokers: dict[str, Invoker] = {}
        self.leftovers: list[str] = []
        """After `close`: the processes of servers that had to be killed."""

    def chain(self, capability_id: str) -> BindingChain:
        chain = self._chains.get(capability_id)
        if chain is None:
            chain = self._chains[capability_id] = self._choose_chain(capability_id)
        return chain

    def pinned(self) -> Json:
        """Return the chain of each capability, with its explanation. A capability without an
        eligible binding is left out."""
        chains: Json = {}
        for capability_id in self._catalog.capabilities:
            try:
                chain = self.chain(capability_id)
            except RuntimeErrorBase:
                continue  # no step needs it, or the checks before the run reported it
            chains[capability_id] = chain.to_payload()
        return chains

    def attempt(self, attempt: Attempt) -> Answer:
        attempt.cancel.hold_back(NOT_BEGUN)
        called = self._find_called_binding(attempt.member.binding_id, attempt.capability_id)
        request = InvocationRequest(
            service=called.service,
            binding=called.binding,
            operation=called.binding.operation,
            payload=called.template(attempt.input),
            effect=attempt.effect,
            idempotency_key=attempt.idempotency_key,
            capability_id=attempt.capability_id,
            run_id=attempt.run_id,
            step_id=attempt.step_id,
            attempt=attempt.number,
            traceparent=attempt.traceparent,
            continuation=attempt.continuation,
        )
        member = attempt.member
        seconds = member.timeout_seconds, member.start_seconds, member.answer_seconds
        limits = CallLimits(attempt.deadline, attempt.cancel, *seconds)
        passage = called.circuit.passage()
        with attempt.cancel.on_cancel(lambda: _report_abandoned_attempt(passage, attempt.deadline)):
            try:
                answer = self._send_and_map(attempt, called, request, limits)
            except RuntimeErrorBase as error:
                passage.record_failure(error.code)
                # The log masks what it takes; this reaches the terminal and callers, too.
                mask = self._context.secrets.mask_text
                error.message = visible_block(mask(error.message))
                error.hint = visible_block(mask(error.hint))
                error.reason = visible_block(mask(error.reason))
                error.args = (error.message,)
                raise
            else:
                passage.record_success()
                return answer
            finally:
                passage.record_abandoned()  # counts only if nothing was reported: a bug, or the process ends

    def _send_and_map(
        self,
        attempt: Attempt,
        called: _CalledBinding,
        request: InvocationRequest,
        limits: CallLimits,
    ) -> Answer:
        """Send the request and return the mapped reply."""
        try:
            invoker = self._find_invoker(called.binding.protocol)
            limits.cancel.release()
            response = invoker.invoke(request, limits)
            body, meta = response
            try:
                output = self._map_response(response, attempt, called)
            except RuntimeErrorBase as error:
                error.record = (
                    meta.to_payload()
                    if meta.reply
                    else {
                        **meta.to_payload(),
                        "reply": {"media_type": "application/json", "body": body},
                    }
                )
                error.usage = dict(meta.usage) if meta.usage else None
                raise
        except RuntimeErrorBase as error:
            error.reply = response_mapping.reply_line(error.record, self._context.secrets)
            raise
        return Answer(output, meta.usage, meta.to_payload())

    def _map_response(
        self, response: InvocationResponse, attempt: Attempt, called: _CalledBinding
    ) -> Json:
        """Return the checked outputs in a reply. Errors quote the reply. If a reply that does not fit contains a
        secret, the masked reply is mapped instead.
        """
        try:
            return _map_checked(response, attempt, called)
        except RuntimeErrorBase:
            masked = self._context.secrets.mask_known(response.body)
            if masked is response.body:
                raise
        return _map_checked(response._replace(body=masked), attempt, called)

    def close(self, grace: float) -> None:
        for invoker in self._invokers.values():
            invoker.close(grace)
            self.leftovers += getattr(invoker, "leftovers", ())

    def _choose_chain(self, capability_id: str) -> BindingChain:
        selection = self._choose(capability_id)
        members: list[Member] = []
        passed_over = []
        for link in selection.chain:
            if link.eligible:
                member = _chain_member(
                    self._catalog.bindings[link.binding_id], self._catalog.services
                )
                members.append(self._with_answers(member))
            else:
                codes = {reason.code for reason in link.reasons}
                code = codes.pop() if len(codes) == 1 else "binding.ineligible"
                text = "; ".join(reason.text for reason in link.reasons)
                passed_over.append(
                    SkippedBinding(link.binding_id, link.service_id, code, text, len(members))
                )
        chain = BindingChain(tuple(members), selection.to_payload(), tuple(passed_over))
        before = self._selected.get(capability_id)
        return chain if before is None else _restrict_chain(chain, before)

    def _with_answers(self, member: Member) -> Member:
        """Return the member with the time for a person's answers if its service can ask this person."""
        person = self._context.person
        if person is None or member.protocol != "mcp":
            return member
        return member._replace(answer_seconds=person.seconds)

    def _find_called_binding(self, binding_id: str, capability_id: str) -> _CalledBinding:
        """Return the shared data of a binding's calls. Service and binding are both untrusted unless both are trusted.
        Without trust only the allowed hosts are reached.
        """
        key = binding_id, capability_id
        called = self._called.get(key)
        if called is None:
            binding = self._catalog.bindings[binding_id]
            service, binding = lower_trust(self._catalog.services[binding.service], binding)
            if not service.trusted:
                service = service.replace(allow_hosts=self._context.allow_hosts)
            outputs = self._catalog.capabilities[capability_id].outputs
            called = self._called[key] = _CalledBinding(
                service,
                binding,
                self._compile_template(binding, service),
                response_mapping.ResponseMapping(binding.response, outputs, service.values),
                self._circuits.circuit_of(service),
            )
        return called

    def _compile_template(self, binding: Binding, service: Service) -> request_mapping.Template:
        row = PROTOCOLS.get(binding.protocol)
        keys = row.path_keys(service, binding) if row else ()
        return request_mapping.compile_template(
            binding.request, context=TemplateContext(service.values, self._read_file, keys)
        )

    def _read_file(self, path: str, form: str) -> str:
        return read_file(path, form, self._context.reads)

    def _find_invoker(self, protocol: str) -> Invoker:
        invoker = self._invokers.get(protocol)
        if invoker is None:
            row = PROTOCOLS.get(protocol)
            if row is None:
                raise ProtocolRoutingError(
                    "protocol.unsupported", f"nothing speaks `{protocol}`", left=False
                )
            invoker = self._invokers.setdefault(protocol, row.invoker(self._context))
        return invoker


def _map_checked(response: InvocationResponse, attempt: Attempt, called: _CalledBinding) -> Json:
    """Return the outputs in a reply, which pass the checks of the binding."""
    output = called.response.map_body(response.body, response.headers)
    if called.binding.checks:
        check_answer(called.binding.checks, output, attempt.input)
    return output


def _restrict_chain(now: BindingChain, before: BindingChain) -> BindingChain:
    """Return the earlier chain without bindings that are no longer eligible; those move to
    `passed_over`."""
    known = {member.binding_id: member for member in before.members}
    members = tuple(
        member._replace(repeats_faults=known[member.binding_id].repeats_faults)
        for member in now.members
        if member.binding_id in known
    )
    lost = tuple(each for each in now.passed_over if each.binding_id in known)
    return BindingChain(members, before.explanation, (*before.passed_over, *lost))


def _chain_member(binding: Binding, services: Mapping[str, Service]) -> Member:
    service = services.get(binding.service)
    if service is None:
        raise ServiceResolutionError(
            "service.unknown", f"binding `{binding.id}` names no service `{binding.service}`"
        )
    metadata = binding.metadata
    timeout = metadata.timeout_seconds or service.metadata.timeout_seconds or DEFAULT_TIMEOUT
    return Member(
        binding.id,
        service.id,
        binding.protocol,
        float(timeout),
        metadata.retry_count,
        float(metadata.retry_backoff_base),
        float(metadata.retry_backoff_factor),
        0.0 if metadata.timeout_seconds else start_seconds(service),
        metadata.fallback_on,
        repeats_faults=metadata.retry_count > 0,
        pages=1 if binding.page is None else binding.page.max_pages,
    )


def start_seconds(service: Service) -> float:
    """Return the seconds that the start of a service adds to the limit of a call; 0 if it starts no
    program.

    A limit of the binding itself limits the start, too."""
    if "command" not in service.settings:
        return 0.0
    return float(service.metadata.timeout_seconds or START_TIMEOUT)


def _report_abandoned_attempt(passage: CircuitPermit, deadline: float) -> None:
    """Report an attempt whose result is dropped: a timeout past its deadline, else no fault of the
    service."""
    if time.monotonic() >= deadline:
        passage.record_failure("call.timeout")
    else:
        passage.record_abandoned()
