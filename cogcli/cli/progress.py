"""The displays of a run on stderr that `--progress` selects: live, a line per event, JSON lines,
none (docs/reference/command-line.md#progress).
"""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.base.redact import Redactor
from cogcli.cli.display import Display
from cogcli.cli.envelope import dumps
from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event, mask_payload, row_of, to_json
from cogcli.declarations.events import TYPES_OF_SKILL_RUNS
from cogcli.report.event_lines import EventLines


def display_for(screen: Screen, word: str, *, verbose: bool) -> Display:
    """Return the display for a word of `--progress`. For `auto` it depends on the terminal, `CI`,
    `-q` and `-v`.
    """
    if word == "auto":
        word = _choose_display(screen, verbose=verbose)
    if word == "live" and screen.err.tty:
        # What draws steps folds the log; a run whose events are written as lines does not pay for that.
        from cogcli.cli.live_display import AnimatedSteps, StepLines

        may_redraw = screen.err.real_tty and screen.err.color
        return AnimatedSteps(screen) if may_redraw else StepLines(screen)
    if word == "json":
        return JsonLines(screen)
    return NoDisplay(screen) if word == "none" else EventStream(screen, details=verbose)


def _choose_display(screen: Screen, *, verbose: bool) -> str:
    """Return the display that `auto` selects."""
    if screen.quiet:
        return "none"
    return "live" if screen.err.tty and not screen.ci and not verbose else "lines"


class NoDisplay(Display):
    """The display of a quiet run, which displays nothing. It needs the begin and the end of the run."""

    ignored = frozenset(
        name for name, row in TYPES_OF_SKILL_RUNS.items() if row.phase not in ("start", "terminate")
    )


class EventStream(Display):
    """A display that writes one line per event, of any width. Only with `details` it includes the
    layers of a turn.
    """

    brief = True

    def __init__(self, screen: Screen, *, details: bool = False) -> None:
        super().__init__(screen)
        self._lines = EventLines()
        self._details = details

    def load_past_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self._lines.line(event)

    def __call__(self, event: Event) -> None:
        if self._details or not row_of(event.event_type).detail:
            self.screen.notify(self._lines.line(event) + "\n")


class MaskedJson:
    """A writer of events as JSON lines with masked secrets, as in the log. Events of a running
    engine contain secrets.
    """

    def __init__(self) -> None:
        self._redactor = Redactor()

    def line(self, event: Event) -> str:
        """Return the line of an event, with its newline."""
        return (
            dumps(to_json(event._replace(payload=mask_payload(event.payload, self._redactor))))
            + "\n"
        )


class JsonLines(Display):
    """A display that writes events as JSON lines, as structured logs with a trace id."""

    brief = True

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self._logged = MaskedJson()

    def __call__(self, event: Event) -> None:
        self.screen.notify(self._logged.line(event))
