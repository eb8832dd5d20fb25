"""Live displays of a run: one line per step, written when the step ends or redrawn at a terminal
(docs/reference/command-line.md#progress).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from threading import RLock
from typing import Any

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, pad, shorten_middle, truncate, visible, visible_block
from cogcli.cli.display import Display
from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event, row_of
from cogcli.episode.history import History
from cogcli.episode.run_history import RunHistory, StepHistory
from cogcli.report.humanize import count_of, duration, short_trace
from cogcli.report.styled_text import StyledLine, style_of
from cogcli.report.tree import loop_text, skip_reason

_ENDED = ("done", "failed", "skipped", "vetoed")


class _LongestWords(NamedTuple):
    """The widths, in cells, of the longest name and the longest target of this many `steps`."""

    steps: int
    name: int
    uses: int


class StepLines(Display):
    """A display that writes a head line, and a line per root step when it ends. It needs no cursor
    control.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self.fold = History()
        self._written: set[str] = set()
        self._writing = RLock()
        """Held while rows are written: a signal is handled in another thread than events."""
        self._requesting: set[str] = set()
        self._has_head = False
        self._longest = _LongestWords(0, 0, 0)

    def load_past_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self.fold.apply(event)
        own = self.fold.root.own if self.fold.root else []
        self._written = {step.id for step in own if step.status in _ENDED}

    def __call__(self, event: Event) -> None:
        self._apply_event(event)
        root = self.fold.root
        if root is None:
            return
        if not self._has_head and root.steps:
            self._has_head = True
            self.screen.notify_line(self.head(root))
        self._write_rows(_ENDED, self._steps_of(root, event))

    def _steps_of(self, root: RunHistory, event: Event) -> Collection[StepHistory]:
        """Return the steps that an event may have ended: its own step, or all steps if the event has none."""
        if event.step_id is None:
            return root.own
        step = root.steps.get(event.step_id) if event.run_id == root.id else None
        return () if step is None or root.owner(step) else (step,)

    def _apply_event(self, event: Event) -> None:
        """Update the history, and mark a step that requests an approval."""
        self.fold.apply(event)
        if row_of(event.event_type).asks and event.step_id:
            self._requesting.add(event.step_id)

    def close(self) -> None:
        """Write the lines of the steps that wait for a person."""
        root, asking = self.fold.root, self._requesting
        self._requesting = set()
        for step in root.own if root else ():
            if step.id in asking and step.status not in _ENDED:
                self.screen.notify_line(self.row(root, step, waits=True))  # type: ignore[arg-type]

    def _write_rows(
        self, statuses: Collection[str], steps: Collection[StepHistory] | None = None
    ) -> None:
        """Write the lines of these steps, by default of all, that have one of the statuses, unless already written."""
        root = self.fold.root
        with self._writing:
            if steps is None:
                steps = root.own if root else ()
            for step in steps:
                if step.status in statuses and step.id not in self._written:
                    self._written.add(step.id)
                    self.screen.notify_line(self.row(root, step))  # type: ignore[arg-type]

    def head(self, root: RunHistory) -> StyledLine:
        """Return the head line, such as `text.summarize 1.2.0 · 3 steps · trace 7f3a91c2`."""
        dot = f" {self.screen.err.glyphs.dot} "
        words = [f"{root.skill} {root.version}".strip()]
        words += (
            [count_of(len(root.own), "step")] if root.own else []
        )  # an agent has none before it plans
        words.append(f"trace {short_trace(self.fold.trace_id)}")
        return [(visible(words[0]), "bold"), (visible(dot + dot.join(words[1:])), "")]

    def row(self, root: RunHistory, step: StepHistory, *, waits: bool = False) -> StyledLine:
        """Return the line of a step, such as `✓ clean  text.normalize  18ms  pythoncall:text_norm`.

        A step that `waits` for an answer has no result yet.
        """
        width = self.screen.err.width or 80
        line = self._row_start(root, step, "waits" if waits else step.status, width)
        used = sum(cells(text) for text, _ in line)
        if waits:
            return [*line, (truncate("  needs your approval", width - used), "")]
        time, note = f"  {duration(step.ms):>6}", f"  {visible(_step_note(root, step))}".rstrip()
        room = width - used - cells(time)
        fits = cells(note) <= room or room >= _MIN_NOTE
        return [*line, (truncate(f"{time}{note if fits else ''}".rstrip(), width - used), "")]

    def _measure_columns(self, root: RunHistory) -> _LongestWords:
        """Return the widths of the longest name and target. They are measured again when steps are added."""
        steps = root.own
        if self._longest.steps != len(steps):
            names = max(cells(visible(each.name)) for each in steps)
            uses = max(cells(visible(each.uses)) for each in steps)
            self._longest = _LongestWords(len(steps), names, uses)
        return self._longest

    def _row_start(
        self, root: RunHistory, step: StepHistory, status: str, width: int
    ) -> StyledLine:
        """Return the beginning of a step's line: sign, name, and on a wide terminal its target."""
        glyphs = self.screen.err.glyphs
        statuses = (*_ENDED, "running", "pending", "waits")
        sign = max(cells(glyphs.sign(each)) for each in statuses)
        longest = self._measure_columns(root)
        name = min(max(longest.name, cells(visible(step.name))), max(8, width - sign - 14))
        uses = (
            min(max(longest.uses, cells(visible(step.uses))), width - sign - name - 16)
            if width >= _NARROW
            else 0
        )
        line: StyledLine = [
            (f"  {pad(glyphs.sign(status), sign)} ", style_of(status)),
            (pad(shorten_middle(visible(step.name), name), name), ""),
        ]
        if uses >= 8:
            line.append((f"  {pad(shorten_middle(visible(step.uses), uses), uses)}", "dim"))
        return line


