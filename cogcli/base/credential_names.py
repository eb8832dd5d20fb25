r"""Names of files and folders that usually contain credentials, and of folders that belong to the
user of a project (docs/reference/service.md#credential-files).

A file system may accept several spellings of a name: `.GIT`, `.git.`, `.git `, `GIT~1` and
`.g\u200cit` are all `.git` on some system. On every system, all of these spellings are recognized.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from cogcli.base.errors import SafetyScopeError
from cogcli.base.text_places import escape_hidden

_SHOWN = 200

_CREDENTIAL_FOLDERS = frozenset(
    (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store")
)
_CREDENTIAL_FILES = frozenset(
    ".env .envrc .dev.vars .netrc .pgpass .npmrc .pypirc .git-credentials credentials.json .htpasswd .my.cnf"
    " .vault-token secrets.yaml secrets.yml secrets.json secrets.toml shadow shadow- gshadow gshadow-"
    " master.passwd".split()
)
_CREDENTIAL_ENDINGS = (
    ".env", ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".tfstate", ".tfstate.backup",
)  # fmt: skip
_CREDENTIAL_STARTS = ("id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".env.")
_REPOSITORY_FOLDERS = frozenset((".git", ".hg", ".svn", ".cogcli"))
_SHORT_NAMES = frozenset(("git", "hg", "svn", "cogcli"))
_IGNORED = dict.fromkeys(
    (
        0xAD,
        0x34F,
        0x61C,
        0x180E,
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        0xFEFF,
    )
)
"""Characters of a name that a file system ignores or a reader cannot see."""


def credential_reason(real: str) -> str:
    """Return why a path usually contains credentials; empty if no name in it suggests that.

    `real` must contain no links.
    """
    names = [_normalize_name(part) for part in real.split(os.sep) if part]
    if _CREDENTIAL_FOLDERS.intersection(names):
        return "the folder usually holds credentials"
    name = names[-1] if names else ""
    if (
        name in _CREDENTIAL_FILES
        or name.endswith(_CREDENTIAL_ENDINGS)
        or name.startswith(_CREDENTIAL_STARTS)
    ):
        return "files of this name usually hold credentials"
    return ""


def credential_error(path: str, reason: str) -> SafetyScopeError:
    """Return the error for a file that usually contains credentials.

    A run with network access must not read it.
    """
    shown = escape_hidden(path[:_SHOWN])
    return SafetyScopeError(
        "safety.scope",
        f"`{shown}` is not read: {reason}, and this run may reach a network or a model",
        hint="type the path as an input of the run, if what the file holds may leave this machine",
        left=False,
    )


def is_repository_folder(name: str) -> bool:
    """Return whether a file system may treat this name as `.git`, `.hg`, `.svn` or `.cogcli`."""
    plain = _normalize_name(name)
    if plain in _REPOSITORY_FOLDERS:
        return True
    short, tilde, number = plain.partition("~")
    return bool(tilde) and short in _SHORT_NAMES and number.isdecimal()


def has_repository_folder(names: Iterable[str]) -> bool:
    """Return whether a file system may treat any of these path parts as a repository folder
    (`is_repository_folder`).
    """
    return any(map(is_repository_folder, names))


def _normalize_name(name: str) -> str:
    """Return a name as macOS or Windows may read it: lower case, without invisible characters,
    stream, or final dots and spaces."""
    return name.translate(_IGNORED).partition(":")[0].casefold().rstrip(". ")
