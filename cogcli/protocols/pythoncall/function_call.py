"""Calls of functions in allowed modules (docs/reference/protocols.md#pythoncall).

Used by a thread of the run and by the worker process; it imports little, so that a worker starts
quickly.

1. The operation is a top-level function defined in the service's module, without a leading
   underscore.
2. The payload's keys are its keyword arguments, checked against its signature before the call.
3. Its return value is copied as plain JSON, and must be an object.
4. What it refuses becomes `call.rejected` with its reason, message and hint. Whatever else it
   raises becomes a ServerFaultError with the line in its module; a missing extra becomes
   `env.extra` with the line that installs it."""

from __future__ import annotations

import time
from types import CodeType, FunctionType, ModuleType
from typing import Final, TypeGuard

from cogcli.base.errors import (
    CallTimeoutError,
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    ServiceResolutionError,
)
from cogcli.base.extras import extra_of, install_line
from cogcli.base.json_text import to_plain_reply
from cogcli.base.jsonvalue import NOTHING, Json, NotJson, kind_of
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refusal import Refused
from cogcli.protocols.pythoncall import module_access
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.readable_files import ReadableFiles, confine

MAX_MESSAGE: Final = 500
_LONGEST_TEXT: Final = 32 * 1024
"""The most characters kept of a foreign text. It is cut for display only after it is masked
(`cut_message`)."""
_PLACE_CAP: Final = 200
_PLACE: Final = lazy_pattern(r" \(at [^()\n]{1,200}\.py:[0-9]+\)\Z")
_COROUTINE: Final = 0x80
_KEYWORD_REST: Final = 0x08


class PythonFunction(NamedTuple):
    """A function, its required arguments, its named arguments, and whether it accepts any other name."""

    name: str
    """Module and function, for messages."""
    function: FunctionType
    required: frozenset[str]
    named: frozenset[str]
    takes_rest: bool
    is_async: bool


def resolve_function(code: Code, name: str) -> PythonFunction:
    """Return the function of a service's operation.

    Raise ServiceResolutionError `service.module`, `env.extra`, `service.untrusted` or
    `service.forbidden`."""
    module = _load_module(code)
    function = (
        getattr(module, name, None) if name.isidentifier() and not name.startswith("_") else None
    )
    if not _is_own_function(function, module):
        text = f"service `{code.service_id}`: module `{code.module}` has no function `{name}` of its own"
        raise ServiceResolutionError("service.module", text, left=False)
    return _signature_of(f"{code.module}.{name}", function)


def require_arguments(operation: PythonFunction, payload: Json) -> None:
    """Raise RequestMappingError `request.value` if the payload does not fit the signature."""
    given = payload.keys()
    missing = operation.required - (given & operation.named)
    unknown = frozenset() if operation.takes_rest else given - operation.named
    if not missing and not unknown:
        return
    parts = [
        *(f"needs `{name}`" for name in sorted(missing)),
        *(f"takes no `{name}`" for name in sorted(unknown)),
    ]
    raise RequestMappingError("request.value", f"`{operation.name}` {', '.join(parts)}", left=False)


def call_function(
    operation: PythonFunction,
    payload: Json,
    deadline: float,
    reads: ReadableFiles | None = None,
    given: Json = NOTHING,
) -> Json:
    """Call the function and return a copy of its result, an object of plain JSON.

    If the result contains long lists of `given`, they share their elements. With `reads`, a shipped function may read
    only these files. Raise the errors of cogcli (UnreadablePath for another file, errors of requests), and
    RejectedError if the function refuses. Raise ServerFaultError for other exceptions, ResponseMappingError
    `response.not-json`, and CallTimeoutError for a coroutine that is not done at `deadline`.
    """
    is_confined = reads and operation.name.startswith(module_access.SHIPPED)
    release = confine(operation.function, reads) if reads and is_confined else None
    try:
        return _json_object(_call_and_check(operation, payload, deadline), operation, given)
    finally:
        if release is not None:
            release()


def size_problem(name: str, what: str, size: int, cap: int) -> str:
    """Return a message for a request or reply above `cap` bytes; empty below it."""
    return (
        f"the {what} of `{name}` has {size:,} bytes, at most {cap:,} are allowed"
        if size > cap
        else ""
    )


def exception_text(error: BaseException) -> str:
    """Return class and message of a foreign exception."""
    return f"{type(error).__name__}: {_message_of(error)}".removesuffix(": ")


def cut_message(text: str) -> str:
    """Return a masked message, truncated to 500 characters. The line in the function's module is kept at its end."""
    place = _PLACE.search(text)
    end = place[0] if place else ""
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - len(end)] + end


