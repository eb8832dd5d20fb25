"""`trace SKILL`: a run with its events live on stderr, the tree after, the outputs on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.cli.progress import AsLogged, EventStream
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.app.run_skill import RunResult
    from cogcli.cli.context import CommandContext
    from cogcli.cli.streams import Screen
    from cogcli.events.envelope import Event


def trace_run(context: CommandContext, skill_id: str) -> int:
    """Run, tell every event as it is appended, then show the tree."""
    from cogcli.cli.commands.run import run_skill

    jsonl = context.arguments.text("--format") == "jsonl" and not context.json
    display = Telling(context.screen, jsonl=jsonl)
    if not context.screen.quiet:
        context.screen.tell(f"running {visible(skill_id)} (to inspect, name an episode)\n")

    def after(result: RunResult) -> None:
        if context.screen.quiet:
            return
        from cogcli.cli.next_actions import TracedEpisode
        from cogcli.cli.trace_views import tree_lines

        for line in tree_lines(context, TracedEpisode(display.fold, result.status), on_stderr=True):
            context.screen.say(line)

    return run_skill(context, skill_id, display=display, answer=not jsonl, after=after)


class Telling(EventStream):
    """Events as lines on stderr, or as JSON lines on stdout; folded for the tree."""

    def __init__(self, screen: Screen, *, jsonl: bool) -> None:
        from cogcli.report.run_fold import RunFold

        super().__init__(screen)
        self.fold = RunFold()
        self._jsonl = jsonl
        self._logged = AsLogged()

    def __call__(self, event: Event) -> None:
        self.fold.add(event)
        if self._jsonl:
            self.screen.answer(self._logged.line(event))
        elif not self.screen.quiet:
            super().__call__(event)
