"""Resume and rerun: whether the permissions recorded in a log (trust level, confirmations, approvals, passed gates) may
be used again.

An episode that came with a project may be forged: its log can hold any trust level, approval and gate answer, and its
hashes fit, since whoever writes a log computes them. So recorded permissions count only in a runs directory that the
user names with a flag or variable, in the user's own one, and in that of a trusted project. Elsewhere a log with more
permissions than the user grants now is neither resumed nor rerun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from cogcli.app.ask_again import invoke_command, is_agents, no_rerun
from cogcli.app.registry import open_registry
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.core.errors import EnvironmentRefusal, SkillNotFoundError, UsageError
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.events.envelope import Event
from cogcli.runs import resume as runs
from cogcli.runs.log_index import LogIndex
from cogcli.runs.prepare import PreparedRun, prepare
from cogcli.runs.rerun import Reuse, read_source_request, reuse_of
from cogcli.runs.results import Control, RunResult
from cogcli.specs.capability import TRUST_RANKS


def resume(
    settings: Settings,
    directory: Path,
    request: runs.ResumeRequest,
    *,
    listener: Callable[[Event], None],
    control: Control,
) -> RunResult:
    """Resume a run whose recorded permissions are the user's own. Raises what `runs.resume` does, and
    EnvironmentRefusal `resume.untrusted`."""
    consent = partial(_require_own_consent, settings, directory)
    try:
        return runs.resume(
            environment_of(settings), directory, request, consent, listener=listener, control=control
        )
    except SkillNotFoundError as error:
        raise _skill_not_here(error, directory, "resume") from error
    except UsageError as error:
        if error.code == "episode.sealed":
            _name_what_repeats(error, directory)
        raise


def _name_what_repeats(error: UsageError, directory: Path) -> None:
    """Have the error for a finished run name what asks again, where an agent ran."""
    first = next(iterate_events(directory), None)
    started = first.payload if first is not None else {}
    if is_agents(started):
        error.hint, error.next = "ask the agent again", (invoke_command(started),)


def prepare_rerun(
    settings: Settings, directory: Path, from_step: str | None, overrides: dict[str, Any], warn: Warn
) -> tuple[PreparedRun, Reuse]:
    """The prepared run of a rerun, and what it reuses. Raises what `prepare` does, and EnvironmentRefusal
    `resume.untrusted` for a higher trust level than is set now: a rerun takes over no other permission; UsageError for
    the run of an agent."""
    request, log = read_source_request(directory, overrides, warn)
    if log.started and is_agents(log.started.payload):
        raise no_rerun(directory.name, log.started.payload)
    if log.started and "trust_level" not in overrides:
        higher = _higher_level(settings, log.started.payload["options"])
        _require_own(settings, directory, higher, "rerun")
    try:
        catalog = open_registry(settings).reach(request.skill_id, pack=request.pack_ref)
    except SkillNotFoundError as error:
        raise _skill_not_here(error, directory, "rerun") from error
    prepared = prepare(catalog, request, settings.environ)
    return prepared, reuse_of(log, prepared, from_step)


def _skill_not_here(error: SkillNotFoundError, directory: Path, verb: str) -> SkillNotFoundError:
    """The error for an episode whose skill is not in this registry: `verb` needs the project that it ran in."""
    found = SkillNotFoundError(
        error.code,
        f"{error.message} here: `{verb}` needs the project that `{directory.name}` ran in",
        hint="start there with -C DIR, or add its specs with --registry DIR; replay and trace need no project",
    )
    found.next = (f"cogcli replay {quote(str(directory))}", f"cogcli trace {quote(str(directory))}")
    return found


def _require_own_consent(settings: Settings, directory: Path, log: LogIndex) -> None:
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
        cure = "cogcli config trust"
        hint = f"trust the project, if you trust what it says: {cure}"
    else:
        cure = f"cogcli {verb} {quote(directory.name)} --runs-dir {quote(str(directory.parent))}"
        hint = "name the directory as yours, if you trust what lies in it: --runs-dir"
    more = f" and {len(permissions) - 5} more" if len(permissions) > 5 else ""
    found = f"{', '.join(permissions[:5])}{more}"
    message = f"this episode says what was allowed, and it is not known to be yours: {found}"
    raise EnvironmentRefusal("resume.untrusted", message, hint=hint, next=(cure,))
