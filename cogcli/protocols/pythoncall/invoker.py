"""pythoncall: calls of functions in allowed modules, in a thread of the run or in a worker process
(docs/reference/protocols.md#pythoncall).

1. Allowed are the modules that trusted service files name: never the standard library, and of this
   package only the shipped service modules. This is checked before anything is imported or any
   process started.
2. A module is a shipped one, below its service's layer root, or installed; never in the working
   directory.
3. The rules of `function_call` and the binding's byte limits hold in both.
4. Shipped modules run in a thread, others in a process, unless the service sets `isolation`. A
   sandboxed function runs in a process of its own for each call, behind the wall
   (docs/reference/service.md#isolation).
5. Printed output is captured and never reaches our own output."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.errors import RequestMappingError, ResponseMappingError, RuntimeErrorBase
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.base.jsonvalue import object_of, paused_collection
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import (
    CallLimits,
    CallMeta,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.protocols.pythoncall import function_call, module_access
from cogcli.protocols.pythoncall.function_call import PythonFunction
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.stdout_capture import capture_output
from cogcli.specs.eligibility import isolation_of
from cogcli.specs.service import network_of

if TYPE_CHECKING:
    from cogcli.protocols.pythoncall.worker_pool import WorkerPool

_NOTHING: Final = CallMeta()
_LONGEST_REASON: Final = 40
_LARGE: Final = 64 * 1024
"""Bytes of arguments from which the cycle collector pauses while they are read."""


class SideOutput:
    """The side results of a call: the text that the function printed, even if it failed, and the files that it
    wrote.
    """

    def __init__(self) -> None:
        self.text = ""
        self.files: list[Json] = []


class _CalledFunction(NamedTuple):
    """The data that all calls of a binding share."""

    service: Service
    binding: Binding
    code: Code
    in_thread: bool
    access: HostAccess
    """The access of its calls, without their limits and files."""


class PythonCall:
    """Calls functions on the calling thread, or in worker processes, which start at the first call."""

    def __init__(self, context: InvokerContext) -> None:
        self._context = context
        proxies = context.environ if context.use_env_proxy else {}
        self._access = HostAccess(
            context.open_registry, context.store_dir, proxies, write_roots=context.write_roots
        )
        if context.reads:
            self._access = context.reads.allow(self._access)
        self._called: dict[str, _CalledFunction] = {}
        """By binding."""
        self._operations: dict[tuple[str, str], PythonFunction] = {}
        self._workers: WorkerPool | None = None
        self._lock = threading.Lock()

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        called = self._find_called_function(request.service, request.binding)
        side = SideOutput()
        try:
            if called.in_thread:
                body = self._call_in_thread(called, request, limits, side)
            else:
                body = self._call_in_worker(called.code, request, limits, side)
        except RuntimeErrorBase as error:
            self._mask_and_cut(error)
            if side.text:
                error.record = {"printed": side.text}
            raise
        meta = _NOTHING
        if side.text or side.files:
            meta = _NOTHING._replace(printed=side.text, files=side.files or None)
        if "usage" in body:
            from cogcli.protocols.model_usage import usage_of  # few functions call a model

            meta = usage_of(body).add_to(meta)
        return InvocationResponse(body, meta)

    def _mask_and_cut(self, error: RuntimeErrorBase) -> None:
        """Mask the messages of an error, then truncate them for display, because they quote the function."""
        mask = self._context.secrets.mask_text
        error.message = function_call.cut_message(mask(error.message))
        error.hint = mask(error.hint)[: function_call.MAX_MESSAGE]
        error.reason = mask(error.reason)[:_LONGEST_REASON]
        error.args = (error.message,)

    def close(self, grace: float) -> None:
        self._operations.clear()
        if self._workers is not None:
            self._workers.close(grace)

    def _find_called_function(self, service: Service, binding: Binding) -> _CalledFunction:
        """Return the shared data of a binding's calls. It is valid only for this service and binding, because others
        with the same ids may have another trust.
        """
        called = self._called.get(binding.id)
        if called is None or called.service is not service or called.binding is not binding:
            code = Code(service.id, service.module or "", service.root, service.trusted)
            in_thread = isolation_of(service) == "thread"
            access = self._access_of(service)
            called = _CalledFunction(service, binding, code, in_thread, access)
            self._called[binding.id] = called
        return called

    def _call_in_thread(
        self,
        called: _CalledFunction,
        request: InvocationRequest,
        limits: CallLimits,
        side: SideOutput,
    ) -> Json:
        code = called.code
        # Modules may print while they are imported, and values while they are converted.
        with capture_output() as tail:
            token = ACCESS.set(called.access.for_call(limits.deadline, limits.cancel, side.files))
            try:
                key = (code.service_id, request.operation)
                operation = self._operations.get(key)
                if operation is None:
                    operation = function_call.resolve_function(code, request.operation)
                    self._operations[key] = operation
                function_call.require_arguments(operation, request.payload)
                text = orjson.dumps(request.payload)
                _require_size(operation.name, request, text)
                deadline, reads = limits.deadline, self._context.reads
                arguments = _read_arguments(text)
                body = function_call.call_function(
                    operation, arguments, deadline, reads, request.payload
                )
            finally:
                ACCESS.reset(token)
                side.text = tail.text
        size = len(orjson.dumps(body))
        if problem := function_call.size_problem(operation.name, "reply", size, request.reply_cap):
            raise ResponseMappingError("response.size", problem, left=True)
        return body

    def _access_of(self, service: Service) -> HostAccess:
        """Return the access of the calls of a service. Code of an untrusted project gets no store.

        The secret is read when the function requests it."""
        ref = service.auth_ref if service.trusted else None
        return self._access._replace(
            store_dir=self._context.store_dir if service.trusted else "",
            network=network_of(service),
            secret=partial(self._context.secrets.resolve, ref) if ref else None,
            mask_text=self._context.secrets.mask_text,
        )

    def _call_in_worker(
        self, code: Code, request: InvocationRequest, limits: CallLimits, side: SideOutput
    ) -> Json:
        module_access.require_allowed_import(code)
        from cogcli.protocols.pythoncall.worker_pool import WorkerPool
        from cogcli.protocols.pythoncall.worker_process import WorkerRequest

        payload = orjson.dumps(request.payload)
        _require_size(f"{code.module}.{request.operation}", request, payload)
        worker_request = WorkerRequest(
            code,
            request.operation,
            payload,
            request.reply_cap,
            self._context.reads,
            self._context.write_roots,
        )
        with self._lock:
            self._workers = self._workers or WorkerPool(
                self._context.environ, self._context.max_workers, self._context.secrets.mask_text
            )
        sandbox = None
        if isolation_of(request.service) == "sandbox":
            from cogcli.protocols.pythoncall.sandbox_files import sandbox_files

            sandbox = sandbox_files(code.root, request.payload, self._context.reads)
        with self._workers.borrow(code, limits, sandbox) as worker:
            try:
                body, side.files = worker.call(worker_request, limits)
                return body
            finally:
                side.text = worker.printed


def _read_arguments(text: bytes) -> Json:
    """Return arguments that a function may change, from their JSON."""
    if len(text) < _LARGE:
        return object_of(orjson.loads(text))
    with paused_collection():
        return object_of(orjson.loads(text))


def _require_size(name: str, request: InvocationRequest, payload: bytes) -> None:
    if problem := function_call.size_problem(name, "request", len(payload), request.request_cap):
        raise RequestMappingError("request.size", problem, left=False)
