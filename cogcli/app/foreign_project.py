"""An episode away from the project whose skill it ran: it holds what happened, not what to run."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cogcli.core.errors import SkillNotFoundError

if TYPE_CHECKING:
    from pathlib import Path


def away(error: SkillNotFoundError, directory: Path, verb: str) -> SkillNotFoundError:
    """The same error in the words of whoever named an episode, not a skill."""
    told = SkillNotFoundError(
        error.code,
        f"{error.message} here: `{verb}` needs the project that `{directory.name}` ran in",
        hint="start there with -C DIR, or add its specs with --registry DIR; replay and trace need no project",
    )
    told.next = (f"cogcli replay {quote(str(directory))}", f"cogcli trace {quote(str(directory))}")
    return told
