"""Whether the permissions recorded in a log (trust level, confirmations, approvals, passed gates) may be used again.

An episode that came with a project may be forged: its log can hold any trust level, approval and gate answer, and its
hashes fit, since whoever writes a log computes them. So recorded permissions count only in a runs directory that the
user names with a flag or variable, in the user's own one, and in that of a trusted project. Elsewhere a log with more
permissions than the user grants now is neither resumed nor rerun.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

from cogcli.app.settings import Settings
from cogcli.core.errors import EnvironmentRefusal
from cogcli.runs.log_index import LogIndex
from cogcli.specs.capability import TRUST_RANKS

if TYPE_CHECKING:
    from pathlib import Path


def require_own_consent(settings: Settings, directory: Path, log: LogIndex) -> None:
    """Check all recorded permissions of a log before it is resumed.

    Raises EnvironmentRefusal `resume.untrusted` for a log that is not the user's own and holds a higher trust level
    than is set now, a confirmed capability, an approval or a passed gate.
    """
    if log.started is None:
        return
    options: Mapping[str, Any] = log.started.payload["options"]
    recorded = _higher_level(settings, options)
    recorded += [f"`{id}` confirmed" for id in sorted(map(str, options.get("confirmed_capabilities") or ()))]
    recorded += [f"`{each.asked.capability}` approved" for each in log.approvals if each.granted]
    recorded += [f"a gate passed ({step})" for step in log.gates_passed]
    _require_own(settings, directory, list(dict.fromkeys(recorded)), "resume")


def require_own_level(settings: Settings, directory: Path, options: Mapping[str, Any]) -> None:
    """Check the recorded trust level alone: a rerun takes over no other permission. Raises as `require_own_consent`."""
    _require_own(settings, directory, _higher_level(settings, options), "rerun")


def _higher_level(settings: Settings, options: Mapping[str, Any]) -> list[str]:
    level = options["trust_level"]
    own = TRUST_RANKS[settings.value("trust_level")]
    return [f"trust level {level}"] if TRUST_RANKS.get(level, own + 1) > own else []


def _require_own(settings: Settings, directory: Path, permissions: list[str], verb: str) -> None:
    if not permissions:
        return
    home, (runs_dir, origin) = os.path.realpath(directory.parent), settings.runs_dir_with_origin()
    in_runs_dir = home == os.path.realpath(runs_dir)
    if in_runs_dir and (origin != "project" or settings.trust):
        return
    if in_runs_dir:
        cure, hint = (
            "cogcli config trust",
            "trust the project, if you trust what it says: cogcli config trust",
        )
    else:
        cure = f"cogcli {verb} {quote(directory.name)} --runs-dir {quote(str(directory.parent))}"
        hint = "name the directory as yours, if you trust what lies in it: --runs-dir"
    raise EnvironmentRefusal(
        "resume.untrusted",
        f"this episode says what was allowed, and it is not known to be yours: {', '.join(permissions[:5])}"
        + (f" and {len(permissions) - 5} more" if len(permissions) > 5 else ""),
        hint=hint,
        next=(cure,),
    )
