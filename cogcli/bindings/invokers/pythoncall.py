"""pythoncall: calling a function of an allowed module in this process (protocols.md 3).

1. Allowed are exactly the modules that trusted service files name: never the standard library, and of this package only
   the shipped service modules. Nothing is imported before that is known.
2. A module is found as a shipped one, below its service's layer root, or installed; never in the working directory.
3. The operation is a top-level function written in that module, without a leading underscore.
4. The payload's keys are its keyword arguments, checked against its signature before it is entered.
5. What it returns is copied as plain JSON, and must be an object. Both ways the binding's caps on bytes hold.
6. What it prints is captured and never reaches our output.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeGuard

import orjson

from cogcli.bindings.invokers import modules
from cogcli.bindings.invokers.base import (
    DEFAULT_BYTES,
    CallContext,
    CallMeta,
    InvocationRequest,
    InvocationResponse,
    Surroundings,
)
from cogcli.bindings.invokers.capture import captured
from cogcli.core.errors import (
    CallTimeoutError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    ServiceResolutionError,
)
from cogcli.core.jsonvalue import MAX_INTEGER, NotJson, admitted, kind_of
from cogcli.specs.service import Service

_TEXT_CAP: Final = 500
_NOTHING: Final = CallMeta()
EXTRAS: Final = {"langdetect": "text", "snowballstemmer": "text", "bs4": "web", "pypdf": "pdf"}
"""Third-party modules that shipped functions import, and the extra that installs each."""
_COROUTINE: Final = 0x80
_KEYWORD_REST: Final = 0x08


class Operation(NamedTuple):
    """A function, the arguments it needs, those it takes by name, and whether it takes any other name, too."""

    function: FunctionType
    required: frozenset[str]
    named: frozenset[str]
    takes_rest: bool
    is_async: bool


class PythonCall:
    """Calls functions on the calling thread."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._operations: dict[tuple[str, str], Operation] = {}

    def invoke(self, request: InvocationRequest, context: CallContext) -> InvocationResponse:
        # Modules may print while they are imported, and values while they are looked at.
        with captured():
            operation = self._operation(request.service, request.operation)
            _require_arguments(operation, request)
            if problem := _too_large(request, "max_request_bytes", "request", request.payload):
                raise RequestMappingError("request.size", problem, left=False)
            body = _object(_entered(operation, request.payload, context), request)
        usage = _usage(body)
        return InvocationResponse(body, CallMeta(usage=usage) if usage else _NOTHING)

    def close(self, grace: float) -> None:
        self._operations.clear()

    def _operation(self, service: Service, name: str) -> Operation:
        key = (service.id, name)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = _resolved(service, name)
        return found


def _resolved(service: Service, name: str) -> Operation:
    module = _module(service)
    function = getattr(module, name, None) if name.isidentifier() and not name.startswith("_") else None
    if not _is_own_function(function, module):
        raise ServiceResolutionError(
            "service.module",
            f"service `{service.id}`: module `{service.module}` has no function `{name}` of its own",
            left=False,
        )
    return _described(function)


def _is_own_function(value: Any, module: ModuleType) -> TypeGuard[FunctionType]:
    own = type(value) is FunctionType and value.__module__ == module.__name__
    return own and value.__name__ != "<lambda>"


def _module(service: Service) -> ModuleType:
    try:
        return modules.loaded(service)
    except ImportError as error:
        raise _import_failure(error, service) from error
    except RuntimeErrorBase:
        raise
    except BaseException as error:
        text = f"importing `{service.module}` failed: {_words(error)}"
        raise ServiceResolutionError("service.module", text, left=False) from error


def _described(function: FunctionType) -> Operation:
    code: CodeType = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    needed = positional[: code.co_argcount - len(function.__defaults__ or ())]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    names = frozenset(positional[code.co_posonlyargcount :]) | frozenset(keywords)
    return Operation(
        function,
        frozenset(needed) | (frozenset(keywords) - frozenset(function.__kwdefaults__ or ())),
        names,
        bool(code.co_flags & _KEYWORD_REST),
        bool(code.co_flags & _COROUTINE),
    )


def _require_arguments(operation: Operation, request: InvocationRequest) -> None:
    given = request.payload.keys()
    missing = operation.required - (given & operation.named)
    unknown = frozenset() if operation.takes_rest else given - operation.named
    if not missing and not unknown:
        return
    parts = [f"needs `{name}`" for name in sorted(missing)] + [
        f"takes no `{name}`" for name in sorted(unknown)
    ]
    raise RequestMappingError(
        "request.value", f"`{request.service.module}.{request.operation}` {', '.join(parts)}", left=False
    )


def _entered(operation: Operation, payload: dict[str, Any], context: CallContext) -> Any:
    try:
        if operation.is_async:
            return _awaited(operation.function, payload, context.deadline)
        return operation.function(**payload)
    except TimeoutError as error:
        if operation.is_async and time.monotonic() >= context.deadline:
            raise CallTimeoutError("call.timeout", "no answer in time", left=True) from error
        raise ServerFaultError("call.server-error", _words(error), left=True) from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in EXTRAS:
            raise _import_failure(error, None) from error
        raise ServerFaultError("call.server-error", _words(error), left=True) from error
    except BaseException as error:
        raise ServerFaultError("call.server-error", _words(error), left=True) from error


def _awaited(function: Callable[..., Any], payload: dict[str, Any], deadline: float) -> Any:
    import asyncio

    return asyncio.run(asyncio.wait_for(function(**payload), max(0.0, deadline - time.monotonic())))


def _import_failure(error: ImportError, service: Service | None) -> ServiceResolutionError:
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is not None:
        return ServiceResolutionError(
            "env.extra",
            f"this needs `{error.name}`, which is not installed",
            hint=f"pip install 'cogcli[{extra}]'",
            left=False,
        )
    module = service.module if service else error.name
    return ServiceResolutionError("service.module", f"`{module}` cannot be imported: {error}", left=False)


def _object(result: Any, request: InvocationRequest) -> dict[str, Any]:
    name = f"`{request.service.module}.{request.operation}`"
    try:
        body = admitted(result)
    except NotJson as error:
        raise ResponseMappingError("response.not-json", f"{name} returned {error}", left=True) from error
    except Exception as error:
        # A list that another thread still changes, a type that lies about itself.
        text = f"{name} returned what cannot be read: {_words(error)}"
        raise ResponseMappingError("response.not-json", text, left=True) from error
    if type(body) is not dict:
        text = f"{name} returned {kind_of(body)}, expected an object"
        raise ResponseMappingError("response.not-json", text, left=True)
    if problem := _too_large(request, "max_response_bytes", "reply", body):
        raise ResponseMappingError("response.size", problem, left=True)
    return body


def _too_large(request: InvocationRequest, key: str, what: str, value: dict[str, Any]) -> str:
    cap, size = request.binding.metadata.get(key) or DEFAULT_BYTES, len(orjson.dumps(value))
    name = f"`{request.service.module}.{request.operation}`"
    return f"the {what} of {name} has {size:,} bytes, at most {cap:,} are allowed" if size > cap else ""


def _usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Whole token counts that a body reports at its top; anything else is not counted."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = {
        k: v for k, v in usage.items() if k.endswith("_tokens") and type(v) is int and 0 <= v <= MAX_INTEGER
    }
    return counts or None


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    return f"{type(error).__name__}: {text}".removesuffix(": ")[:_TEXT_CAP]
