"""The runs directory: the warning that other users can change it, and the signing of episodes."""

from __future__ import annotations

import os
import stat
from shlex import quote
from typing import TYPE_CHECKING, Final

from cogcli.app.settings import Settings
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.system_text import variable

if TYPE_CHECKING:
    from cogcli.episode.signing import Sign


def shared_warning(settings: Settings) -> UnusableEnvironment | None:
    """Return a warning if other users may write to the runs directory; None if they may not, or if
    it does not exist."""
    path = settings.runs_dir
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not hasattr(os, "geteuid"):  # on Windows a mode does not show permissions
        return None
    user = os.geteuid()
    if found.st_uid not in (user, 0):
        why, cure = "belongs to another user", "name one of your own: --runs-dir DIR"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who = "everybody" if found.st_mode & stat.S_IWOTH else "its group"
        why, cure = f"can be written to by {who}", f"chmod go-w {quote(str(path))}"
    else:
        return None
    message = f"the runs directory `{settings.display_path(path)}` {why}: episodes in it may be altered; {cure}"
    return UnusableEnvironment("env.runs-shared", message, hint=cure)


SIGNING_KEY: Final = "COGCLI_SIGNING_KEY"


def signer_of(settings: Settings) -> Sign | None:
    """Return the function that signs a manifest; None if there is no key.

    Raise UnusableEnvironment `signing.key` or `env.extra`."""
    path = variable(settings.environ, SIGNING_KEY)
    if not path:
        return None
    from cogcli.episode.signing import signer  # a run without a key does without it

    return signer(path)
