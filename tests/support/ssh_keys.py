"""SSH keys of people, made by the program itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def require_ssh() -> None:
    """Skip the test, with the reason, where there is no `ssh-keygen`."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")


def make_key(path: Path, *, kind: str = "ed25519") -> str:
    """Make a key without a passphrase, and return the line of its public half."""
    words = ("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", path.name, "-f", str(path))
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path.with_name(f"{path.name}.pub").read_text().strip()


def person(name: str, *keys: str, roles: str = '"finance"', revoked: str = "") -> str:
    """The table of a person in the settings."""
    lines = ", ".join(f"'{key}'" for key in keys)
    gone = f"revoked = ['{revoked}']\n" if revoked else ""
    return f"[approvers.{name}]\nroles = [{roles}]\nkeys = [{lines}]\n{gone}"
