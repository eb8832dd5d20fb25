"""Replay: the engine runs again with the recorded answers, and each new event must equal the recorded one
(docs/reference/episode.md#replay).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.links import LEAVES
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunResumed, RunStarted
from cogcli.declarations.pack_spec import BUILT_IN_PACK
from cogcli.declarations.run_start import start_of
from cogcli.episode.blobs import BlobFolder, parse
from cogcli.episode.refusals import open_episode
from cogcli.policy import approvals
from cogcli.protocols import PROTOCOLS
from cogcli.run.engine.run import SKILL, Request, execute
from cogcli.run.launch import build_engine_over_log, find_recorded_agent
from cogcli.run.log_index import LogIndex
from cogcli.run.log_index_reading import read_log_index
from cogcli.run.prepare import AgentOf
from cogcli.run.replay_adapters import EndOfLog, ReplayDifference, ReplayDiverged, ReplaySink
from cogcli.run.results import Control
from cogcli.specs.catalog import Catalog
from cogcli.specs.lock import PIN
from cogcli.specs.pack_skills import reach_given_pack, reach_pack
from cogcli.specs.registry import Registry
from cogcli.specs.service_variables import with_recorded_variables
from cogcli.specs.skill import targets_of
from cogcli.specs.spec_snapshot import catalog_of, without_secret_requirements

CHOICES: Final = ("active:", "override:")
"""Prefixes of the pins for bindings chosen on this host."""

_MAX_NAMED: Final = 3


class ReplayResult(NamedTuple):
    """The number of events in the log, and the first difference. If it is None, the replay equals the log.

    `changed_specs` are the pins of specs that differ in the registry now.
    """

    episode_id: str
    events: int
    difference: ReplayDifference | None
    changed_specs: tuple[str, ...] = ()


def replay(
    directory: Path, open_registry: Callable[[], Registry], agent_of: AgentOf | None = None
) -> ReplayResult:
    """Run an episode again from its log and its pinned specs, and return the result. No service, clock or random
    source is used.

    If the run was resumed with changed specs, the registry is not compared, since the log already notes the
    change. Raise UnusableEnvironment `episode.unreadable` if the log has no first event or its specs are missing.
    """
    events, log = read_log_index(directory)
    started = log.started
    if started is None:
        raise UnusableEnvironment("episode.unreadable", "this log does not record its specs")
    catalog = without_secret_requirements(read_pinned_catalog(started, directory))
    changed = {} if log.changed else find_changed_specs(open_registry, started, catalog)
    step = _find_first_step_using(changed, catalog, started)
    if step is not None:
        spec, current = next(iter(changed.items()))
        recorded = start_of(started).pins.specs[spec]
        difference = ReplayDifference(None, step, f"`{spec}` was changed since", recorded, current)
        return ReplayResult(started.episode_id, len(events), difference, tuple(changed))
    control = Control()
    sink = ReplaySink(log, Redactor(()), control, events)
    agent = find_recorded_agent(agent_of, catalog, started)
    engine = build_engine_over_log(
        catalog,
        log,
        started,
        agent,
        sink=sink,
        runner=sink,
        dispatcher=sink.dispatcher,
        clock=FakeClock(0),
        ids=FakeIds(0),
        approvals=approvals.ReplayedApprovals(log.approvals),
    )
    control.attach(engine)
    engine.waits_in_doubt = log.stops_early
    plan = engine.plan_of(start_of(started).skill.id)
    try:
        program = agent.program if agent else SKILL
        execute(engine, plan, request_from(started), started.run_id or "", program)
        found = sink.find_missing()
    except EndOfLog:
        found = sink.find_missing()
    except ReplayDiverged as diverged:
        found = diverged.difference
    return ReplayResult(
        started.episode_id, len(events), _explain_by_change(found, log), tuple(changed)
    )


def _explain_by_change(
    difference: ReplayDifference | None, log: LogIndex
) -> ReplayDifference | None:
    """Return the difference. If it follows a resumption with specs that the log does not contain, prefix this
    reason to its text.
    """
    changed = log.changed
    if (
        difference is None
        or changed is None
        or (difference.seq or changed.seq or 0) < (changed.seq or 0)
    ):
        return difference
    specs = RunResumed.of(changed.payload).changed_specs
    names = ", ".join(f"`{name}`" for name in specs[:_MAX_NAMED])
    names += f" and {len(specs) - _MAX_NAMED} more" if len(specs) > _MAX_NAMED else ""
    why = f"from event {changed.seq} on the run continued with changed specs ({names}), which its log does not hold"
    return difference._replace(what=f"{why}: {difference.what}")


def read_pinned_catalog(started: Event, directory: Path) -> Catalog:
    """Return the catalog from the specs blob that a run pinned. Raise UnusableEnvironment `episode.unreadable`."""
    pins = start_of(started).pins
    digest = pins.specs_blob
    if not digest:
        raise UnusableEnvironment("episode.unreadable", "this log does not record its specs")
    try:
        with open_episode(directory) as folder, closing(BlobFolder(folder)) as blobs:
            data = blobs.get(digest)
        if data is None:
            raise UnusableEnvironment(
                "episode.unreadable", f"the specs of this run are missing: {digest}"
            )
        catalog = catalog_of(parse(data), PROTOCOLS)
        return with_recorded_variables(catalog, pins.variables)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"the specs of this run cannot be read: {error}"
        raise UnusableEnvironment("episode.unreadable", text) from error


def request_from(started: Event) -> Request:
    """Return the engine's Request that a `run.started` event records."""
    start = start_of(started)
    return Request(
        task=start.task,
        inputs=start.inputs,
        frame=start.frame,
        seed=start.seed,
        tags=start.tags,
        pins=start.pins.json,
        selection=RunStarted.of(started.payload).selection,
        taken_over=start.taken_over,
        effects=start.effects,
        approvals=RunStarted.of(started.payload).approvals,
        policy=start.policy.json if start.policy else {},
        agent=start.agent.json if start.agent else {},
        gateway=start.gateway.json if start.gateway else {},
        typed=start.typed,
        files=start.files,
    )


