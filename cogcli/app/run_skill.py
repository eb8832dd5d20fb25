"""The use case of a run: what settings and trust add to `runs/`."""

from __future__ import annotations

from functools import partial

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import signer_of
from cogcli.app.settings.user_dirs import state_home
from cogcli.events.envelope import Event
from cogcli.runs.given_inputs import GivenRun
from cogcli.runs.launch import Watch, launch_given
from cogcli.runs.prepare import AgentRun, RunEnvironment
from cogcli.runs.results import RunResult
from cogcli.specs.catalog import Catalog


def run_given(settings: Settings, given: GivenRun, watch: Watch) -> RunResult:
    """Run what a command line asks for to its end, within `watch`. Raises SkillNotFoundError, and as
    `launch_given`."""
    environment = environment_of(settings)
    request = given.request
    catalog = environment.open_registry().reach(request.skill_id, pack=request.pack_ref)
    return launch_given(environment, catalog, given, watch)


def environment_of(settings: Settings) -> RunEnvironment:
    """What a run takes from outside, by settings and trust. Raises UsageError, EnvironmentRefusal `config.key`."""
    reads = None
    if settings.project is not None and not settings.trust:
        from cogcli.protocols.pythoncall.readable_files import reads_of

        # Shipped functions may read these files in a project that is not trusted; any file elsewhere.
        reads = reads_of(settings.project, settings.named)
    return RunEnvironment(
        runs_dir=settings.runs_dir,
        state_dir=state_home(settings.environ),
        environ=settings.environ,
        clock=settings.clock,
        ids=settings.ids,
        open_registry=partial(open_registry, settings),
        signer=partial(signer_of, settings),
        use_env_proxy=settings.value("use_env_proxy"),
        reads=reads,
        agent_of=partial(agent_of, settings),
    )


def agent_of(settings: Settings | None, started: Event, catalog: Catalog) -> AgentRun:
    """An agent's run by its log; without settings by that alone: nothing is stored."""
    from cogcli.app import agent_runs  # only for the log of an agent

    return agent_runs.agent_of(settings, started, catalog)
