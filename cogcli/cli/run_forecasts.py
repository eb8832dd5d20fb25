"""What the present specs mean for recorded runs, on the screen (docs/reference/command-line.md#against)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cogcli.app.episodes import find_all
from cogcli.app.spec_changes import RunForecast, forecast_run
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import find_refusal
from cogcli.cli.policy_screen import decision_line
from cogcli.report.humanize import count_of

_WORDS = {
    "finished": "finished",
    "continues": "continues",
    "may_continue": "may continue",
    "restarts": "must restart",
    "refused": "cannot continue",
    "unknown": "not known",
}


def forecast_runs(context: CommandContext, names: Sequence[str]) -> int:
    """Judge the named episodes, display those that are affected, and return the exit code.

    Raise UnusableEnvironment `check.nothing` if no run waits and no decision was recorded."""
    settings = context.settings
    found = [forecast_run(settings, directory) for directory in find_all(settings, names)]
    context.own["runs"] = [each.to_payload() for each in found]
    affected = [each for each in found if each.is_affected]
    lines = [line for each in affected for line in _forecast_lines(each)]
    context.answer("".join(f"{visible(line)}\n" for line in lines))
    judged = [each for each in found if each.is_judged]
    context.note(f"{len(affected)} of {count_of(len(judged), 'run')} affected")
    refusal = find_refusal(
        checked=len(judged),
        total=0,
        empty="no run waits there, and no pack decided",
        hint="name episodes that wait, or ran under a pack: cogcli ls --outcome pending",
    )
    if refusal is not None:
        raise refusal
    return NO if affected else OK


def _forecast_lines(forecast: RunForecast) -> Iterator[str]:
    """Yield the lines of one run."""
    word = _WORDS[forecast.fate]
    if forecast.fate == "restarts":
        word += f" from `{forecast.first_step}`" if forecast.first_step else " from its beginning"
    reason = f": {forecast.why}" if forecast.why else ""
    yield f"{forecast.episode_id}  {forecast.name}  {word}{reason}"
    if forecast.next:
        yield f"    {forecast.next}"
    for change in forecast.changed_decisions:
        yield f"  {decision_line(change)}"
