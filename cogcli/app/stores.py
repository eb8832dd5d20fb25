"""Where the stores are, whether there are any, and who gets none.

A project that is not trusted has no store: its own is neither read nor written, and that of the user, which counts
instead, is for what the user brings (docs/reference/service.md#stores).
"""

from __future__ import annotations

import os
from pathlib import Path

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import ServiceResolutionError
from cogcli.base.links import is_below


def store_directory(settings: Settings) -> Path:
    """Where the stores of the project are if it is trusted, else those of the user."""
    return Path(settings.store_dir)


def has_store(settings: Settings, file: str) -> bool:
    """Whether anything is where a store of this name is, damaged or not."""
    return os.path.lexists(store_directory(settings) / file)


def is_of_project(settings: Settings, file: str) -> bool:
    """Whether a spec's file is of a project that is not trusted: it lies there, and below no root that the user
    trusts."""
    if not settings.bound:
        return False
    named = os.path.abspath(os.path.join(settings.base, file))
    real, project = os.path.realpath(named), os.path.realpath(settings.bound)
    if not (is_below(real, project) or is_below(named, os.path.abspath(settings.bound))):
        return False
    trusted = open_registry(settings).trusted_layers().layers
    return not any(is_below(real, os.path.realpath(layer.root)) for layer in trusted)


def store_refusal(text: str) -> ServiceResolutionError:
    """The error for what would bring something of a project that is not trusted together with a store."""
    error = ServiceResolutionError(
        "service.untrusted",
        f"the project is not trusted, so {text}",
        hint="trust the project, if it may have a store",
    )
    error.next = ("cogcli config trust",)
    return error
