"""Whether other users may write to the runs directory: they could add, swap and alter episodes."""

from __future__ import annotations

import os
import stat

from cogcli.app.settings import Settings
from cogcli.core.errors import EnvironmentRefusal


def shared_warning(settings: Settings) -> EnvironmentRefusal | None:
    """A warning where other users may write to the runs directory; None otherwise, and where it does not exist."""
    path = settings.runs_dir
    try:
        found = os.stat(path)
    except OSError:
        return None
    user = os.geteuid()
    if found.st_uid not in (user, 0):
        why, cure = "belongs to another user", "name one of your own: --runs-dir DIR"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        from shlex import quote

        who = "everybody" if found.st_mode & stat.S_IWOTH else "its group"
        why, cure = f"can be written to by {who}", f"chmod go-w {quote(str(path))}"
    else:
        return None
    message = (
        f"the runs directory `{settings.display_path(path)}` {why}: episodes in it may be altered; {cure}"
    )
    return EnvironmentRefusal("env.runs-shared", message, hint=cure)
