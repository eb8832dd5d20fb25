"""Resume and rerun: whether the permissions recorded in a log (trust level, confirmations, approvals, passed gates) may
be used again.

An episode that came with a project may be forged: its log can hold any trust level, approval and gate answer, and its
hashes fit, since whoever writes a log computes them. So recorded permissions count only in a runs directory that the
user names with a flag or variable, in the user's own one, and in that of a trusted project. Elsewhere a log with more
permissions than the user grants now is neither resumed nor rerun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from cogcli.app.ask_again import invoke_command, is_agents, no_rerun
from cogcli.app.plan_skill import reads_of
from cogcli.app.registry import open_registry
from cogcli.app.run_skill import agent_of, environment_of
from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError, EnvironmentRefusal, SkillNotFoundError, UsageError
from cogcli.engine.plan import StepPlan, plan_skill
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.events.envelope import Event
from cogcli.runs import resume as runs
from cogcli.runs.given_inputs import GivenRun, prepare_given
from cogcli.runs.log_index import LogIndex
from cogcli.runs.prepare import PreparedRun, RunRequest
from cogcli.runs.rerun import Reuse, failed_loops, first_to_run, read_source_request, reuse_of
from cogcli.runs.results import Control, RunResult
from cogcli.specs.capability import TRUST_RANKS


def resume(
    settings: Settings,
    directory: Path,
    request: runs.ResumeRequest,
    *,
    listener: Callable[[Event], None],
    control: Control,
    on_response: Callable[[str], None] | None = None,
) -> RunResult:
    """Resume a run whose recorded permissions are the user's own; `on_response` is given the responses of an agent as
    they grow. Raises what `runs.resume` does, and EnvironmentRefusal `resume.untrusted`."""
    consent = partial(_require_own_consent, settings, directory)
    own_agent = partial(agent_of, settings, on_response=on_response)
    environment = environment_of(settings)._replace(agent_of=own_agent)
    try:
        return runs.resume(environment, directory, request, consent, listener=listener, control=control)
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


class RerunRequest(NamedTuple):
    """What a rerun changes of the earlier run."""

    from_step: str | None
    failed_items: bool
    """Only the items of loops that are not done, instead."""
    overrides: dict[str, Any]
    """Fields of the RunRequest."""
    inputs: Mapping[str, Any]
    """By name; a GivenText where it has no type yet."""
    problems: Sequence[CogcliError] = ()
    """Those of reading these."""
    origins: Mapping[str, str] = {}
    """By name where these come from."""


def prepare_rerun(
    settings: Settings, directory: Path, asked: RerunRequest, warn: Warn
) -> tuple[PreparedRun, Reuse]:
    """The prepared run of a rerun, and what it reuses. Raises what `prepare_given` does, and EnvironmentRefusal
    `resume.untrusted` for a higher trust level than is set now: a rerun takes over no other permission; UsageError for
    the run of an agent."""
    request, log = read_source_request(directory, asked.overrides, warn)
    if log.started and is_agents(log.started.payload):
        raise no_rerun(directory.name, log.started.payload)
    if log.started and "trust_level" not in asked.overrides:
        higher = _higher_level(settings, log.started.payload["options"])
        _require_own(settings, directory, higher, "rerun")
    try:
        catalog = open_registry(settings).reach(request.skill_id, pack=request.pack_ref)
    except SkillNotFoundError as error:
        raise _skill_not_here(error, directory, "rerun") from error
    given = request._replace(inputs={**request.inputs, **asked.inputs}, origins=asked.origins)
    prepared = prepare_given(catalog, GivenRun(given, asked.problems, asked.inputs), settings.environ)
    plan = plan_skill(prepared.skill, catalog.by_name, catalog.skills)
    if asked.failed_items:
        return prepared, reuse_of(log, plan, failed_loops(log, plan), items=True)
    roots = {**_readers(plan, request, prepared, asked.inputs), **first_to_run(plan, asked.from_step)}
    return prepared, reuse_of(log, plan, roots)


def _readers(
    plan: StepPlan, earlier: RunRequest, prepared: PreparedRun, given: Iterable[str]
) -> dict[str, str]:
    """The steps that read an input which has another value now, each with the reason to run it again."""
    changed = {f"inputs.{name}" for name in given if earlier.inputs.get(name) != prepared.inputs.get(name)}
    found = {}
    for planned in plan.steps:
        read = next((each for each in reads_of(planned) if ".".join(each.split(".")[:2]) in changed), None)
        if read is not None:
            found[planned.step.id] = f"{read} is another"
    return found


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
