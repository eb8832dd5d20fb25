"""What a log says that a person allowed: it counts where the log is the person's own.

An episode that came with a project is what that project says. Its log can name any trust level, anybody's consent
and any answer of a gate, and its hashes fit, since who writes a log computes them. So what it says was allowed counts
in a runs directory that the person names, in the user's own, and in that of a trusted project; elsewhere nothing goes
on with it.
"""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Any

from cogcli.core.errors import EnvironmentRefusal
from cogcli.specs.capability import TRUST_RANKS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cogcli.app.settings import Settings
    from cogcli.episode.log_index import LogIndex


def require_own_consent(settings: Settings, directory: Path, recording: LogIndex) -> None:
    """Raise EnvironmentRefusal `resume.untrusted` where a log that is not the person's own says that more was allowed
    than the person allows now."""
    if recording.started is None:
        return
    options: Mapping[str, Any] = recording.started.payload["options"]
    said = _level(settings, options)
    said += [f"`{id}` confirmed" for id in sorted(map(str, options.get("confirmed_capabilities") or ()))]
    said += [f"`{each.asked.capability}` approved" for each in recording.approvals if each.granted]
    said += [f"a gate passed ({step})" for step in recording.gates_passed]
    _require_own(settings, directory, list(dict.fromkeys(said)), "resume")


def require_own_level(settings: Settings, directory: Path, options: Mapping[str, Any]) -> None:
    """The same of the trust level alone, which a rerun takes over."""
    _require_own(settings, directory, _level(settings, options), "rerun")


def _level(settings: Settings, options: Mapping[str, Any]) -> list[str]:
    level = options["trust_level"]
    own = TRUST_RANKS[settings.value("trust_level")]
    return [f"trust level {level}"] if TRUST_RANKS.get(level, own + 1) > own else []


def _require_own(settings: Settings, directory: Path, said: list[str], verb: str) -> None:
    if not said:
        return
    home, (runs_dir, origin) = os.path.realpath(directory.parent), settings.runs_dir_with_origin()
    is_there = home == os.path.realpath(runs_dir)
    if is_there and (origin != "project" or settings.trust):
        return
    if is_there:
        cure, hint = (
            "cogcli config trust",
            "trust the project, if you trust what it says: cogcli config trust",
        )
    else:
        cure = f"cogcli {verb} {quote(directory.name)} --runs-dir {quote(str(directory.parent))}"
        hint = "name the directory as yours, if you trust what lies in it: --runs-dir"
    raise EnvironmentRefusal(
        "resume.untrusted",
        f"this episode says what was allowed, and it is not known to be yours: {', '.join(said[:5])}"
        + (f" and {len(said) - 5} more" if len(said) > 5 else ""),
        hint=hint,
        next=(cure,),
    )