def reach_recorded(
    registry: Registry, started: Event, pinned: Callable[[], Catalog], *, also: Iterable[str] = ()
) -> Catalog:
    """Return the present closure of a recorded run, which contains its skill and its pack.

    The built-in pack of an agent has no file, so the pinned one is used. Raise the same errors as
    `Registry.reach`.
    """
    start = start_of(started)
    pack = start.policy.pack if start.policy else ""
    others = start.policy.with_packs if start.policy else []
    if start.agent:
        if pack.partition("@")[0] == BUILT_IN_PACK:
            raw = pinned().raw[f"pack:{pack.partition('#')[0]}"]
            return reach_given_pack(registry, raw, also=also, added_packs=others)
        return reach_pack(registry, pack, also=also, added_packs=others)
    return registry.reach(start.skill.id, also=also, packs=(pack, *others) if pack else ())


def reach_present(
    registry: Registry, started: Event, pinned: Callable[[], Catalog], *, also: Iterable[str] = ()
) -> tuple[Catalog, list[str]]:
    """Return the present closure of a recorded run with the variables that it recorded, and the pins that differ.

    Raise the same errors as `Registry.reach`.
    """
    catalog = reach_recorded(registry, started, pinned, also=also)
    catalog = with_recorded_variables(catalog, start_of(started).pins.variables)
    return catalog, find_differing_specs(started, catalog.pins)


def find_changed_specs(
    open_registry: Callable[[], Registry], started: Event, pinned: Catalog
) -> dict[str, str]:
    """Return the pinned specs whose digest differs in the registry now, with the present digest. Empty if the
    skill is missing.

    Raise UnusableEnvironment `project.link` for a link that leaves the project, since specs behind it cannot be
    compared. Choices for this host are not compared, since a replay selects no binding.
    """
    recorded = start_of(started).pins.specs
    try:
        current = reach_recorded(open_registry(), started, lambda: pinned).pins
    except CogcliError as error:
        if error.code == LEAVES:
            raise
        return {}
    return {
        key: current[key]
        for key, digest in recorded.items()
        if current.get(key, digest) != digest and not key.startswith(CHOICES)
    }


def find_differing_specs(started: Event, current: Mapping[str, str]) -> list[str]:
    """Return the keys of all pins that differ from the start of a run: changed, added, removed, unreadable, or
    chosen for this host since.

    A lock that only `current` contains is ignored, since the run used none.
    """
    recorded = start_of(started).pins.specs
    keys = recorded.keys() | {key for key in current if key in recorded or not key.startswith(PIN)}
    return sorted(key for key in keys if recorded.get(key) != current.get(key))


def _find_first_step_using(
    changed: Mapping[str, str], catalog: Catalog, started: Event
) -> str | None:
    """Return the first step in plan order that uses a changed spec. If only skills changed, return the first step
    of all. None if nothing changed.
    """
    touched = {name.partition(":")[2] for name in changed}
    if not touched:
        return None
    steps = catalog.skills[start_of(started).skill.id].steps
    for step in steps:
        for _, target in targets_of(step):
            capability = catalog.aliases.get(target, target).removeprefix("skill:")
            bindings = catalog.bindings_of.get(capability, ())
            services = {catalog.bindings[id].service for id in bindings}
            if touched & {capability, *bindings, *services}:
                return step.id
    return steps[0].id if steps else "t1"  # the first turn of an agent
