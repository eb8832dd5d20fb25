"""Running a piece of Python where it reaches nothing: no network, no file but Python's own, bounded time and memory.

The system's own walls do this (Linux name spaces, without further rights). Where they cannot be had, nothing is run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import IO

from cogcli.sdk import Refused

_SECONDS = 10
_OUTPUT = 256 * 1024
_MAX_CODE = 1024 * 1024
_NO_WALLS = 77
_TOLD = ": not run, as it cannot be kept apart from this machine"


def execute(code: str, language: str) -> dict[str, object]:
    """What a piece of Python prints: `stdout` and `stderr`, and in `result` its `exit_code`, whether it was `timed_out`
    after 10 seconds and whether output was `truncated` after 256 KiB.

    It runs as `python -I` with the standard library, in an empty directory. Whatever it started ends with it. Raises
    Refused for another language, and where the system does not let us keep it apart.
    """
    if language.strip().lower() not in ("python", "py", "python3"):
        raise Refused("unsupported", f"code in {language!r:.40} is not run", "there is python")
    if len(code) > _MAX_CODE:
        raise Refused("too-large", f"more than {_MAX_CODE // 1024 // 1024} MiB of code")
    if sys.platform != "linux":
        raise Refused("unsupported", f"{sys.platform}{_TOLD}")
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    wall = Path(__file__).with_name("snippet_wall.py")
    command = [python, "-I", "-S", str(wall), str(_SECONDS), python, *_needed(python)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as source:
        source.write(code.encode("utf-8", "surrogatepass"))
        source.seek(0)
        ended = subprocess.run(  # noqa: S603
            command, stdin=source, stdout=out, stderr=err, env={}, cwd="/", check=False
        ).returncode
        stdout, stderr = (_written(file) for file in (out, err))
    if ended == _NO_WALLS and stderr.startswith("no wall: "):
        raise Refused("unsupported", f"{stderr[9:].strip()[:120]}{_TOLD}", "run it in a container of yours")
    late = ended == -signal.SIGALRM
    return {
        "result": {
            "exit_code": None if late else ended,
            "timed_out": late,
            "truncated": max(len(stdout), len(stderr)) >= _OUTPUT,
        },
        "stdout": stdout,
        "stderr": stderr,
    }


def _needed(python: str) -> list[str]:
    """What Python itself reads: the program, its library, and those of the system."""
    found = {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sysconfig.get_config_var("LIBDIR"),
    }
    system = ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/lib32", "/etc/ld.so.cache")
    return sorted({python, *filter(None, found), *system} - {"/"}, key=len)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_OUTPUT).decode("utf-8", "replace")
