"""The use cases of runs: what settings and trust add to `runs/`, and what a log of another owner may not do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cogcli.core.errors import CogcliError, SkillNotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.app.settings import Settings
    from cogcli.episode.strict_log import Warn
    from cogcli.events.envelope import Event
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.runs.environment import RunEnvironment
    from cogcli.runs.prepare import PreparedRun, RunRequest
    from cogcli.runs.replay import ReplayResult
    from cogcli.runs.rerun import Reuse
    from cogcli.runs.results import Control, RunResult
    from cogcli.runs.resume import ResumeRequest
    from cogcli.specs.catalog import Catalog


def environment_of(settings: Settings) -> RunEnvironment:
    """What a run takes from outside, by settings and trust. Raises UsageError, EnvironmentRefusal `config.key`."""
    from cogcli.app.registry import open_registry
    from cogcli.app.settings.runs_dir import signer_of
    from cogcli.app.settings.user_dirs import state_home
    from cogcli.runs.environment import RunEnvironment

    return RunEnvironment(
        runs_dir=settings.runs_dir,
        state_dir=state_home(settings.environ),
        environ=settings.environ,
        clock=settings.clock,
        ids=settings.ids,
        open_registry=partial(open_registry, settings),
        signer=partial(signer_of, settings),
        use_env_proxy=settings.value("use_env_proxy"),
        reads=_readable_files(settings),
    )


def _readable_files(settings: Settings) -> Reads | None:
    """The files that shipped functions may read in a project that is not trusted; None where any may be read."""
    if settings.project is None or settings.trust:
        return None
    from cogcli.protocols.pythoncall.readable_files import reads_of

    return reads_of(settings.project, settings.named)


def reach(settings: Settings, skill_id: str) -> Catalog:
    """The closure of a skill, with or without problems. Raises SkillNotFoundError."""
    from cogcli.app.registry import open_registry

    return open_registry(settings).reach(skill_id)


def load(settings: Settings, request: RunRequest) -> PreparedRun:
    """The prepared run of a request. Raises SkillNotFoundError, and what `prepare` does."""
    from cogcli.runs.prepare import prepare

    return prepare(reach(settings, request.skill_id), request, settings.environ)


def load_given(
    settings: Settings,
    request: RunRequest,
    catalog: Catalog,
    problems: Sequence[CogcliError],
    doubtful: Iterable[str],
) -> PreparedRun:
    """The prepared run of a command line, over the closure of its skill. Raises as `prepare_given`."""
    from cogcli.runs.given_inputs import prepare_given

    return prepare_given(catalog, request, settings.environ, problems, doubtful)


def run(settings: Settings, prepared: PreparedRun, **parts: Any) -> RunResult:
    """Run a prepared run to its end; `parts` as those of `launch`, and it raises the same."""
    from cogcli.runs.launch import launch

    return launch(environment_of(settings), prepared, **parts)


def resume(
    settings: Settings,
    directory: Path,
    request: ResumeRequest,
    *,
    listener: Callable[[Event], None] | None = None,
    control: Control | None = None,
) -> RunResult:
    """Resume a run whose recorded permissions are the user's own. Raises what `runs.resume` does, and
    EnvironmentRefusal `resume.untrusted`."""
    from cogcli.app.recorded_permissions import require_own_consent
    from cogcli.runs.resume import resume

    consent = partial(require_own_consent, settings, directory)
    try:
        return resume(
            environment_of(settings), directory, request, consent, listener=listener, control=control
        )
    except SkillNotFoundError as error:
        raise skill_not_here(error, directory, "resume") from error


def prepare_reuse(
    settings: Settings, directory: Path, from_step: str | None, overrides: dict[str, Any],
    warn: Warn | None = None,
) -> tuple[PreparedRun, Reuse]:  # fmt: skip
    """The prepared run of a rerun, and what it reuses. Raises what `load` and `require_own_level` do."""
    from cogcli.app.recorded_permissions import require_own_level
    from cogcli.runs.rerun import read_source_request, reuse_of

    request, log = read_source_request(directory, overrides, warn)
    if log.started and "trust_level" not in overrides:
        require_own_level(settings, directory, log.started.payload["options"])
    try:
        prepared = load(settings, request)
    except SkillNotFoundError as error:
        raise skill_not_here(error, directory, "rerun") from error
    return prepared, reuse_of(log, prepared, from_step)


def probe_effects(settings: Settings, prepared: PreparedRun, reuse: Reuse) -> Reuse:
    """A copy of `reuse` with the answers of probes for effects in doubt that no choice was made for."""
    from cogcli.runs.rerun_probes import probe_effects

    return probe_effects(environment_of(settings), prepared, reuse)


def replay(settings: Settings, directory: Path) -> ReplayResult:
    """Replay an episode and compare it with its log; raises what `runs.replay` does."""
    from cogcli.app.registry import open_registry
    from cogcli.runs.replay import replay

    return replay(directory, partial(open_registry, settings))


def skill_not_here(error: SkillNotFoundError, directory: Path, verb: str) -> SkillNotFoundError:
    """The error for an episode whose skill is not in this registry: `verb` needs the project that it ran in."""
    from shlex import quote

    found = SkillNotFoundError(
        error.code,
        f"{error.message} here: `{verb}` needs the project that `{directory.name}` ran in",
        hint="start there with -C DIR, or add its specs with --registry DIR; replay and trace need no project",
    )
    found.next = (f"cogcli replay {quote(str(directory))}", f"cogcli trace {quote(str(directory))}")
    return found
