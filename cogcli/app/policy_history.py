"""The logs of runs under a pack, each with its pinned specs and its pinned pack."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import DecisionRecorded
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedPolicy, start_of
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import another_tools
from cogcli.policy.pack_composition import compose
from cogcli.run.log_index_reading import read_log_index, require_known_payload
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.replay import read_pinned_catalog
from cogcli.specs.catalog import Catalog


class GovernedRun(NamedTuple):
    """The first event of a run under a pack, with the pinned specs and the pinned pack."""

    started: Event
    catalog: Catalog
    pack: Pack
    others: tuple[Pack, ...] = ()
    """The packs that add to it; `pack` has their additions."""


class GovernedLog(NamedTuple):
    """The log of a run under a pack, with the pinned specs and the pinned pack."""

    events: list[Event]
    started: Event
    catalog: Catalog
    pack: Pack
    others: tuple[Pack, ...] = ()
    """The packs that add to it; `pack` has their additions."""


def read_governed_log(directory: Path) -> GovernedLog | None:
    """Return the log of an episode; None if the run had no pack.

    Raise UnusableEnvironment `episode.unreadable`."""
    run = read_governed_run(directory)
    if run is None:
        return None  # its log may not fit into memory
    events, _ = read_log_index(directory)
    return GovernedLog(events, *run)


def read_governed_run(directory: Path) -> GovernedRun | None:
    """Return the first event of a run with its pinned specs and pack. None if it had no pack.

    Raise the errors of `read_governed_log`."""
    started = _read_first(directory)
    require_known_payload(directory, started)
    request = PolicyRequest.recorded(start_of(started))
    if request is None or not request.pack:
        return None
    catalog = read_pinned_catalog(started, directory)
    pack, others = find_packs(catalog, request)
    return GovernedRun(started, catalog, pack, others)


def find_packs(catalog: Catalog, request: PolicyRequest) -> tuple[Pack, tuple[Pack, ...]]:
    """Return the composed pack of a run, and the packs that add to it.

    Raise UnusableEnvironment `episode.unreadable` if the catalog lacks one."""
    found = []
    for reference in (request.pack, *request.with_packs):
        pack = catalog.packs.get(reference.partition("#")[0])
        if pack is None:
            raise UnusableEnvironment(
                "episode.unreadable", f"the specs of this run have no `{reference}`"
            )
        found.append(pack)
    primary, *others = found
    return compose(primary, others), tuple(others)


def read_ended_decision(directory: Path) -> DecisionRecorded | None:
    """Return the end of an agent's decision, from the log; None if the run has none.

    Raise the errors of `read_governed_log`."""
    ended = None
    with closing(iterate_events(directory, whole=True)) as events:
        for event in events:
            if event.event_type == DecisionRecorded.event.name:
                ended = read_record(DecisionRecorded, event.payload)
    return ended


def is_shadow_run(directory: Path) -> bool:
    """Return whether a run enforced no rule of its pack. Raise the errors of `read_governed_log`."""
    return _read_policy(directory).shadow


def _read_policy(directory: Path) -> RecordedPolicy:
    """Return the policy in the first event of a run. Raise the errors of `read_governed_log`."""
    started = read_record(RunStarted, _read_first(directory).payload)
    return read_record(RecordedPolicy, started.policy)


def _read_first(directory: Path) -> Event:
    """Return the first event of a run. Raise the errors of `read_governed_log`."""
    with closing(iterate_events(directory, whole=True)) as events:
        first = next(events)
    if first.seq is None:
        raise another_tools(directory, first)
    return first
