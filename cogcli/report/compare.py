"""The differences between two episodes (docs/reference/command-line.md#views). Times, ids and tags are not compared.

1. Steps are matched by id. Their status is compared first, then the error, the output and the input.
2. Inputs, bindings, pinned specs and outputs are matched by name, in the first episode's order. For agent runs the
   decision and every layer of every turn are compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from cogcli.base.jsonvalue import NOTHING, equal
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, truncate, visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedPolicy, RunPins
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History, history_of
from cogcli.episode.run_history import RunHistory, StepHistory
from cogcli.report import layer_cells
from cogcli.report.humanize import duration
from cogcli.report.styled_text import Glyphs, StyledLine, fit

SAME, CHANGED, GONE, NEW = "=", "~", "-", "+"
_EXCERPT: Final = 18
_ONE_A_LINE: Final = ("bindings", "decision", "turns")


class ComparedEpisode(NamedTuple):
    """One of the two compared episodes."""

    id: str
    status: str
    run: RunHistory
    specs: dict[str, str]
    decision: dict[str, str] = NOTHING
    """For an agent's run: the decision and the user it was made for."""
    turns: dict[str, str] = NOTHING
    """For an agent's run: each layer of each turn as text."""


class DiffLine(NamedTuple):
    """One compared item. `how` is one of `=`, `~`, `-`, `+`."""

    how: str
    name: str
    before: object = None
    after: object = None
    what: str = ""
    """The differing part of a step whose status is the same."""


class EpisodeDiff(NamedTuple):
    """All compared items, by area."""

    before: ComparedEpisode
    after: ComparedEpisode
    areas: dict[str, list[DiffLine]]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        before, after = (
            (side.run.skill, side.run.version, side.status) for side in (self.before, self.after)
        )
        changes = (change.how for found in self.areas.values() for change in found)
        return before == after and all(how == SAME for how in changes)


def read_side(id: str, status: str, events: Iterable[Event]) -> ComparedEpisode:
    """Return the compared parts of an episode. Its events are iterated once."""
    fold = history_of(events)
    run = fold.root or RunHistory("")
    specs = read_record(RunPins, run.start.pins).specs if run.start else {}
    side = ComparedEpisode(id, status, run, specs)
    return side if fold.turns.started is None else _with_decision(side, fold, fold.turns.started)


def _with_decision(
    side: ComparedEpisode, fold: History, run_started: RunStarted
) -> ComparedEpisode:
    decided, policy = fold.turns.decision, read_record(RecordedPolicy, run_started.policy)
    decision = {}
    if decided is not None:
        decision = {
            "status": decided.status,
            "status_reason": decided.status_reason,
            "outcome": decided.outcome,
            "decision_key": decided.decision_key,
        }
    decision |= {
        "pack": policy.pack,
        "intent": policy.intent,
        "user": policy.user,
        "safety_mode": policy.safety_mode,
    }
    turns = {f"turn {row['turn']} {row['layer']}": row["cell"] for row in layer_cells.rows(fold)}
    return side._replace(
        decision={name: value for name, value in decision.items() if value}, turns=turns
    )


def compare(before: ComparedEpisode, after: ComparedEpisode) -> EpisodeDiff:
    """Return the differences between two episodes."""
    steps = [{step.id: step for step in side.run.own} for side in (before, after)]
    statuses = [{id: step.status for id, step in own.items()} for own in steps]
    areas = {
        "inputs": _diff_values(before.run.inputs, after.run.inputs),
        "specs": _diff_values(before.specs, after.specs),
        "bindings": _diff_values(*_find_used_bindings(before.run, after.run)),
        "steps": _diff_by_name(
            statuses[0], statuses[1], lambda id, *_: _diff_step(steps[0][id], steps[1][id])
        ),
        "outputs": _diff_values(before.run.outputs, after.run.outputs),
    }
    if before.turns or after.turns:
        areas["decision"] = _diff_values(before.decision, after.decision)
        areas["turns"] = _diff_values(before.turns, after.turns)
    return EpisodeDiff(before, after, areas)


def _diff_values(before: Json, after: Json) -> list[DiffLine]:
    return _diff_by_name(
        before,
        after,
        lambda name, old, new: DiffLine(SAME if equal(old, new) else CHANGED, name, old, new),
    )


def _diff_by_name(
    before: Json, after: Json, diff_values: Callable[[str, object, object], DiffLine]
) -> list[DiffLine]:
    """Return one line per name. `diff_values` returns the line for two values; other lines are for a value
    that only one side has."""
    changes = []
    for name in dict.fromkeys([*before, *after]):
        if name in before and name in after:
            changes.append(diff_values(name, before[name], after[name]))
        else:
            how = GONE if name in before else NEW
            changes.append(DiffLine(how, name, before.get(name), after.get(name)))
    return changes


def _find_used_bindings(*runs: RunHistory) -> list[dict[str, str]]:
    """Return for each run the last binding of each capability that a root step used.

    A capability is omitted if one of the runs reused its result, because that run made no call to
    compare."""
    taken = {step.uses for run in runs for step in run.own if step.reused}
    return [
        {s.uses: s.binding for s in run.own if s.binding and s.uses not in taken} for run in runs
    ]


