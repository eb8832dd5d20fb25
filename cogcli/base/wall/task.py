"""The task of a confined process, as its caller sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from cogcli.base.wall.limits import ProcessLimits


class ConfinedTask(NamedTuple):
    """A function of a module, a program, or neither, which shows the parts of the wall.

    `wall`: whether the process may run without one. `mark`: what proves that a message is of the
    process before its task."""

    limits: ProcessLimits
    mark: str = ""
    function: str = ""
    """`module:name`; empty without a function."""
    arguments: Mapping[str, object] = {}
    command: Sequence[str] = ()
    """The program and its arguments; empty without a program."""
    environ: Mapping[str, str] = {}
    has_content: bool = False
    """Whether bytes follow the task."""
    wall: Literal["required", "if possible"] = "if possible"
    read: Sequence[str] = ()
    """The files and folders that can be read."""
    scratch: str = ""
    """The folder that can be written; empty without one."""
