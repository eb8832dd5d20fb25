"""`trace EP --view layers`: a turn as one cell per layer (docs/reference/agent-run.md#view)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.base.terminal_text import visible
from cogcli.declarations.layer_records import (
    AgentLimits,
    AttentionWrites,
    BudgetGateWrites,
    ConsolidationWrites,
    FocusWrites,
    GoalsWrites,
    IdentityWrites,
    JudgmentWrites,
    PerceptionWrites,
    PolicyGateWrites,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.spec_types import VERDICTS
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.turn_history import TurnHistory
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import Glyphs, StyledLine, fit, named_rows

COLUMNS: Final = ("turn", "layer", "cell")
_PER_TURN: Final = "per_turn"
_RESULT: Final = {"done": "ok"}


def cells_of(fold: History) -> list[Json]:
    """Return one object per turn. A layer that the turn has not reached is null."""
    return [_turn_object(fold, turn) for turn in fold.turns.turns]


def _turn_object(fold: History, turn: TurnHistory) -> Json:
    started, root = fold.turns.started, fold.root
    limits = read_record(AgentLimits, started.agent if started else None).limits
    return {
        "run_id": root.id if root else "",
        "trace_id": fold.trace_id,
        "turn": turn.number,
        "request": started.task if started else "",
        "budget_gate": _budget_gate(turn, limits),
        "perception": _perception_cell(turn),
        "focus": _focus_cell(turn),
        "attention": _attention_cell(turn),
        "identity": _identity_cell(turn),
        "intent": _intent_cell(turn),
        "goals": _goals_cell(turn),
        "context": _context_cell(turn),
        "judgment": _judgment_cell(turn),
        "policy_gate": _policy_gate(turn),
        "action": [
            {"tool": tool, "result": _RESULT.get(status, status)} for tool, status in turn.calls
        ],
        "critic": _critic_cell(turn),
        "consolidation": _consolidation_cell(turn),
        "reflection": _reflection_cell(turn, limits),
        "skipped": turn.skipped,
    }


def _budget_gate(turn: TurnHistory, limits: dict[str, float]) -> Json | None:
    """Return whether the turn could begin, the budget that forbade it, and the share left of the scarcest one."""
    writes = turn.writes_of("budget_gate", BudgetGateWrites)
    if writes is None:
        return None
    gate = writes.gate_decision
    share = _scarcest_share(gate.remaining, limits)
    return {"proceed": gate.proceed, "exceeded": gate.exceeded or None, "budget_remaining": share}


def _focus_cell(turn: TurnHistory) -> Json | None:
    """Return the mode of the focus, and the types of the deferred events."""
    writes = turn.writes_of("focus", FocusWrites)
    if writes is None or turn.skipped.get("focus"):
        return None
    state, types = writes.focus_state, _event_types(turn)
    return {"mode": state.mode, "buffered": [types.get(id) or id for id in state.buffered]}


def _event_types(turn: TurnHistory) -> dict[str, str | None]:
    """Return the type of each event of a turn, by id."""
    perceived = turn.writes_of("perception", PerceptionWrites)
    return {each.id: each.type for each in perceived.events} if perceived else {}


def _perception_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("perception", PerceptionWrites)
    return {"events": [each.type for each in writes.events]} if writes else None


def _attention_cell(turn: TurnHistory) -> Json | None:
    """Return the events in focus, with their types if they are known, and the highest salience."""
    writes = turn.writes_of("attention", AttentionWrites)
    if writes is None:
        return None
    types = _event_types(turn)
    focus = [types.get(ref) or ref for ref in writes.focus]
    return {"focus": focus, "salience_top": max(writes.salience_scores.values(), default=None)}


def _identity_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("identity", IdentityWrites)
    if writes is None:
        return None
    agent = writes.agent_self
    named = {"agent_id": agent.agent_id} if agent.agent_id else {}
    return {"agent_role": agent.role, "voice": agent.voice, **named}


def _intent_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("goals", GoalsWrites)
    return {"name": writes.intent, "task_template": turn.template or None} if writes else None


def _goals_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("goals", GoalsWrites)
    return {"active_goals": writes.active_goals} if writes else None


def _context_cell(turn: TurnHistory) -> Json | None:
    """Return the size of the compiled context: blocks, tokens, omissions, and names withheld from the model."""
    context = turn.context
    if context is None:
        return None
    return {
        "blocks": len(context.compiled_prompt.context_blocks),
        "tokens": sum(context.budget_report.used.values()),
        "omitted": len(context.budget_report.omissions),
        "redacted": [each.capability for each in context.redactions],
    }


def _judgment_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("judgment", JudgmentWrites)
    return {"candidate_plan_id": writes.candidate.candidate_plan_id} if writes else None


def _policy_gate(turn: TurnHistory) -> Json | None:
    """Return the strictest verdict on the turn. It comes from the layer, from a call, or from the
    agent itself."""
    verdicts_and_gates: list[tuple[str | None, str | None]] = []
    if writes := turn.writes_of("policy_gate", PolicyGateWrites):
        verdicts_and_gates.append((writes.verdict, next(iter(writes.obligations), None)))
    verdicts_and_gates += [(each.verdict, each.gate) for each in turn.decided if each.enforced]
    if turn.escalation:
        verdicts_and_gates.append(("escalate", turn.escalation))
    ranked = [
        (VERDICTS.index(verdict), gate)
        for verdict, gate in verdicts_and_gates
        if verdict in VERDICTS
    ]
    if not ranked:
        return None
    rank, gate = min(ranked, key=lambda each: each[0])
    return {"verdict": VERDICTS[rank], "approval_gate": gate}


def _critic_cell(turn: TurnHistory) -> Json:
    judgments = [each for each in (turn.verified, turn.scored) if each]
    return {
        "verify": turn.verified.verdict if turn.verified else None,
        "score": turn.scored.verdict if turn.scored else None,
        "reason": next((each.reason for each in judgments if each.reason), None),
    }


def _consolidation_cell(turn: TurnHistory) -> Json | None:
    writes = turn.writes_of("consolidation", ConsolidationWrites)
    if writes is None:
        return None
    candidates = [proposal.candidate for proposal in writes.proposals]
    return {"memory_proposals": [f"{each.entity} {each.predicate}" for each in candidates]}


def _reflection_cell(turn: TurnHistory, limits: dict[str, float]) -> Json | None:
    """Return whether the goal is met, and the remaining share of the run's scarcest budget."""
    reflection = turn.reflection
    if reflection is None:
        return None
    share = _scarcest_share(reflection.budget, limits)
    return {"goal_met": reflection.goal_met, "budget_remaining": share}