def _diff_step(before: StepHistory, after: StepHistory) -> DiffLine:
    codes = [step.error.code if step.error else None for step in (before, after)]
    if before.status != after.status:
        return DiffLine(CHANGED, before.id, before.status, after.status)
    if codes[0] != codes[1]:
        return DiffLine(CHANGED, before.id, codes[0], codes[1], "error")
    if not equal(before.output, after.output):
        return DiffLine(CHANGED, before.id, before.status, after.status, "output")
    if not (before.reused or after.reused) and not equal(before.input, after.input):
        return DiffLine(CHANGED, before.id, before.status, after.status, "input")
    return DiffLine(SAME, before.id, before.status, after.status)


# -- rendering ---------------------------------------------------------------------------------------------------------


def comparison_object(difference: EpisodeDiff) -> Json:
    """Return the comparison as JSON, with only the differences of each area."""
    before, after = difference.before, difference.after
    words = {CHANGED: "changed", GONE: "removed", NEW: "added"}
    changes = {
        area: [
            {"name": c.name, "change": words[c.how], "before": c.before, "after": c.after}
            | ({"what": c.what} if c.what else {})
            for c in found
            if c.how != SAME
        ]
        for area, found in difference.areas.items()
    }
    return {
        "episodes": [before.id, after.id],
        "same": difference.is_same,
        "skills": [before.run.title, after.run.title],
        "status": [before.status, after.status],
        "duration_ms": [before.run.ms, after.run.ms],
        **changes,
    }


def lines(difference: EpisodeDiff, glyphs: Glyphs, *, width: int | None) -> list[StyledLine]:
    """Return a heading with both episodes, then one line per area with differences. The area `steps` lists all
    steps."""
    found: list[StyledLine] = [[(fit(_render_head(difference, glyphs), width), "bold")]]
    for area, changes in difference.areas.items():
        shown = changes if area == "steps" else [change for change in changes if change.how != SAME]
        if area in _ONE_A_LINE:
            found += [
                _render_row(area, [f"{c.name}  {_render_arrow(c, glyphs)}"], width) for c in shown
            ]
        elif shown:
            found.append(_render_row(area, _select_fitting(area, shown, glyphs, width), width))
    if difference.is_same:
        found.append([("  nothing differs but ids and times", "dim")])
    return found


def _render_head(difference: EpisodeDiff, glyphs: Glyphs) -> str:
    before, after = difference.before, difference.after
    parts = [
        _render_pair(before.run.title or "no skill", after.run.title or "no skill", glyphs),
        _render_pair(before.status, after.status, glyphs),
        f"{duration(before.run.ms) or '?'} {glyphs.arrow} {duration(after.run.ms) or '?'}",
    ]
    return visible("    ".join(parts))


def _render_pair(before: str, after: str, glyphs: Glyphs) -> str:
    return before if before == after else f"{before} {glyphs.arrow} {after}"


def _render_row(area: str, columns: list[str], width: int | None) -> StyledLine:
    text = visible("   ".join(columns))
    return [(f"  {area:<8}  ", "dim"), (fit(text, width, 12), "")]


def _select_fitting(
    area: str, changes: list[DiffLine], glyphs: Glyphs, width: int | None
) -> list[str]:
    """Return the text of every change. If the strings do not fit, return only the differences and the
    number of the others."""
    words = [_render_change(area, change, glyphs) for change in changes]
    if width is None or area != "steps" or cells("   ".join(words)) <= width - 12:
        return words
    same = sum(change.how == SAME for change in changes)
    differing = [word for word, change in zip(words, changes, strict=True) if change.how != SAME]
    return [*differing, *([f"= {same} others" if differing else f"= all {same}"] if same else [])]


def _render_change(area: str, change: DiffLine, glyphs: Glyphs) -> str:
    lead = f"{change.how} {change.name}"
    if change.how == SAME or area == "specs":
        return lead
    if area == "steps":
        if change.how != CHANGED:
            return lead
        if change.what in ("", "error"):
            return f"{lead} {_render_arrow(change, glyphs)}"
        return f"{lead} other {change.what}"
    if change.how == CHANGED:
        return (
            f"{lead} {_shorten_value(change.before)} {glyphs.arrow} {_shorten_value(change.after)}"
        )
    return f"{lead} {_shorten_value(change.before if change.how == GONE else change.after)}"


def _render_arrow(change: DiffLine, glyphs: Glyphs) -> str:
    return f"{change.before or 'none'} {glyphs.arrow} {change.after or 'none'}"


def _shorten_value(value: object) -> str:
    """Return a value in a few characters. Strings are quoted, other values are JSON."""
    import orjson

    if isinstance(value, str):
        return f'"{truncate(value, _EXCERPT)}"'
    try:
        return truncate(orjson.dumps(value).decode(), _EXCERPT)
    except (TypeError, ValueError):
        return truncate(str(value), _EXCERPT)
