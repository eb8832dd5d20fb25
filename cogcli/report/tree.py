"""A run as a tree: each step with its time, reads and writes. Nested runs are below their step
(docs/reference/command-line.md#views).

Rows never wrap. If the width is too small, the data flow is truncated or omitted first, then the
other columns from the right. Then names are shortened in the middle. Without a width nothing is
truncated and no boxes are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import cells, pad, shorten_middle, visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.shared_state import SeedAction
from cogcli.episode.history import History
from cogcli.episode.run_history import Branch, LoopHistory, RunHistory, StepHistory, total_usage
from cogcli.episode.turn_history import TurnHistory
from cogcli.report.humanize import (
    count_of,
    duration,
    error_text,
    fuzzy_time,
    short_episode,
    short_trace,
    size,
)
from cogcli.report.styled_text import (
    CUT_OFF,
    IN_DOUBT,
    WAITS,
    Glyphs,
    StyledLine,
    StyledSpan,
    fit,
    fit_line,
    outcome_style,
    style_of,
)

_MIN_FLOW = 12


class _Row(NamedTuple):
    """The row of a step before its columns are measured. `detail` contains the lines below it."""

    prefix: str
    sign: str
    status: str
    name: str
    uses: str
    time: str
    mark: str
    flow: str
    detail: StyledLine


def header(
    fold: History, glyphs: Glyphs, *, status: str, now: str, width: int | None
) -> StyledLine:
    """Return the first line: skill, outcome, time and ids."""
    run = fold.root or RunHistory("")
    dot = f" {glyphs.dot} "
    skill = f"{run.skill or 'no skill'} {run.version}".rstrip()
    when = fuzzy_time(run.started_at, now) if width else run.started_at
    episode = short_episode(fold.episode_id) if width else fold.episode_id
    trace = short_trace(fold.trace_id) if width else fold.trace_id
    shadow = "shadow: no rule enforced" if run.is_shadow else ""
    rest = [shadow, duration(fold.ms), episode, when, f"trace {trace}" if trace else ""]
    word = status.partition(",")[0]
    sign = f"{glyphs.outcome(word)} {status}"
    line: StyledLine = [
        (visible(skill), "bold"),
        (dot, "dim"),
        (visible(sign), outcome_style(word)),
    ]
    for text in filter(None, rest):
        line += [(dot, "dim"), (visible(text), "")]
    return fit_line(line, width)


def tree(
    fold: History,
    glyphs: Glyphs,
    *,
    status: str,
    width: int | None,
    only: str = "",
    full: bool = False,
) -> list[StyledLine]:
    """Return the tree of all runs, or of one step and its parts.

    With `full`, all items and rounds of loops are displayed."""
    root = fold.root
    if root is None:
        return []
    actions = [read_record(SeedAction, action) for action in fold.actions]
    shown = _with_actions(fold.grouped(only), root, actions, alone=not only)
    style = _Style(
        glyphs, width is not None, full, {turn.step.id: turn for turn in fold.turns.turns}
    )
    rows = list(_render_rows(shown, style, ""))
    columns = _measure_columns(rows, width)
    lines = [] if only else [_render_root(root, glyphs, status, columns, width, fold.ms)]
    if not only and (error := run_error(fold)):
        lines.append([(fit(f"   {error}", width), "red")])
    for row in rows:
        lines += _render_row(row, columns, width)
    if not only and (decision := decision_text(fold)):
        lines.append([(fit(f"   decision  {decision}", width), "bold")])
    return lines


def decision_text(fold: History) -> str:
    """Return the decision of an agent's run, or its pending request, in one line. Empty for any
    other run."""
    made, asks = fold.turns.decision, fold.asks.open
    words = [made.status, made.outcome, made.status_reason] if made else []
    if not made and asks and fold.turns.started:
        words = [
            "escalated" if asks[-1].kind == "escalation" else "pending_approval",
            asks[-1].gate,
        ]
    return visible(": ".join(dict.fromkeys(word for word in words if word)))


def run_error(fold: History) -> str:
    """Return the error of the run as one line. Empty if it has none, or if one of its steps
    displays the same error."""
    root = fold.root
    if root is None or root.error is None:
        return ""
    error = root.error
    errors = (step.error for step in root.steps.values() if step.error)
    if error.code:
        shown = any(each.code == error.code for each in errors)
    else:
        shown = any(each.message == error.message for each in errors)
    return "" if shown else visible(error_text(error))


def footer(fold: History, glyphs: Glyphs) -> StyledLine:
    """Return the totals: tokens, calls, the slowest step."""
    parts = []
    calls, tokens_in, tokens_out = total_usage(fold.branches())
    for turn in fold.turns.turns:  # model requests are not calls of capabilities
        tokens_in, tokens_out = (
            tokens_in + turn.model_use.tokens_in,
            tokens_out + turn.model_use.tokens_out,
        )
    if tokens_in or tokens_out:
        parts.append(f"tokens {tokens_in} in, {tokens_out} out")
    parts.append(count_of(len(fold.actions), "action") if fold.actions else count_of(calls, "call"))
    parts += _slowest_step(fold.root) if fold.root else []
    return [(f" {glyphs.dot} ".join(visible(part) for part in parts), "dim")]


def _slowest_step(root: RunHistory) -> list[str]:
    """Return the slowest step with its share of the run's time. Empty if no step has a duration."""
    times = [(step.ms, step.name) for step in root.own if step.ms]
    if not times:
        return []
    longest, name = max(times, key=lambda time: time[0])
    total = root.ms or sum(ms for ms, _ in times)
    share = min(100, round(100 * longest / total)) if total else 100
    return [f"slowest {name} {duration(longest)} ({share}%)"]