def _step_note(root: RunHistory, step: StepHistory) -> str:
    """Return the end of a step's line: why it was skipped, the items of a loop, or the tool and its
    tokens.
    """
    if step.status == "skipped":
        has_items = step.loop is not None and step.loop.counts
        items = f", {loop_text(step.loop, running=False)}" if step.loop and has_items else ""
        return f"{skip_reason(root, step)}{items}"
    if step.loop:
        return loop_text(step.loop, running=step.status == "running")
    tokens = f"{step.tokens[0]}→{step.tokens[1]} tokens" if step.tokens else ""
    return f"{step.tool}  {tokens}".rstrip()


class AnimatedSteps(StepLines):
    """A display that redraws a line per step, at most ten times a second.

    On a low terminal it shows only the running steps and a count. Below the steps is the end of a
    growing response; the command prints the whole response as its answer. After an interrupt it
    writes a line for each step that ends.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self.on_response = self._store_response
        self._response = ""
        self._live: Any = None

    def _store_response(self, response: str) -> None:
        """Store the received part of the response for the next redraw."""
        self._response = response

    def __call__(self, event: Event) -> None:
        if self._live is False:
            super().__call__(event)
            return
        self._apply_event(event)
        root, asks = self.fold.root, event.event_type == "model.requested"
        if asks:
            self._response = ""
        if root is None or not (root.steps or asks):
            return
        if self._live is None:
            self._has_head = True
            self.screen.notify_line(self.head(root))
            from rich.console import Console
            from rich.live import Live

            console = Console(
                file=self.screen.err.file, width=self.screen.err.width, highlight=False
            )
            live = Live(self, console=console, refresh_per_second=10, transient=True, redirect_stdout=False,
                        redirect_stderr=False)  # fmt: skip
            live.start()
            self._live = live

    def __rich__(self) -> Any:
        """Return the text of the current frame for rich."""
        from rich.text import Text

        root = self.fold.root
        if root is None:
            return Text("")
        height = max(3, (self._live.console.size.height if self._live else 24) - 4)
        steps = root.own
        is_low = len(steps) > height
        shown = (
            [step for step in steps if step.status == "running"][: height - 1] if is_low else steps
        )
        parts = 0 if len(steps) + _MAX_PARTS > height else _MAX_PARTS
        rows = [
            row
            for step in shown
            for row in (self._step_text(root, step), *self._part_rows(root, step, parts))
        ]
        if is_low:
            rows.append(Text(f"  {root.count('done')} of {len(steps)} done"))
        return Text("\n").join([*rows, *self._response_rows(max(3, height - len(rows)))])

    def _response_rows(self, maximum: int) -> list[Any]:
        """Return at most `maximum` last lines of the received part of the response."""
        from rich.text import Text

        if not self._response or not self._live:
            return []
        console = self._live.console
        return list(Text(visible_block(self._response)).wrap(console, console.width))[-maximum:]

    def _part_rows(self, root: RunHistory, step: StepHistory, maximum: int) -> list[Any]:
        """Return a line for each running item, round or target of a loop, oldest first."""
        from rich.text import Text

        if not step.loop or step.status != "running":
            return []
        begun = [part for part in list(root.running.values()) if part.id.startswith(f"{step.id}#")]
        names = [visible(part.name) for part in begun if "@" not in part.id]
        sign = self.screen.err.glyphs.sign("running")
        return [Text(f"      {sign} {name}", style="dim") for name in names[:maximum]]

    def _step_text(self, root: RunHistory, step: StepHistory) -> Any:
        """Return the line of a step for rich."""
        from rich.text import Text

        row = self.row(root, step)
        return Text.assemble(
            *[(text, _RICH.get(style, style)) for text, style in row], no_wrap=True
        )

    def interrupt(self) -> None:
        """Stop redrawing, and write the lines of the finished steps."""
        with self._writing:
            live, self._live = self._live, False
            if live:
                live.stop()
                self._write_rows(_ENDED)

    def close(self) -> None:
        """Stop redrawing and write the final lines."""
        begun = self._live is not None
        self.interrupt()
        if begun:
            self._write_rows((*_ENDED, "running"))
        super().close()


_NARROW = 60
"""Columns below which a row shows progress (items of a loop, why it was skipped) instead of its
tool."""
_MIN_NOTE = 12
"""The least columns of a readable note, with the blanks before it."""
_MAX_PARTS = 3
"""The most running items, rounds or targets that are shown below a step."""
_RICH = {"error": "bold red", "warning": "bold yellow"}
