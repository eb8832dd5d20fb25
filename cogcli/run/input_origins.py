"""Where the inputs of a run come from (docs/reference/command-line.md#inputs). What is typed names files for the run;
nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TYPED: Final = "typed"
"""On the command line, or by the caller of the API."""
FILE: Final = "file"
"""The content of a file, or what stdin gave."""
CASE: Final = "case"
"""A test case or an example."""
CLIENT: Final = "client"
"""A client of `serve mcp`."""
DEFAULT: Final = "default"
"""The default of the skill; of every input without another origin."""


def typed_values(inputs: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, Any]:
    """By name the values of inputs that were typed."""
    return {name: value for name, value in inputs.items() if origins.get(name, DEFAULT) == TYPED}
