"""The functions of allowed modules: finding one, entering it, reading what it gave
(docs/reference/protocols.md#pythoncall).

One code for both ways of calling, in a thread of ours and in a worker process; it imports little, so that a worker
starts quickly.

1. The operation is a top-level function written in the service's module, without a leading underscore.
2. The payload's keys are its keyword arguments, checked against its signature before it is entered.
3. What it returns is copied as plain JSON, and must be an object.
4. Whatever it raises is told as a server fault, with the line of its module; a missing extra by its install line.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeGuard

from cogcli.core.errors import (
    CallTimeoutError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    ServiceResolutionError,
)
from cogcli.core.jsonvalue import NotJson, kind_of, to_plain_json
from cogcli.protocols.pythoncall import module_access
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.readable_files import ReadRefused, Reads, confine

_TEXT_CAP: Final = 500
_PLACE_CAP: Final = 200
EXTRAS: Final = {"langdetect": "text", "snowballstemmer": "text", "bs4": "web", "pypdf": "pdf"}
"""Third-party modules that shipped functions import, and the extra that installs each."""
_COROUTINE: Final = 0x80
_KEYWORD_REST: Final = 0x08


class PythonFunction(NamedTuple):
    """A function, the arguments it needs, those it takes by name, and whether it takes any other name, too."""

    name: str
    """As messages tell it: module and function."""
    function: FunctionType
    required: frozenset[str]
    named: frozenset[str]
    takes_rest: bool
    is_async: bool


def resolve_function(code: Code, name: str) -> PythonFunction:
    """The operation of a service's module. Raises ServiceResolutionError `service.module` and those of the module."""
    module = _module(code)
    function = getattr(module, name, None) if name.isidentifier() and not name.startswith("_") else None
    if not _is_own_function(function, module):
        raise ServiceResolutionError(
            "service.module",
            f"service `{code.service_id}`: module `{code.module}` has no function `{name}` of its own",
            left=False,
        )
    return _described(f"{code.module}.{name}", function)


def require_arguments(operation: PythonFunction, payload: dict[str, Any]) -> None:
    """Raise RequestMappingError `request.value` where the payload does not fit the signature."""
    given = payload.keys()
    missing = operation.required - (given & operation.named)
    unknown = frozenset() if operation.takes_rest else given - operation.named
    if not missing and not unknown:
        return
    parts = [f"needs `{name}`" for name in sorted(missing)] + [
        f"takes no `{name}`" for name in sorted(unknown)
    ]
    raise RequestMappingError("request.value", f"`{operation.name}` {', '.join(parts)}", left=False)


def call_function(
    operation: PythonFunction, payload: dict[str, Any], deadline: float, reads: Reads | None = None
) -> dict[str, Any]:
    """What the function returned, as an object of plain JSON that shares nothing with it. With `reads` a shipped one
    reads these files only.

    Raises ReadRefused for another file, ServerFaultError for whatever comes out of it, ResponseMappingError
    `response.not-json`, and CallTimeoutError for a coroutine that is not done at `deadline`.
    """
    confined = (
        confine(operation, reads) if reads and operation.name.startswith(module_access.SHIPPED) else None
    )
    try:
        return _object(_result(operation, payload, deadline), operation)
    finally:
        if confined is not None:
            asked, before = confined
            asked.reset(before)


def size_problem(name: str, what: str, size: int, cap: int) -> str:
    """What is wrong with the size of a request or reply; empty if nothing is."""
    return f"the {what} of `{name}` has {size:,} bytes, at most {cap:,} are allowed" if size > cap else ""


def words(error: BaseException) -> str:
    """A foreign exception in at most 500 characters."""
    return f"{type(error).__name__}: {_said(error)}".removesuffix(": ")[:_TEXT_CAP]


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def _is_own_function(value: Any, module: ModuleType) -> TypeGuard[FunctionType]:
    own = type(value) is FunctionType and value.__module__ == module.__name__
    return own and value.__name__ != "<lambda>"


def _module(code: Code) -> ModuleType:
    try:
        return module_access.load_module(code)
    except ImportError as error:
        raise _import_failure(error, code.module) from error
    except RuntimeErrorBase:
        raise
    except BaseException as error:
        text = f"importing `{code.module}` failed: {words(error)}"
        raise ServiceResolutionError("service.module", text, left=False) from error


def _described(name: str, function: FunctionType) -> PythonFunction:
    code: CodeType = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    needed = positional[: code.co_argcount - len(function.__defaults__ or ())]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    names = frozenset(positional[code.co_posonlyargcount :]) | frozenset(keywords)
    return PythonFunction(
        name,
        function,
        frozenset(needed) | (frozenset(keywords) - frozenset(function.__kwdefaults__ or ())),
        names,
        bool(code.co_flags & _KEYWORD_REST),
        bool(code.co_flags & _COROUTINE),
    )


def _result(operation: PythonFunction, payload: dict[str, Any], deadline: float) -> Any:
    try:
        if operation.is_async:
            return _awaited(operation.function, payload, deadline)
        return operation.function(**payload)
    except ReadRefused:
        raise
    except TimeoutError as error:
        if operation.is_async and time.monotonic() >= deadline:
            raise CallTimeoutError("call.timeout", "no answer in time", left=True) from error
        raise _fault(error, operation) from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in EXTRAS:
            raise _import_failure(error, "") from error
        raise _fault(error, operation) from error
    except BaseException as error:
        raise _fault(error, operation) from error


def _fault(error: BaseException, operation: PythonFunction) -> ServerFaultError:
    """What came out of a function, and the last line of its own module on the way: no frame, no value."""
    place = _place(error, operation)
    text = words(error)[: _TEXT_CAP - len(place)] + place
    return ServerFaultError("call.server-error", text, left=True)


def _place(error: BaseException, operation: PythonFunction) -> str:
    module = operation.function.__module__
    file, line = operation.function.__code__.co_filename, 0
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    if not line or module.startswith(module_access.SHIPPED):
        return ""
    return f" (at {module.replace('.', '/')}.py:{line})"[:_PLACE_CAP]


def _awaited(function: Callable[..., Any], payload: dict[str, Any], deadline: float) -> Any:
    import asyncio

    return asyncio.run(asyncio.wait_for(function(**payload), max(0.0, deadline - time.monotonic())))


def _import_failure(error: ImportError, module: str) -> ServiceResolutionError:
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is not None:
        return ServiceResolutionError(
            "env.extra",
            f"this needs `{error.name}`, which is not installed",
            hint=f"pip install 'cogcli[{extra}]'",
            left=False,
        )
    text = f"`{module or error.name}` cannot be imported: {_said(error)}"
    return ServiceResolutionError("service.module", text[:_TEXT_CAP], left=False)


def _object(result: Any, operation: PythonFunction) -> dict[str, Any]:
    name = f"`{operation.name}`"
    try:
        body = to_plain_json(result)
    except NotJson as error:
        raise ResponseMappingError("response.not-json", f"{name} returned {error}", left=True) from error
    except Exception as error:
        # A list that another thread still changes, a type that lies about itself.
        text = f"{name} returned what cannot be read: {words(error)}"
        raise ResponseMappingError("response.not-json", text, left=True) from error
    if type(body) is not dict:
        text = f"{name} returned {kind_of(body)}, expected an object"
        raise ResponseMappingError("response.not-json", text, left=True)
    return body
