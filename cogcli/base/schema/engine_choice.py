"""Chooses the engine that applies JSON Schemas: jsonschema-rs, or jsonschema if jsonschema-rs has
no wheel (ADR 9).

`COGCLI_SCHEMA_ENGINE` forces one of them.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import Final

from cogcli.base.errors import UnusableEnvironment

PYTHON: Final = "jsonschema"
RUST: Final = "jsonschema-rs"
_VARIABLE: Final = "COGCLI_SCHEMA_ENGINE"


def engine() -> str:
    """Return the engine in use: `jsonschema-rs` or `jsonschema`.

    Raise UnusableEnvironment `config.key` if `COGCLI_SCHEMA_ENGINE` names an unknown engine or one
    that is not installed.
    """
    return _choose_engine(os.environ.get(_VARIABLE, ""))


def require_engine() -> None:
    """Check `COGCLI_SCHEMA_ENGINE` before a run needs an engine.

    Raise UnusableEnvironment `config.key`.
    """
    if os.environ.get(_VARIABLE):
        engine()


@lru_cache(maxsize=4)
def _choose_engine(setting: str) -> str:
    if setting == PYTHON:
        return PYTHON
    if setting in ("", RUST) and is_rust_usable():
        return RUST
    if not setting:
        return PYTHON
    found = "which is not installed" if setting == RUST else f"expected {PYTHON} or {RUST}"
    hint = "pip install 'jsonschema-rs>=0.60,<0.61'" if setting == RUST else "unset it"
    raise UnusableEnvironment(
        "config.key", f"COGCLI_SCHEMA_ENGINE is `{setting[:40]}`, {found}", hint=hint
    )


def engine_key() -> str:
    """Return a cache key that changes when another engine may be chosen. No engine is loaded."""
    name = "jsonschema_rs"
    # A caller blocks a module by None among the loaded ones.
    found = sys.modules[name] if name in sys.modules else PathFinder.find_spec(name)
    return f"{os.environ.get(_VARIABLE, '')}:{found is not None:d}"


def is_rust_usable() -> bool:
    """Return whether jsonschema-rs is installed, loads, and has a supported version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        import jsonschema_rs  # noqa: F401

        return version("jsonschema-rs").startswith("0.60.")
    except (ImportError, PackageNotFoundError):
        return False
