"""`doctor --fix`: repairs of the project's files that need no confirmation
(docs/reference/command-line.md#doctor-fix)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final

from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.editor_schemas import FOLDER, write_schemas
from cogcli.app.registry import writing_to
from cogcli.app.settings import Settings
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple

IGNORED: Final = ".cogcli/"
_LARGEST: Final = 1024 * 1024


class Repair(NamedTuple):
    """The repair for a check: its description, and the function that makes it.

    The function raises UnusableEnvironment `env.disk`."""

    words: str
    apply: Callable[[Settings, str], object]


def find_repairs(settings: Settings, checks: Iterable[DoctorCheck]) -> list[Repair]:
    """Return a repair for each warning that has one."""
    if settings.project is None:
        return []
    return [
        REPAIRS[check.name]
        for check in checks
        if check.status == "warning" and check.name in REPAIRS
    ]


def _add_to_gitignore(settings: Settings, project: str) -> None:
    """Add cogcli's directory to `.gitignore`. A link is followed only inside the project."""
    path = settings.require_inside(os.path.join(project, ".gitignore"))
    with writing_to("`.gitignore`"):
        if os.path.dirname(path) != os.path.realpath(project):
            raise OSError(0, "a link leads out of the project")
        try:
            there, mode = read_regular(path, limit=_LARGEST), os.stat(path).st_mode & 0o777
        except UnreadableFile as refused:
            if refused.reason != "missing":
                raise OSError(0, refused.message) from refused
            there, mode = b"", 0o644
        ended = there if not there or there.endswith(b"\n") else there + b"\n"
        write_atomic(path, ended + f"{IGNORED}\n".encode(), mode=mode, bound=project)


REPAIRS: Final = {
    "git": Repair(f"add {IGNORED} to .gitignore", _add_to_gitignore),
    "schemas for editors": Repair(
        f"write {FOLDER} again", lambda settings, _: write_schemas(settings)
    ),
}
"""The repair of each check, by the name of the check."""
