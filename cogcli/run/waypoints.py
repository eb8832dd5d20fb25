"""Whether a run has waypoints (docs/reference/episode.md#waypoints).

1. A run without loops needs none. An agent's run, a run under a pack or a limit of calls, and one that takes over
   earlier results have none: what they decide depends on events that a waypoint leaves out.
2. Neither has one with a router in a loop: the closing event of an invocation lists its reads in another order.
3. After a resume with other specs there are none, since the rounds that are done followed earlier ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.episode.journal import Journal
from cogcli.episode.snapshot import Snapshots
from cogcli.specs.catalog import Catalog

if TYPE_CHECKING:
    from cogcli.episode.waypoint import WaypointFold
    from cogcli.run.engine.ports import SnapshotWriter


def has_foldable_loops(catalog: Catalog) -> bool:
    """Return whether the skills of a run have loops, and a waypoint may skip the rounds of every one of them."""
    configs = [step.config for skill in catalog.skills.values() for step in skill.steps]
    loops = [each for each in configs if each.is_loop]
    collects = any(each.foreach is not None and each.foreach.collects for each in loops)
    return bool(loops) and not collects and all(each.router is None for each in loops)


def live_files(
    journal: Journal, run_id: str, *, has_waypoints: bool, fold: WaypointFold | None = None
) -> SnapshotWriter:
    """Return the writer of a run's files during the run. `fold` is the fold of the log so far; None for a new run."""
    snapshots = Snapshots(journal)
    if not has_waypoints:
        return snapshots
    from cogcli.episode.waypoint_writer import LiveFiles, Waypoints  # most runs have no loops

    return LiveFiles(snapshots, Waypoints(journal, run_id, fold))