_STEP_STATUS: Final = {"ok": "done", "error": "failed"}
"""The step status for statuses of actions that have another word."""


def _with_actions(
    branches: list[Branch], root: RunHistory, actions: list[SeedAction], *, alone: bool
) -> list[Branch]:
    """Return the branches of steps with their actions below them. With `alone`, actions without a step are added at the
    end.
    """
    of_step: dict[str | None, list[Branch]] = {}
    known = {step.id for step in root.own}
    for action in actions:
        step_id = action.step_id if action.step_id in known else None
        of_step.setdefault(step_id, []).append(_action_branch(root, action))
    steps = [Branch(run, step, below + of_step.get(step.id, [])) for run, step, below in branches]
    return steps + (of_step.get(None, []) if alone else [])


def _action_branch(root: RunHistory, action: SeedAction) -> Branch:
    id, result = action.id or "", action.result_status or ""
    shown = StepHistory(id, action.tool or id)
    shown.status = _STEP_STATUS.get(result, result)
    shown.ms = None if action.duration_ms is None else round(action.duration_ms)
    shown.writes = [name for name in action.result_artifacts or () if isinstance(name, str)]
    return Branch(root, shown, [])


class _Style(NamedTuple):
    """The style of rows. With `full` all parts of loops are drawn."""

    glyphs: Glyphs
    boxes: bool
    full: bool
    turns: dict[str, TurnHistory]


_FEWEST_FOLDED: Final = 4
"""The smallest number of items or rounds that is folded."""
_MAX_UNFOLDED: Final = 20
"""The largest number of items and rounds of one loop that are shown because they failed or were vetoed."""


def _fold_parts(step: StepHistory, branches: list[Branch]) -> tuple[list[Branch], str]:
    """Return the branches to display below a step, and a string that counts its items or rounds and
    the hidden ones."""
    parts = [branch.step for branch in branches if StepPath(branch.step.id).loop.endswith("#")]
    if len(parts) < _FEWEST_FOLDED:
        return branches, ""
    notable = [part.id for part in parts if part.status not in _PLAIN][:_MAX_UNFOLDED]
    folded = {part.id for part in parts}.difference(notable)
    shown = [branch for branch in branches if branch.step.id not in folded]
    counts = _count_parts(step.loop.total if step.loop else None, len(parts))
    return shown, f"{counts}: {_count_statuses(parts)}; --full shows all"


def _count_parts(total: int | None, started: int) -> str:
    """Return `4 rounds`, `9 items`, or `4 of 9 items` if a loop has started only some of its
    items."""
    if not total:
        return count_of(started, "round")
    items = count_of(total, "item")
    return f"{started} of {items}" if total > started else items


def _count_statuses(parts: list[StepHistory]) -> str:
    counts = Counter(part.status for part in parts)
    known = [status for status in _RANK if counts[status]]
    return ", ".join(f"{counts[status]} {status}" for status in dict.fromkeys([*known, *counts]))


_PLAIN: Final = ("done", "skipped")
_RANK: Final = ("done", "failed", "vetoed", "skipped")