def _message_of(error: BaseException) -> str:
    return _as_text(error, "(its message cannot be shown)")


def _as_text(value: object, otherwise: str = "") -> str:
    """Return a foreign value as text, with lone surrogates escaped; `otherwise` if its `str` fails.

    A longer text keeps only whole lines, because half a secret could not be masked."""
    try:
        text = str(value).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return otherwise
    if len(text) <= _LONGEST_TEXT:
        return text
    return text[:_LONGEST_TEXT].rpartition("\n")[0] or f"(a line of {len(text):,} characters)"


def _is_own_function(value: object, module: ModuleType) -> TypeGuard[FunctionType]:
    if type(value) is not FunctionType or value.__module__ != module.__name__:
        return False
    return value.__name__ != "<lambda>"


def _load_module(code: Code) -> ModuleType:
    try:
        return module_access.load_module(code)
    except ImportError as error:
        raise _import_failure(error, code.module) from error
    except RuntimeErrorBase:
        raise
    except BaseException as error:
        text = f"importing `{code.module}` failed: {exception_text(error)}"
        raise ServiceResolutionError("service.module", text, left=False) from error


def _signature_of(name: str, function: FunctionType) -> PythonFunction:
    code: CodeType = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    needed = positional[: code.co_argcount - len(function.__defaults__ or ())]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    names = frozenset(positional[code.co_posonlyargcount :]) | frozenset(keywords)
    required = frozenset(needed) | (frozenset(keywords) - frozenset(function.__kwdefaults__ or ()))
    takes_rest, is_async = bool(code.co_flags & _KEYWORD_REST), bool(code.co_flags & _COROUTINE)
    return PythonFunction(name, function, required, names, takes_rest, is_async)


def _call_and_check(operation: PythonFunction, payload: Json, deadline: float) -> object:
    try:
        if operation.is_async:
            import asyncio

            rest = max(0.0, deadline - time.monotonic())
            return asyncio.run(asyncio.wait_for(operation.function(**payload), rest))
        return operation.function(**payload)
    except RuntimeErrorBase:  # raised by cogcli's functions that the function uses
        raise
    except Refused as error:
        raise rejection(error) from error
    except TimeoutError as error:
        if operation.is_async and time.monotonic() >= deadline:
            raise CallTimeoutError("call.timeout", "no answer in time", left=True) from error
        raise _server_fault(error, operation) from error
    except ModuleNotFoundError as error:
        if extra_of(error.name or ""):
            raise _import_failure(error, "") from error
        raise _server_fault(error, operation) from error
    except BaseException as error:
        raise _server_fault(error, operation) from error


def rejection(refused: Refused) -> RejectedError:
    """Return the error for a refusal. Its members may be of any type."""
    reason, message, hint = (
        _as_text(value) for value in (refused.reason, refused.message, refused.hint)
    )
    error = RejectedError(
        "call.rejected", message or reason or "the function refused this", hint=hint, left=True
    )
    error.reason = reason
    return error


def _server_fault(error: BaseException, operation: PythonFunction) -> ServerFaultError:
    """Return the error of a function's exception, with the last line of its own module. Other frames and values are
    omitted, because they may contain secrets.
    """
    module, place = operation.function.__module__, ""
    frame = error.__traceback__ if not module.startswith(module_access.SHIPPED) else None
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == operation.function.__code__.co_filename:
            place = f" (at {module.replace('.', '/')}.py:{frame.tb_lineno})"[:_PLACE_CAP]
        frame = frame.tb_next
    return ServerFaultError("call.server-error", exception_text(error) + place, left=True)


def _import_failure(error: ImportError, module: str) -> ServiceResolutionError:
    if extra := extra_of(error.name or ""):
        text = f"this needs `{error.name}`, which is not installed"
        return ServiceResolutionError("env.extra", text, hint=install_line(extra), left=False)
    text = f"`{module or error.name}` cannot be imported: {_message_of(error)}"
    return ServiceResolutionError("service.module", text, left=False)


def _json_object(result: object, operation: PythonFunction, given: Json) -> Json:
    name = f"`{operation.name}`"
    try:
        body = to_plain_reply(result, given)
    except NotJson as error:
        raise ResponseMappingError(
            "response.not-json", f"{name} returned {error}", left=True
        ) from error
    except Exception as error:
        # For instance a list that another thread still changes, or a class with wrong methods.
        text = f"{name} returned what cannot be read: {exception_text(error)}"
        raise ResponseMappingError("response.not-json", text, left=True) from error
    if type(body) is not dict:
        text = f"{name} returned {kind_of(body)}, expected an object"
        raise ResponseMappingError("response.not-json", text, left=True)
    return body
