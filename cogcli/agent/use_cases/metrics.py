"""The metrics of recorded agents' runs, and the targets of the packs that they pinned
(docs/reference/agent-run.md#metrics)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cogcli.agent.use_cases.log import AgentLog, read_agent_log
from cogcli.app import episodes
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.run_start import start_of
from cogcli.declarations.value_types import Json
from cogcli.episode.decision import DecisionFold
from cogcli.episode.listing.episode_row import EpisodeFilter
from cogcli.episode.projection import Projection
from cogcli.policy.metrics import Measure, MeasuredRun, RunMeter, TargetResult, judge, measure
from cogcli.run.policy import ceiling_of, pack_of
from cogcli.run.policy_request import PolicyRequest

PackCache = dict[str, Pack]
"""Loaded packs by the digest of a run's specs, which differs with its packs and their order."""


class MetricsQuery(NamedTuple):
    """The runs to measure: these episodes, or all runs of agents; under a pack, of an intent, since a time."""

    names: Sequence[str] = ()
    pack: str = ""
    """An id, `id@version`, or with its hash."""
    intent: str = ""
    since: str | None = None
    strict: bool = False
    """Whether an unreadable run of an agent is an error even if it was not named."""

    def fits(self, run: MeasuredRun) -> bool:
        """Return whether the run used the selected pack and intent."""
        of_pack = (
            f"{run.pack_ref}#".startswith((f"{self.pack}@", f"{self.pack}#")) if self.pack else True
        )
        return of_pack and self.intent in ("", run.intent)


class MeasuredRuns(NamedTuple):
    """The measured runs, with their measures and targets."""

    runs: list[MeasuredRun]
    measures: list[Measure]
    targets: list[TargetResult]

    @property
    def missed(self) -> list[TargetResult]:
        """The targets that were not reached."""
        return [each for each in self.targets if each.status == "missed"]

    def to_payload(self) -> Json:
        """Return the metrics as JSON."""
        return {
            "runs": len(self.runs),
            "measures": [each.to_payload() for each in self.measures],
            "targets": [each.to_payload() for each in self.targets],
        }


def collect(
    settings: Settings, query: MetricsQuery, warn: Callable[[CogcliError], None]
) -> MeasuredRuns:
    """Measure the runs that match the query. `warn` receives the errors of unreadable episodes that were not
    named.

    Raise UsageError for a named episode that is not an agent's. Raise UnusableEnvironment `episode.unreadable` for
    a named episode, or for any in a strict query.
    """
    packs: PackCache = {}
    runs = list(_fitting_runs(settings, query, packs, warn))
    under = dict.fromkeys(run.pack_ref for run in runs)
    targets = {pack.ref: pack.evaluation.targets for pack in packs.values() if pack.ref in under}
    found = [each for each in judge(runs, targets) if query.intent in ("", each.target.intent)]
    return MeasuredRuns(runs, measure(runs), found)


def _fitting_runs(
    settings: Settings,
    query: MetricsQuery,
    packs: PackCache,
    warn: Callable[[CogcliError], None],
) -> Iterator[MeasuredRun]:
    for candidate in _candidate_episodes(settings, query):
        try:
            run = _measure_run(candidate.directory, query.since, packs)
        except UsageError:
            if query.names:
                raise
            continue  # another tool's
        except UnusableEnvironment as error:
            if candidate.required:
                raise
            warn(error)
            continue
        if run is not None and query.fits(run):
            yield run


class _EpisodeCandidate(NamedTuple):
    """A candidate episode. `required`: it must be readable."""

    directory: Path
    required: bool


def _candidate_episodes(settings: Settings, query: MetricsQuery) -> Iterator[_EpisodeCandidate]:
    """Yield the named episodes, else those that may be an agent's."""
    if query.names:
        named = dict.fromkeys(episodes.find(settings, name) for name in query.names)
        yield from (_EpisodeCandidate(directory, True) for directory in named)
        return
    for row in episodes.store_of(settings).episode_rows(EpisodeFilter(since=query.since)):
        if row.skill is None or row.skill.startswith("agent."):
            yield _EpisodeCandidate(row.directory, query.strict and row.skill is not None)


def _measure_run(directory: Path, since: str | None, packs: PackCache) -> MeasuredRun | None:
    """Measure one run, or return None if it began before `since`. `packs` has the packs that were loaded."""
    log = read_agent_log(directory)
    if since is not None and log.started.timestamp < since:
        return None
    pack = _load_pack(log, packs)
    with log.refusing():
        given = PolicyRequest.recorded(start_of(log.started)) or PolicyRequest()
        meter, decision = RunMeter(ceiling_of(pack, given.safety_mode)), DecisionFold(log.started)
        projection = Projection()
        for event in log.events:
            meter.apply(event)
            projection.apply(event)
            if event is not log.started:
                decision.apply(event)
        return meter.finish(decision.record(), projection.duration_ms())


def _load_pack(log: AgentLog, packs: PackCache) -> Pack:
    """Return the primary pack of a run, from `packs` if it was loaded before."""
    start = start_of(log.started)
    digest = start.pins.specs_blob
    if digest not in packs:
        catalog = log.read_catalog()
        with log.refusing():
            packs[digest] = pack_of(catalog, PolicyRequest.recorded(start) or PolicyRequest())
    return packs[digest]
