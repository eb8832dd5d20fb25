"""Which files the shipped functions read under a project that is not trusted.

1. Those below its folder, once links are followed: where a link leads is what the project says.
2. Not what lies there without having come with it: what version control knows, and the episodes of the person.
3. Those that the person named for this run, wherever they are, unless a link of the project leads there.

A refusal tells nothing about the file: the place is judged before anything is opened.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.errors import ServiceResolutionError
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogcli.protocols.pythoncall.function_call import PythonFunction

_NOT_OF_THE_PROJECT = (".git", ".hg", ".svn", ".cogcli")
_SHOWN = 200


class ReadRefused(ServiceResolutionError):
    """A file that is not read because of where it is."""


class Reads(NamedTuple):
    """The folder of the project, and the files outside that were named; both with links followed."""

    folder: str
    named: frozenset[str] = frozenset()

    def opened_as(self, path: str) -> str:
        """The path without links under which a file may be read. Raises ReadRefused `service.untrusted`."""
        real = os.path.realpath(path) if path and "\0" not in path else ""
        if real in self.named or self._is_own(real):
            return real
        raise ReadRefused(
            "service.untrusted",
            f"`{visible(path[:_SHOWN])}` is not read: the project is not trusted, so only files of its folder are,"
            " and those that the command line names as inputs",
            hint="trust the project, if you trust what it reads: cogcli config trust",
            left=False,
        )

    def _is_own(self, real: str) -> bool:
        within = os.path.relpath(real, self.folder).split(os.sep) if _is_below(real, self.folder) else []
        return bool(within) and not set(within).intersection(_NOT_OF_THE_PROJECT)


def reads_of(project: str, given: Any) -> Reads:
    """What may be read under a project that is not trusted, where the person gave these inputs."""
    folder = os.path.realpath(project)
    return Reads(folder, frozenset(_named(given, folder)))


def confine(operation: PythonFunction, reads: Reads) -> Any:
    """Let a shipped function that reads files read these only; what puts it back, None where it reads none.

    Such a module has `OPENED_AS`: a context variable, asked for each path before it is opened.
    """
    module = sys.modules.get(operation.function.__module__)
    asked = getattr(module, "OPENED_AS", None)
    return None if asked is None else (asked, asked.set(reads.opened_as))


def _named(given: Any, folder: str) -> Iterator[str]:
    """The files outside a folder that any text within a value names as a whole."""
    waiting = [given]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and value and "\0" not in value:
            real = os.path.realpath(value)
            if os.path.isfile(value) and not _is_below(real, folder) and not _is_led(value, folder):
                yield real


def _is_led(path: str, folder: str) -> bool:
    """Whether a link below a folder is followed on the way of a path."""
    drive, rest = os.path.splitdrive(os.path.join(os.getcwd(), path))
    real = drive + os.sep
    for part in rest.split(os.sep):
        step = os.path.join(real, part)
        if os.path.islink(step) and _is_below(step, folder):
            return True
        real = os.path.realpath(step)
    return False


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