def _scarcest_share(remaining: Mapping[str, float], limits: Mapping[str, float]) -> str | None:
    """Return the remaining percentage of the budget that is nearest to its limit. None without any
    budget.
    """
    shares = [
        remaining[key] / limit
        for key, limit in limits.items()
        if not key.endswith(_PER_TURN) and limit > 0 and key in remaining
    ]
    return f"{max(0, int(100 * min(shares)))}%" if shares else None


# -- text output -------------------------------------------------------------------------------------------------------


def rows(fold: History) -> list[Json]:
    """Return one row per turn and layer, with its cell as text."""
    return [
        {"turn": cells["turn"], "layer": layer, "cell": text}
        for cells in cells_of(fold)
        for layer, text in _render_cells(cells)
    ]


def lines(fold: History, glyphs: Glyphs, *, width: int | None) -> list[StyledLine]:
    """Return the turns one below the other, with one line per layer."""
    found: list[StyledLine] = []
    for turn, cells in zip(fold.turns.turns, cells_of(fold), strict=True):
        found.append([(f"{glyphs.sign(turn.step.status)} turn {turn.number}", "bold")])
        named = named_rows([(layer, visible(text)) for layer, text in _render_cells(cells)])
        found += [[name, (fit(text, width, len(name[0])), style)] for name, (text, style) in named]
    return found


def _render_cells(cells: Json) -> Iterator[tuple[str, str]]:
    """Yield each cell as text. The text of a skipped layer is the reason. A layer that was not
    reached has none."""
    for layer, word in _WORDED.items():
        cell = cells[layer]
        skipped = cells["skipped"].get(layer)
        if skipped:
            yield layer, f"skipped: {skipped}"
        elif cell is not None:
            text = word(cell)
            if text:
                yield layer, text


def _budget_text(cell: Json) -> str:
    if cell["exceeded"]:
        return str(cell["exceeded"])
    return f"{cell['budget_remaining']} of the budget left" if cell["budget_remaining"] else ""


def _focus_text(cell: Json) -> str:
    held = f", held back: {', '.join(map(str, cell['buffered']))}" if cell["buffered"] else ""
    return f"{cell['mode']}{held}"


def _attention_text(cell: Json) -> str:
    top = "" if cell["salience_top"] is None else f" (top {cell['salience_top']})"
    return ", ".join(map(str, cell["focus"])) + top


def _intent_text(cell: Json) -> str:
    template = f", template {cell['task_template']}" if cell["task_template"] else ""
    return f"{cell['name'] or 'none'}{template}"


def _context_text(cell: Json) -> str:
    parts = [count_of(cell["blocks"], "block"), count_of(cell["tokens"], "token")]
    parts += [f"{cell['omitted']} left out"] if cell["omitted"] else []
    parts += (
        [f"kept from the model: {', '.join(map(str, cell['redacted']))}"]
        if cell["redacted"]
        else []
    )
    return ", ".join(parts)


def _critic_text(cell: Json) -> str:
    words = ", ".join(f"{word} {cell[word]}" for word in ("verify", "score") if cell[word])
    return f"{words}: {cell['reason']}" if cell["reason"] else words


def _reflection_text(cell: Json) -> str:
    left = f", {cell['budget_remaining']} of the budget left" if cell["budget_remaining"] else ""
    return ("goal met" if cell["goal_met"] is True else "goal not met") + left


_WORDED: Final = {
    "budget_gate": _budget_text,
    "perception": lambda cell: ", ".join(map(str, cell["events"])),
    "focus": _focus_text,
    "attention": _attention_text,
    "identity": lambda cell: ", ".join(str(value) for value in cell.values() if value),
    "intent": _intent_text,
    "goals": lambda cell: ", ".join(cell["active_goals"]),
    "context": _context_text,
    "judgment": lambda cell: cell["candidate_plan_id"] or "no plan",
    "policy_gate": lambda cell: " ".join(str(value) for value in cell.values() if value),
    "action": lambda cell: ", ".join(f"{each['tool']} {each['result']}" for each in cell),
    "critic": _critic_text,
    "consolidation": lambda cell: ", ".join(cell["memory_proposals"]),
    "reflection": _reflection_text,
}
