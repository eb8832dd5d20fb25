"""The task of a confined process, as its caller sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.wall.limits import ProcessLimits


class ConfinedTask(NamedTuple):
    """A task: a function of a module, or a program. With neither, the process reports the wall's
    parts.

    `wall`: whether the process may run without a wall. `mark`: proves that a message was written
    before the process ran its task.
    """

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
