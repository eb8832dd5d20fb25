"""The confined process: it limits itself, goes behind the wall, then runs one task
(docs/reference/service.md#isolation).

Standard input is a line of JSON, the task, and then the foreign bytes. Standard output is a file. A
task is a function of a module (`module:name`), or a program that replaces this process. A task with
neither reports the parts of the wall.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import NoReturn

from cogcli.base.refusal import Refused
from cogcli.base.wall.enter import NO_WALL, SandboxUnavailable, die_with_parent, enter
from cogcli.base.wall.limits import ProcessLimits, apply_limits
from cogcli.base.wall.task import ConfinedTask

_SHOWN = 10_000
"""The longest message. It is far longer than the displayed text, since secrets are masked before a text is
truncated for a screen.
"""


def main() -> None:
    """Run the task from standard input and end the process."""
    task = ConfinedTask(**json.loads(_read_task()))
    parts: dict[str, object] = {}
    try:
        if sys.platform == "linux":
            die_with_parent()
        apply_limits(ProcessLimits(*task.limits))
        parts = enter(task.read, scratch=task.scratch, programs=bool(task.command))._asdict()
    except SandboxUnavailable as error:
        if task.wall == "required":
            _end_without_wall(task, str(error))
    if task.command:
        _replace_by_program(task)
    answer = _call_function(task) if task.function else {"result": {"wall": parts}}
    _write_answer_and_exit(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


def _read_task() -> bytes:
    """Return the bytes of the task from standard input.

    No further bytes are read, because a program may read them.
    """
    parts = bytearray()
    size = int(os.read(0, 12))
    while len(parts) < size:
        parts += os.read(0, size - len(parts))
    return bytes(parts)


def _replace_by_program(task: ConfinedTask) -> None:
    """Replace this process by the program of the task."""
    if not task.has_content:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    command = task.command
    try:
        os.execve(command[0], list(command), task.environ)  # noqa: S606
    except OSError as error:
        _end_without_wall(task, f"{command[0]}: {error.strerror}")


def _end_without_wall(task: ConfinedTask, text: str) -> NoReturn:
    """Write the reason for the caller and end the process."""
    os.write(2, f"{task.mark} {text}".encode("utf-8", "replace"))
    os._exit(NO_WALL)


def _call_function(task: ConfinedTask) -> dict[str, object]:
    module, _, name = task.function.partition(":")
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is not part of the answer
    try:
        function = getattr(importlib.import_module(module), name)
        content = sys.stdin.buffer.read()
        given = {"content": content} if task.has_content else {}
        return {"result": function(**given, **task.arguments)}
    except Refused as refused:
        return {
            "reason": refused.reason,
            "message": refused.message[:_SHOWN],
            "hint": refused.hint[:_SHOWN],
        }
    except ModuleNotFoundError as error:
        return {"module": error.name}
    except (MemoryError, RecursionError):
        return {
            "reason": "too-large",
            "message": "it takes more memory than it is given",
            "hint": "",
        }
    except Exception as error:
        text = f"it cannot be read: {type(error).__name__}: {error}"[:_SHOWN]
        return {"reason": "bad-data", "message": text, "hint": ""}
    finally:
        sys.stdout = out


def _write_answer_and_exit(data: bytes) -> None:
    """Write the answer and end the process. If the answer exceeds the file limit, the process ends after a partial
    write.
    """
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        os._exit(1)
    os._exit(0)
