"""The libraries of each extra: the only list of them (docs/reference/binding.md#extras)."""

from __future__ import annotations

from functools import cache
from typing import Final

SHIPPED: Final[dict[str, tuple[str, ...]]] = {
    "text": ("py3langid", "snowballstemmer", "vaderSentiment"),
    "table": ("openpyxl",),
    "parquet": ("polars",),
    "pdf": ("pypdf",),
    "web": ("trafilatura", "bs4"),
    "code": ("ruff", "lizard", "dulwich"),
    "security": ("phonenumbers", "stdnum"),
    "media": ("PIL",),
    "video": ("av",),
}
"""The modules that shipped functions import, by extra."""
EXTRAS: Final = {
    **SHIPPED,
    "sign": ("cryptography",),
    "mcp": ("mcp",),
    "scale": ("distributed",),
    "keyring": ("keyring",),
    "prove": ("z3",),
    "otlp": ("opentelemetry",),
}
"""All extras, with the modules that show whether each is installed."""
_EXTRA_OF: Final = {module: extra for extra, modules in SHIPPED.items() for module in modules}


def extra_of(module: str) -> str:
    """Return the extra that provides a module; empty if no extra does."""
    return _EXTRA_OF.get(module.partition(".")[0], "")


def install_line(*extras: str) -> str:
    """Return the command that installs extras."""
    return f"pip install 'cogcli[{','.join(extras)}]'"


@cache
def missing_module(extra: str) -> str:
    """Return the first module of an extra that is not installed; empty if all are installed.

    Nothing is imported.
    """
    from importlib.util import find_spec

    return next((module for module in EXTRAS[extra] if find_spec(module) is None), "")
