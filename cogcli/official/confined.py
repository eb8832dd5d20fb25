"""Parsers of foreign bytes, each in a confined process with limits (docs/reference/service.md#isolation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cogcli.sdk import ProcessLimits, call_confined

_MIB = 1024 * 1024

LIMITS: Final = {
    "pdf:extract": ProcessLimits(32 * _MIB, 300 * _MIB, 20, 40 * _MIB),
    "video:extract": ProcessLimits(128 * _MIB, 900 * _MIB, 40, 16 * _MIB),
    "image:look_at": ProcessLimits(25 * _MIB, 900 * _MIB, 20, 64 * 1024),
    "web:read_page": ProcessLimits(4 * _MIB, 700 * _MIB, 20, 32 * _MIB),
    "email:messages_of_file": ProcessLimits(64 * _MIB, 1024 * _MIB, 20, 128 * _MIB),
    "email:messages_of_folder": ProcessLimits(0, 1024 * _MIB, 20, 128 * _MIB),
    "git:commits": ProcessLimits(0, 1024 * _MIB, 20, 64 * _MIB),
    "sheet_files:read_workbook": ProcessLimits(64 * _MIB, 1024 * _MIB, 20, 128 * _MIB),
    "sheet_files:read_parquet": ProcessLimits(64 * _MIB, 8192 * _MIB, 20, 128 * _MIB),
    "code_measures:measure": ProcessLimits(0, 300 * _MIB, 20, 16 * _MIB),
}
"""By parser: the most bytes of its input, of its address space, seconds, and bytes of its output. polars reserves far
more address space than it uses."""
RUFF: Final = ProcessLimits(4 * _MIB, 2048 * _MIB, 20, 16 * _MIB)
"""The limits of the formatter of Python, which is a program."""


def run_confined_function(
    function: str,
    *,
    content: bytes | None = None,
    about: str = "",
    read: Sequence[str] = (),
    **arguments: Any,
) -> dict[str, Any]:
    """Run `module:function` of this package in a confined process, and return its result. Error messages begin with
    `about`. The process can read the files and folders in `read`. Raise the errors of `call_confined`.
    """
    return call_confined(
        f"cogcli.official.{function}",
        LIMITS[function],
        arguments,
        content=content,
        about=about,
        read=read,
    )
