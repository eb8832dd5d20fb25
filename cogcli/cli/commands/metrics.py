"""`metrics [EP...]`: figures about runs of agents, compared with the targets of their packs
(docs/reference/agent-run.md#metrics).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.agent.use_cases.metrics import MeasuredRuns, MetricsQuery, collect
from cogcli.app.episodes import parse_age
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.options import ListFlags, argument, command, switch, text
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of

_COLUMNS = (
    Column("metric"),
    Column("intent"),
    Column(
        "value", right=True, shown=lambda value: f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    ),
    Column("numerator", right=True),
    Column("denominator", title="of", right=True),
)


@command(
    examples=(
        ("cogcli metrics", "all runs of agents"),
        (
            "cogcli metrics --pack support-desk --since 7d --check",
            "are the targets of the pack met?",
        ),
        ("cogcli metrics @last --json | jq .metrics.measures", "one run, for scripts"),
    ),
    exits=(0, 1, 2, 3),
    maximum=10_000,
)
def metrics(
    context: CommandContext,
    names: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    pack: Annotated[
        str | None, text("--pack", "ID[@VERSION]", "only runs under this pack", completes="packs")
    ] = None,
    intent: Annotated[str | None, text("--intent", "ID", "only runs of this intent")] = None,
    since: Annotated[
        str | None, text("--since", "AGE", "only runs younger than AGE: 30d, 12h, 45m")
    ] = None,
    check: Annotated[
        bool, switch("--check", help="exit 1 if a pack target is missed, 3 if a run cannot be read")
    ] = False,
    flags: ListFlags,
) -> int:
    """Measure the named episodes, or all runs of agents. A ratio with a denominator of zero has no
    value.
    """
    after = parse_age(context.settings, "--since", since)
    query = MetricsQuery(names, pack or "", intent or "", after, strict=check)
    found = collect(context.settings, query, context.warn)
    context.own["metrics"] = found.to_payload()
    if not context.json:
        show(context, _COLUMNS, [each.to_payload() for each in found.measures], flags)
    context.note(count_of(len(found.runs), "run of an agent", "runs of agents"))
    return _check_targets(context, found) if check else OK


def _check_targets(context: CommandContext, measured_runs: MeasuredRuns) -> int:
    """Report whether each target is met. The first missed target becomes the error of the command."""
    for each in measured_runs.targets:
        context.note(visible(f"{each.status}: {_target_text(each.to_payload())}"))
    if not measured_runs.targets:
        context.note("no target: the packs of these runs declare none")
    if not measured_runs.missed:
        return OK
    first = measured_runs.missed[0].to_payload()
    return context.fail(
        {"code": "metrics.missed", "message": f"target missed: {_target_text(first)}"}
    )


def _target_text(target: Json) -> str:
    of = f" of {target['intent']}" if target["intent"] else ""
    value = "nothing to measure" if target["value"] is None else f"{target['value']:.3g}"
    pack = target["pack_ref"].partition("#")[0]
    bounds = (("at least", target["min"]), ("at most", target.get("max")))
    wanted = " and ".join(f"{words} {bound:g}" for words, bound in bounds if bound is not None)
    return f"{target['metric']}{of} under {pack}: {wanted}, found {value}"
