"""Commands of other users of the operating system, whose rights are real. Only root can act as them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest
from support.project import Result

import cogcli

GROUP: Final = 61_000
"""A group that no account has. Both users are in it."""
_SOURCES: Final = Path(cogcli.__file__).parents[1]
_SECONDS: Final = 180.0


class SystemAccount:
    """A user with a home of its own, and the commands that it gives."""

    def __init__(self, name: str, home: Path, environ: Mapping[str, str]) -> None:
        from pwd import getpwnam

        self.name = name
        self.uid = getpwnam(name).pw_uid
        self.home = home
        self.environ = {
            **environ,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "TMPDIR": str(home),
            "PYTHONPATH": os.pathsep.join((str(_SOURCES), *_packages())),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COGCLI_TRUST_PROJECT": "1",
            "USER": name,
            "LOGNAME": name,
        }
        home.mkdir(mode=0o700)
        self.own(home)

    def own(self, path: Path) -> Path:
        """Give a file or directory to this user, and return it."""
        os.chown(path, self.uid, GROUP)
        return path

    def write(self, path: Path, text: str, *, mode: int = 0o600) -> Path:
        """Write a file of this user. Directories that are missing are its own, too."""
        for folder in reversed(path.parents):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                self.own(folder)
        path.write_text(text)
        path.chmod(mode)
        return self.own(path)

    def settings(self, text: str) -> Path:
        """Write the user's own settings."""
        return self.write(self.home / ".config/cogcli/config.toml", text)

    def start(self, *words: str, cwd: Path, data: str = "") -> Result:
        """Run a program as this user."""
        done = subprocess.run(
            words, cwd=cwd, env=self.environ, input=data.encode(), capture_output=True,
            timeout=_SECONDS, user=self.uid, group=GROUP, extra_groups=[], check=False, umask=0o022,
        )  # fmt: skip
        return Result(words, done.returncode, done.stdout, done.stderr)

    def cogcli(self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Result:
        """Run `cogcli` as this user."""
        before = self.environ
        self.environ = {**before, **(env or {})}
        try:
            return self.start(_interpreter(), "-m", "cogcli", *arguments, cwd=cwd)
        finally:
            self.environ = before


@cache
def _packages() -> tuple[str, ...]:
    return tuple(path for path in sys.path if path.endswith("site-packages"))


@cache
def _interpreter() -> str:
    """Return an interpreter of this version that any user may start. Empty if there is none."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin") or ""
    for program in (sys.executable, found):
        try:
            subprocess.run(
                (program, "-c", "import ssl, sqlite3, cogcli.cli.main"),
                env={"PYTHONPATH": os.pathsep.join((str(_SOURCES), *_packages()))},
                user="nobody", group=GROUP, extra_groups=[], check=True, capture_output=True,
                timeout=_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError, KeyError):
            continue
        return program
    return ""


def require_users() -> None:
    """Skip the test, with the reason, where no command can run as another user."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can run commands as other users")
    if not _interpreter():
        pytest.skip("there is no Python of this version that other users may start")


def shared_directory() -> Path:
    """Return a new directory that every user may enter; pytest's own are closed to them."""
    place = Path(mkdtemp(prefix="cogcli-users-")).resolve()
    place.chmod(0o755)
    return place
