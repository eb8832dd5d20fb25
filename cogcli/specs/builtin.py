"""The place of the shipped registry."""

from __future__ import annotations

import os


def builtin_root() -> str:
    """The directory that holds the shipped `skills/`, `capabilities/` and so on: inside the package when it is
    installed, beside it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "registry")
    return inside if os.path.isdir(inside) else os.path.dirname(package)
