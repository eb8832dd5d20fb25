"""The commands suggested after a failed run, computed from its log. `trace` suggests the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cogcli.app.registry import open_registry
from cogcli.base.errors import CogcliError
from cogcli.cli.context import CommandContext
from cogcli.cli.run_report import FailedRun, failure_commands, flags_from_point
from cogcli.declarations.call_records import RunError
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.run_history import RunHistory
from cogcli.run.failed_call import UNREACHABLE, offline_binding
from cogcli.run.rerun_point import find_rerun_point_in_events


class _RecordedPermissions(Record):
    """The permissions in the `options` of the first event of a run."""

    trust_level: object = None
    confirmed_capabilities: list[object]


def commands_after_failure(
    context: CommandContext, run: RunHistory, log: Sequence[Event], episode: str
) -> Iterator[str]:
    """Yield the commands to suggest after a failed run, without the tool's name.

    `episode` names the episode in them.
    """
    if run.error is None:
        return
    given = read_record(_RecordedPermissions, run.start.options if run.start else {})
    steps = {step.id: step.status for step in run.own}
    point = find_rerun_point_in_events(steps, run.error.step or "", log)
    level = str(given.trust_level or "standard")
    confirmed = map(str, given.confirmed_capabilities)
    flags = flags_from_point(point, "" if level == "standard" else level, confirmed)
    error = FailedRun(
        code=run.error.code,
        step=run.error.step or "",
        instead=_offline_binding(context, run.skill, run.error),
    )
    yield from failure_commands(episode, error, point, flags or "")


def _offline_binding(context: CommandContext, skill: str, error: RunError) -> str:
    """Return `CAP=BINDING` for a binding without network, if a call did not reach its service.

    Empty if the registry has no such binding or cannot be read.
    """
    if error.code not in UNREACHABLE or not error.capability:
        return ""
    try:
        catalog = open_registry(context.settings).for_run("skill", skill).reach(skill)
    except CogcliError:
        return ""
    return offline_binding(error.capability, catalog)
