"""Where the stores of a project are, and whether there are any."""

from __future__ import annotations

import os
from pathlib import Path

from cogcli.app.settings import Settings


def store_directory(settings: Settings) -> Path:
    """Where the stores of the project are, or those of the user without one. Raises EnvironmentRefusal
    `project.link`."""
    return Path(settings.store_dir)


def has_store(settings: Settings, file: str) -> bool:
    """Whether anything is where a store of this name is, damaged or not."""
    return os.path.lexists(store_directory(settings) / file)
