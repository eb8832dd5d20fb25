"""Runs tasks in a confined process, from the caller's side (docs/reference/service.md#isolation).

Each process runs one task: no state passes from one call to the next.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import IO, Final

from cogcli.base.jsonvalue import Json, object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refusal import Reason, Refused
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.wall.enter import NO_WALL, Wall, package_folder, python_files
from cogcli.base.wall.limits import MIB, ProcessLimits
from cogcli.base.wall.task import ConfinedTask

_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop());"
    " from cogcli.base.wall.confined_main import main; main()"
)
NO_WALL_HINT: Final = (
    "use Linux 5.13 or newer with Landlock, or permit user name spaces;"
    " `cogcli doctor` shows what is missing"
)
_REASONS: Final[tuple[Reason, ...]] = (
    "bad-data",
    "too-large",
    "unsupported",
    "no-evidence",
    "needs-model",
)
_MAX_TEXT: Final = 10_000
_PROBE: Final = ProcessLimits(0, 512 * MIB, 10, 65536)
_HEAD: Final = 12
_LOOK_SECONDS: Final = 0.05
_SCRATCH_FILES, _SCRATCH_BYTES = 4096, 16 * MIB


class SandboxState(NamedTuple):
    """The sandbox of this machine; None, with the reason, if it has none."""

    wall: Wall | None
    missing: str = ""


class ProgramEnd(NamedTuple):
    """The end of a program: its exit code or the negative signal, whether it timed out, and its
    output.
    """

    code: int
    timed_out: bool
    stdout: bytes
    stderr: bytes
    missing: str
    """The reason why the program did not run behind the wall, if the wall is required; else empty."""


@cache
def wall_state() -> SandboxState:
    """Return the wall of this machine. As a test, one process enters it."""
    task = ConfinedTask(_PROBE, wall="required", read=python_files())
    try:
        end = _run_task(task, b"")
        found = loads(end.stdout)["result"]["wall"] if end.code == 0 else None
    except (OSError, ValueError, KeyError, TypeError, InvalidJson) as error:
        return SandboxState(None, f"a process could not be put behind it: {error}"[:_MAX_TEXT])
    if found is None:
        return SandboxState(None, end.missing or f"the process that tried it ended with {end.code}")
    return SandboxState(Wall(int(found["landlock"]), bool(found["name_spaces"])))


def call_function(
    function: str,
    limits: ProcessLimits,
    arguments: Mapping[str, object],
    *,
    content: bytes | None = None,
    about: str = "",
    read: Sequence[str] = (),
) -> Json:
    """Call `module:name` with the bytes and the arguments in a confined process, and return its result.

    Messages begin with `about`. The process can read the files and folders in `read`. Raise the Refused of the
    function, `bad-data` if the process crashes, `too-large` if it exceeds a limit. Raise ModuleNotFoundError for a
    library that is not installed.
    """
    if content is not None and len(content) > limits.input_bytes:
        raise Refused(
            "too-large", f"{about}{len(content):,} bytes, at most {limits.input_bytes:,} are read"
        )
    task = ConfinedTask(
        limits,
        function=function,
        arguments=dict(arguments),
        has_content=content is not None,
        read=[*python_files(), *read],
    )
    end = _run_task(task, content or b"")
    if end.timed_out:
        raise Refused("too-large", f"{about}not done after {limits.seconds} seconds")
    try:
        limit = limits.output_bytes
        answer = loads(end.stdout, max_bytes=limit, max_nodes=limit)
    except (InvalidJson, ValueError):
        bounds = f"{limits.seconds} seconds, {limits.memory_bytes // MIB} MB of memory"
        text = (
            f"{about}reading it broke off, or took more than {bounds} or {limit:,} bytes of output"
        )
        raise Refused("too-large", text) from None
    return _checked_result(answer, about)


def run_program(
    command: Sequence[str],
    limits: ProcessLimits,
    *,
    content: bytes | None = None,
    read: Sequence[str] = (),
    scratch: str = "",
    environ: Mapping[str, str] | None = None,
    required: bool = False,
) -> ProgramEnd:
    """Run a program behind the wall with the bytes as its standard input. Return how it ended.

    With `required`, raise Refused `unsupported` on a machine without a wall, instead of running
    with limits only.
    """
    task = ConfinedTask(
        limits,
        command=list(command),
        has_content=content is not None,
        wall="required" if required else "if possible",
        read=list(read),
        scratch=scratch,
        environ=dict(environ or {}),
    )
    end = _run_task(task, content or b"")
    if end.missing:
        why = end.missing
        raise Refused(
            "unsupported",
            f"not run, since this machine has no wall to keep it apart: {why}",
            NO_WALL_HINT,
        )
    return end


def _checked_result(answer: object, about: str) -> Json:
    """Return the result in an answer.

    The process is not trusted, so its answer is checked completely.
    """
    match answer:
        case {"result": dict(result)}:
            return result
        case {"module": str(module)}:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    refused = object_of(answer)
    reason: Reason = next((each for each in _REASONS if each == refused.get("reason")), "bad-data")
    message, hint = (str(refused.get(key) or "")[:_MAX_TEXT] for key in ("message", "hint"))
    raise Refused(reason, about + (message or "reading it broke off"), hint)


def _run_task(task: ConfinedTask, content: bytes) -> ProgramEnd:
    mark = secrets.token_hex(16)  # only the process before its task knows it
    limits = task.limits
    head = json.dumps(task._replace(mark=mark)._asdict()).encode()
    command = [sys.executable, "-I", "-c", _START, json.dumps(_import_path())]
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        source.write(str(len(head)).encode().ljust(_HEAD) + head)
        source.write(content)
        source.seek(0)
        # No part of the command comes from data: our interpreter, our program, our import path.
        process = subprocess.Popen(  # noqa: S603
            command, stdin=source, stdout=out, stderr=err, env=_process_variables(), close_fds=True
        )
        try:
            late = not _ends_in_time(process, limits.seconds, task.scratch)
        finally:
            process.kill()
            code = process.wait()
        written, errors = (_read_start(file, limits.output_bytes) for file in (out, err))
    begin = f"{mark} ".encode()
    missing = ""
    if code == NO_WALL and errors.startswith(begin):
        missing = errors.removeprefix(begin).decode(errors="replace").strip()[:_MAX_TEXT]
    return ProgramEnd(code, late, written, errors, missing)


def _ends_in_time(process: subprocess.Popen[bytes], seconds: int, scratch: str) -> bool:
    """Return whether the process ends within these seconds, or fills its scratch folder.

    Name spaces provide a folder in memory with a bound. Without them the folder is on disk, and its
    size is polled.
    """
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        try:
            process.wait(min(rest, _LOOK_SECONDS) if scratch else rest)
        except subprocess.TimeoutExpired:
            if scratch and _is_full(scratch):
                return True  # it is ended by the caller, as a full disk would end it
        else:
            return True
    return False


def _is_full(folder: str) -> bool:
    """Return whether a flat folder has more files or bytes than a task may write."""
    count = size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            with suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
    return count > _SCRATCH_FILES or size > _SCRATCH_BYTES


def _read_start(file: IO[bytes], limit: int) -> bytes:
    """Return the first `limit` bytes of a file."""
    file.seek(0)
    return file.read(limit)


def _process_variables() -> dict[str, str]:
    """Return the variables that a process needs to start: one on Windows, none on other systems."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}


def _import_path() -> list[str]:
    """Return the import paths of this process.

    The working directory is excluded unless it contains cogcli itself.
    """
    own = os.path.dirname(package_folder())
    return [
        path for path in sys.path if (os.path.isabs(path) and path != os.getcwd()) or path == own
    ]
