"""`trace SKILL`: a run with its events and then its tree on stderr, the outputs on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.cli.context import CommandContext
from cogcli.cli.progress import EventStream, MaskedJson
from cogcli.cli.streams import Screen
from cogcli.core.terminal_text import visible
from cogcli.events.envelope import Event
from cogcli.report.run_fold import RunFold
from cogcli.runs.results import RunResult

if TYPE_CHECKING:
    from cogcli.cli.run_flags import RunFlags, TraceFlags


def trace_run(context: CommandContext, skill_id: str, flags: TraceFlags, run: RunFlags) -> int:
    """Run a skill; returns the exit code of the run."""
    from cogcli.cli.commands.run import run_skill

    jsonl = flags.format == "jsonl" and not context.json
    display = LiveEvents(context.screen, jsonl=jsonl)
    if not context.screen.quiet:
        context.screen.notify(f"running {visible(skill_id)} (to inspect, name an episode)\n")

    def after(result: RunResult) -> None:
        if context.screen.quiet:
            return
        from cogcli.cli.next_actions import TracedEpisode
        from cogcli.cli.trace_views import tree_lines

        for line in tree_lines(context, TracedEpisode(display.fold, result.status), on_stderr=True):
            context.screen.notify_line(line)

    return run_skill(context, skill_id, run, display=display, answer=not jsonl, after=after)


class LiveEvents(EventStream):
    """Writes events as lines to stderr, or as JSON lines to stdout, and folds them for the tree."""

    def __init__(self, screen: Screen, *, jsonl: bool) -> None:
        super().__init__(screen)
        self.fold = RunFold()
        self._jsonl = jsonl
        self._logged = MaskedJson()

    def __call__(self, event: Event) -> None:
        self.fold.apply(event)
        if self._jsonl:
            self.screen.answer(self._logged.line(event))
        elif not self.screen.quiet:
            super().__call__(event)