def _render_rows(branches: list[Branch], style: _Style, indent: str) -> Iterator[_Row]:
    glyphs, boxes = style.glyphs, style.boxes
    for position, (run, step, below) in enumerate(branches):
        last = position == len(branches) - 1
        mark, stem = (glyphs.last, "   ") if last else (glyphs.branch, glyphs.pipe)
        if not boxes:
            mark = stem = "  "
        turn = style.turns.get(step.id)
        below, folded = (below, "") if style.full else _fold_parts(step, below)
        through = _describe_turn(turn) if turn else flow(run, step, glyphs)
        detail = [
            (f"{indent}{stem}   {visible(text)}", colour)
            for text, colour in _detail_spans(step, turn, folded)
        ]
        yield _Row(
            indent + mark, glyphs.sign(step.status), step.status, visible(step.name), visible(step.uses),
            duration(step.ms), glyphs.parallel if step.overlaps else "", visible(through), detail,
        )  # fmt: skip
        yield from _render_rows(below, style, indent + stem)


def _detail_spans(
    step: StepHistory, turn: TurnHistory | None, folded_text: str
) -> Iterator[StyledSpan]:
    """Yield the strings below a step or a turn, each with its style."""
    if step.error and step.status in ("failed", "vetoed"):
        yield error_text(step.error), "red"
    lines = turn_lines(turn) if turn else _step_lines(step)
    for text in (*lines, folded_text) if folded_text else lines:
        yield text, "dim"


def _step_lines(step: StepHistory) -> list[str]:
    ruling = [f"policy: {step.ruling}"] if step.ruling else []
    ruling += [step.approval] if step.approval else []
    files = [f"wrote {file.path}, {size(file.size_bytes)}" for file in step.files]
    return [*step.notices, *ruling, *files]


def _describe_turn(turn: TurnHistory) -> str:
    return turn.step.status if turn.step.status in (WAITS, CUT_OFF) else turn.template


def turn_lines(turn: TurnHistory) -> list[str]:
    """Return the results of a turn's layers: context, critic, and the number of layers."""
    lines = []
    if turn.context:
        redacted = [each.capability for each in turn.context.redactions]
        kept = f", kept from the model: {', '.join(map(str, redacted))}" if redacted else ""
        stages = count_of(len(turn.context.context_ledger.stage_hashes), "stage")
        blocks = count_of(len(turn.context.compiled_prompt.context_blocks), "block")
        lines.append(f"context: {stages}, {blocks}{kept}")
    if turn.model_use.calls:
        questions = count_of(turn.model_use.calls, "question")
        lines.append(
            f"model: {questions}, tokens {turn.model_use.tokens_in} in, {turn.model_use.tokens_out} out"
        )
    judged = (("verify", turn.verified), ("score", turn.scored))
    verdicts = [
        f"{word} {made.verdict}" + (f": {made.reason}" if made.reason else "")
        for word, made in judged
        if made
    ]
    lines += [f"critic: {', '.join(verdicts)}"] if verdicts else []
    skipped = [f"{name} skipped ({why})" for name, why in turn.skipped.items()]
    return [*lines, ", ".join([f"layers: {len(turn.layers)} passed", *skipped])]


def flow(run: RunHistory, step: StepHistory, glyphs: Glyphs) -> str:
    """Return the data flow of a step, such as `vars.html → vars.text`. For a step that was skipped
    or has not ended, return the reason or the status."""
    if step.status == "skipped":
        return skip_reason(run, step)
    if step.status == "pending":
        return ""
    if step.status in ("running", WAITS, CUT_OFF, IN_DOUBT):
        return step.detail or step.status
    return " ".join(part for part in _flow_parts(step, glyphs) if part)


def _flow_parts(step: StepHistory, glyphs: Glyphs) -> Iterator[str]:
    """Yield the parts of a step's data flow: its fallback, reads, writes and token usage. A part
    may be empty."""
    yield f"! fell back to {step.fallback}:" if step.fallback else ""
    yield ", ".join(step.reads)
    unknown = "?" if step.status in ("failed", "vetoed") else ""
    target = ", ".join(dict.fromkeys(step.writes)) or unknown
    yield f"{glyphs.arrow} {target}" if target else ""
    if step.tokens:
        yield f"{step.tokens[0]}{glyphs.arrow}{step.tokens[1]} tokens"


