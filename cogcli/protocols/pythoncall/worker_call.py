"""One call in the worker process, and its error; `worker_main` sends the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from cogcli.base.errors import RejectedError, ResponseMappingError, RuntimeErrorBase
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.declarations.value_types import Json
from cogcli.protocols.pythoncall import function_call
from cogcli.protocols.pythoncall.function_call import PythonFunction
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.readable_files import ReadableFiles


def call(
    request: Json,
    payload: Json,
    operations: dict[tuple[str, ...], PythonFunction],
    entered: Callable[[], None],
) -> tuple[bytes, list[Json]]:
    """Call the function of a request. Return its result as JSON, and the files that it wrote.

    `entered` is called immediately before the function. `operations` caches functions. Raise the errors of a call, and
    any exception from the import of the function's module.
    """
    deadline = time.monotonic() + request["seconds"]
    code = Code(request["service"], request["module"], request["root"], trusted=True)
    key = (*code[:3], request["operation"])
    operation = operations.get(key)
    if operation is None:
        operation = operations[key] = function_call.resolve_function(code, request["operation"])
    function_call.require_arguments(operation, payload)
    entered()
    reads = None
    if request["reads"]:
        folder, named, roots, folders, typed, is_online = request["reads"]
        reads = ReadableFiles(
            folder,
            frozenset(named),
            tuple(map(tuple, roots)),
            tuple(folders),
            frozenset(typed),
            lambda: is_online,
        )
    write_roots = tuple(map(tuple, request["write_roots"]))
    files: list[Json] = []
    access = HostAccess(write_roots=write_roots, files=files)
    token = ACCESS.set(reads.allow(access) if reads else access)
    try:
        body = function_call.call_function(operation, payload, deadline, reads)
    finally:
        ACCESS.reset(token)
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    problem = function_call.size_problem(operation.name, "reply", len(data), request["cap"])
    if problem:
        raise ResponseMappingError("response.size", problem, left=True)
    return data, files


def no_wall_error(service_id: str, missing: str) -> RejectedError:
    """Return the error of a call that requires the wall on a machine without one."""
    text = f"service `{service_id}`: this machine has no wall to keep it apart ({missing})"
    error = RejectedError("call.rejected", text, hint="cogcli doctor", left=False)
    error.reason = "unsupported"
    return error


def error_payload(error: BaseException) -> Json:
    """Return the `error` member of a frame. A foreign exception is the function's, raised outside
    its call."""
    if isinstance(error, RuntimeErrorBase):
        left = error.left is not False
        members = {"message": error.message, "hint": error.hint, "reason": error.reason}
        return {"code": error.code, "left": left, **members}
    return {
        "code": "call.server-error",
        "left": True,
        "message": function_call.exception_text(error),
        "hint": "",
        "reason": "",
    }
