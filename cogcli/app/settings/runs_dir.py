"""The runs directory: the warning that other users can change it, and the signing of episodes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from cogcli.app.settings import Settings
from cogcli.app.settings.config import EPISODES_MODE
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.system_text import shell_word, variable

if TYPE_CHECKING:
    from pathlib import Path

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
    with_group = settings.with_origin(EPISODES_MODE)[0] == "group"
    if found.st_uid not in (user, 0) and not (with_group and found.st_mode & stat.S_IWGRP):
        why, cure = "belongs to another user", "name one of your own: --runs-dir DIR"
    elif with_group and not found.st_mode & stat.S_IWOTH:
        return None
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who = "everybody" if found.st_mode & stat.S_IWOTH else "its group"
        why, cure = f"can be written to by {who}", f"chmod go-w {shell_word(path)}"
    else:
        return None
    message = f"the runs directory `{settings.display_path(path)}` {why}: episodes in it may be altered; {cure}"
    return UnusableEnvironment("env.runs-shared", message, hint=cure)


def is_shared(runs_dir: Path | str) -> bool:
    """Return whether other users may write to the runs directory and so may have episodes in it."""
    try:
        found = os.stat(runs_dir)
    except OSError:
        return False
    if not hasattr(os, "geteuid"):
        return False
    return found.st_uid != os.geteuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


SIGNING_KEY: Final = "COGCLI_SIGNING_KEY"


def signer_of(settings: Settings) -> Sign | None:
    """Return the function that signs a manifest; None without a signing key. Raise UnusableEnvironment `signing.key` or
    `env.extra`.
    """
    path = variable(settings.environ, SIGNING_KEY)
    if not path:
        return None
    from cogcli.episode.signing import signer  # a run without a key does without it

    return signer(path)