def skip_reason(run: RunHistory, step: StepHistory) -> str:
    """Return why a step was skipped, such as `skipped, needs score`."""
    if step.reason == "dependency":
        before = [run.steps[id] for id in step.depends_on if id in run.steps]
        culprits = (one.id for one in before if one.status not in ("done", "pending"))
        return f"skipped, needs {next(culprits, 'a step that failed')}"
    if step.reason == "degraded" and step.detail:
        return f"skipped, {step.detail}"  # the reason of a gate, or of the person who skipped an effect in doubt
    words = {
        "condition": "skipped, its condition is false",
        "degraded": "skipped, a gate degraded it",
    }
    return words.get(step.reason, f"skipped, {step.reason}" if step.reason else "skipped")


def loop_text(loop: LoopHistory, *, running: bool) -> str:
    """Return the progress of a loop, such as `34/120 done, 2 failed  ~40s left`. If the total is
    unknown, return `3 rounds done`."""
    done = loop.done
    words = [
        f"{done}/{loop.total} done" if loop.total is not None else f"{count_of(done, 'round')} done"
    ]
    words += [f"{n} {word}" for word in _OTHER_ENDS if (n := loop.counts.get(word, 0))]
    left = loop.left_ms if running else None
    return ", ".join(words) + ("" if left is None else f"  ~{_round_duration(left)} left")


_OTHER_ENDS: Final = ("failed", "vetoed", "skipped")


def _round_duration(ms: int) -> str:
    seconds = -(-ms // 1000)
    return (
        f"{seconds}s"
        if seconds < 100
        else f"{round(seconds / 60)}m"
        if seconds < 6000
        else f"{round(seconds / 3600)}h"
    )


class _Columns(NamedTuple):
    """The widths of columns, 0 for an omitted column. `flow` is whether the data flow is
    displayed."""

    name: int
    uses: int
    time: int
    flow: bool
    sign: int

    @property
    def total(self) -> int:
        """Return the number of columns up to the end of the time."""
        return self.name + (self.uses + 2 if self.uses else 0) + (self.time + 2 if self.time else 0)


def _measure_columns(rows: list[_Row], width: int | None) -> _Columns:
    sign = max((cells(row.sign) for row in rows), default=1)
    name = max((cells(row.prefix) + sign + 1 + cells(row.name) for row in rows), default=0)
    uses = max((cells(row.uses) for row in rows), default=0)
    time = max((cells(row.time) for row in rows), default=0)
    columns = _Columns(name, uses, time, True, sign)
    if width is None:
        return columns
    columns = columns._replace(flow=columns.total + 4 + _MIN_FLOW <= width)
    if columns.total > width:
        columns = columns._replace(time=0)
    if columns.total > width:
        room = width - name - 2
        columns = columns._replace(uses=room if room >= 10 else 0)
    return columns._replace(name=min(name, width))


def _render_root(
    run: RunHistory,
    glyphs: Glyphs,
    status: str,
    columns: _Columns,
    width: int | None,
    ms: int | None,
) -> StyledLine:
    done = f"{run.count('done')} of {len(run.own)} done"
    word = status.partition(",")[0]
    sign = glyphs.outcome(word)
    skill = visible(run.skill or "run")
    room = max(1, columns.total - cells(sign) - 1)
    text = duration(ms)
    name = pad(skill, max(cells(skill) + 2, room - len(text)))
    line: StyledLine = [
        (f"{sign} ", outcome_style(word)),
        (name, "bold"),
        (text, ""),
        (f"  {done}", ""),
    ]
    return fit_line(line, width)


def _render_row(row: _Row, columns: _Columns, width: int | None) -> list[StyledLine]:
    room = columns.name - cells(row.prefix) - columns.sign - 1
    line: StyledLine = [
        (row.prefix, "dim"),
        (pad(row.sign, columns.sign) + " ", style_of(row.status)),
        (pad(shorten_middle(row.name, max(1, room)), room), ""),
    ]
    if columns.uses:
        line.append((f"  {pad(shorten_middle(row.uses, columns.uses), columns.uses)}", "dim"))
    if columns.time:
        line.append((f"  {row.time:>{columns.time}}", ""))
    if columns.flow and (row.flow or row.mark):
        text = f"  {pad(row.mark, 2) if row.mark else '  '}{row.flow}"
        line.append((fit(text, width, columns.total), ""))
    details = [(fit(text, width), style) for text, style in row.detail]
    return [line, *([detail] for detail in details)]
