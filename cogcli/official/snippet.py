"""Running a piece of Python behind the wall: no network, no file but Python's own, bounded time and memory
(docs/reference/service.md#isolation). Without a wall nothing is run."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile

from cogcli.sdk import ProcessLimits, Refused, run_behind_wall

_MIB = 1024 * 1024
_SECONDS = 10
_OUTPUT = 256 * 1024
_MEMORY = 512 * _MIB
_MAX_CODE = _MIB
_VARIABLES = {"PATH": "/nowhere", "LANG": "C.UTF-8"}


def execute(code: str, language: str) -> dict[str, object]:
    """Return the output of a piece of Python: `stdout`, `stderr`, and `result`.

    `result` has `exit_code`, `timed_out` (after 10 seconds) and `truncated` (output over 256 KiB).
    The code runs as `python -I` with the standard library, in an empty directory, and cannot start
    processes. Raise Refused for another language, and on a machine without a wall.
    """
    if language.strip().lower() not in ("python", "py", "python3"):
        raise Refused("unsupported", f"code in {language!r:.40} is not run", "there is python")
    if len(code) > _MAX_CODE:
        raise Refused("too-large", f"more than {_MAX_CODE // _MIB} MiB of code")
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    with tempfile.TemporaryDirectory() as folder:
        real = os.path.realpath(folder)
        source, scratch = os.path.join(real, "snippet.py"), os.path.join(real, "work")
        with open(source, "wb") as file:
            file.write(code.encode("utf-8", "surrogatepass"))
        os.mkdir(scratch)
        end = run_behind_wall(
            [python, "-I", source],
            ProcessLimits(0, _MEMORY, _SECONDS, _OUTPUT),
            read=[python, source, *_python_paths()],
            scratch=scratch,
            environ=_VARIABLES,
        )
    stdout, stderr = (
        written.decode("utf-8", "replace").replace(real, "") for written in (end.stdout, end.stderr)
    )
    code_of_end = end.code if end.code >= 0 else 128 - end.code
    return {
        "result": {
            "exit_code": None if end.timed_out else code_of_end,
            "timed_out": end.timed_out,
            "truncated": max(len(end.stdout), len(end.stderr)) >= _OUTPUT,
        },
        "stdout": stdout,
        "stderr": stderr,
    }


def _python_paths() -> list[str]:
    """Return the paths that Python itself reads: the standard library and shared libraries."""
    base = {
        "platbase": sys.base_exec_prefix
    }  # not the virtual environment, whose packages it does not use
    paths = (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib", vars=base),
        sysconfig.get_config_var("LIBDIR"),
    )
    return sorted({path for path in paths if path and path not in ("/", "")})
