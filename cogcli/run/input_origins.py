"""The origins of a run's inputs (docs/reference/command-line.md#inputs). Only a typed input may name files for the
run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TYPED: Final = "typed"
"""Typed on the command line, or passed as a `Path` by the caller of the API."""
CALLER: Final = "caller"
"""Passed as data by the caller of the API. It counts as typed, but names no file that is sent from elsewhere."""
FILE: Final = "file"
"""Read from a file or from stdin."""
CASE: Final = "case"
"""Part of a test case or an example."""
CLIENT: Final = "client"
"""Sent by a client of `serve mcp`."""
DEFAULT: Final = "default"
"""A default of the skill. Every input without another origin has this one."""


def select_typed_inputs(
    inputs: Mapping[str, object], origins: Mapping[str, str]
) -> dict[str, object]:
    """Return the values of typed inputs by name."""
    typed = (TYPED, CALLER)
    return {name: value for name, value in inputs.items() if origins.get(name, DEFAULT) in typed}
