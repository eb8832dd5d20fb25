"""The locations of stores, whether they exist, and the refusal of stores to projects that are not
trusted.

A project that is not trusted has no store: its own store is neither read nor written, and the
user's store is only open to the user's own specs (docs/reference/service.md#stores)."""

from __future__ import annotations

import os
from pathlib import Path

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import ServiceResolutionError
from cogcli.base.links import is_below


def store_directory(settings: Settings) -> Path:
    """Return the folder of the project's stores if the project is trusted, otherwise of the
    user's."""
    return Path(settings.store_dir)


def has_store(settings: Settings, file: str) -> bool:
    """Return whether the file of this store exists. It may be damaged."""
    return os.path.lexists(store_directory(settings) / file)


def is_of_project(settings: Settings, file: str) -> bool:
    """Return whether a spec belongs to a project that is not trusted and is not in a root that the user
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
    """Return the error for an action that would give an untrusted project access to a store."""
    error = ServiceResolutionError(
        "service.untrusted",
        f"the project is not trusted, so {text}",
        hint="trust the project, if it may have a store",
    )
    error.next = ("cogcli config trust",)
    return error
