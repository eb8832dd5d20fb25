"""`trace EP --view layers`: a turn as one cell per layer (docs/reference/agent-run.md#view)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.core.terminal_text import visible
from cogcli.report.humanize import count_of
from cogcli.report.run_fold import RunFold
from cogcli.report.run_view import texts_of
from cogcli.report.styled_text import Glyphs, StyledLine, fit, named_rows
from cogcli.report.turns import TurnView
from cogcli.specs.pack import VERDICTS

COLUMNS: Final = ("turn", "layer", "cell")
_PER_TURN: Final = "per_turn"
_RESULT: Final = {"done": "ok"}


def cells_of(fold: RunFold) -> list[dict[str, Any]]:
    """An object per turn; a layer that a turn has not reached is null."""
    return [_turn_object(fold, turn) for turn in fold.turns.turns]


def _turn_object(fold: RunFold, turn: TurnView) -> dict[str, Any]:
    started, root = fold.turns.started, fold.root
    return {
        "run_id": root.id if root else "",
        "trace_id": fold.trace_id,
        "turn": turn.number,
        "request": text_of(started.get("task")),
        "perception": _perception(turn),
        "attention": _attention(turn),
        "identity": _identity(turn),
        "intent": _intent(turn),
        "context": _context(turn),
        "judgment": _judgment(turn),
        "policy_gate": _policy_gate(turn),
        "action": [{"tool": tool, "result": _RESULT.get(status, status)} for tool, status in turn.calls],
        "critic": _critic(turn),
        "consolidation": _consolidation(turn),
        "reflection": _reflection(turn, object_of(object_of(started.get("agent")).get("limits"))),
        "skipped": turn.skipped,
    }


def _events(turn: TurnView) -> list[dict[str, Any]]:
    return [object_of(each) for each in list_of(turn.layers.get("perception", {}).get("events"))]


def _perception(turn: TurnView) -> dict[str, Any] | None:
    return {"events": [each.get("type") for each in _events(turn)]} if "perception" in turn.layers else None


def _attention(turn: TurnView) -> dict[str, Any] | None:
    """What has the attention, an event of the turn by its type; and the highest salience."""
    if "attention" not in turn.layers:
        return None
    writes = turn.layers["attention"]
    types = {text_of(each.get("id")): text_of(each.get("type")) for each in _events(turn)}
    scores = [score for score in object_of(writes.get("salience_scores")).values() if _is_number(score)]
    focus = [types.get(ref) or ref for ref in texts_of(writes.get("focus"))]
    return {"focus": focus, "salience_top": max(scores, default=None)}


def _identity(turn: TurnView) -> dict[str, Any] | None:
    if "identity" not in turn.layers:
        return None
    own = object_of(turn.layers["identity"].get("agent_self"))
    return {"agent_role": own.get("role"), "voice": own.get("voice")}


def _intent(turn: TurnView) -> dict[str, Any] | None:
    if "goals" not in turn.layers:
        return None
    return {"name": turn.layers["goals"].get("intent"), "task_template": turn.candidate.get("template")}


def _context(turn: TurnView) -> dict[str, Any] | None:
    """How much was compiled: blocks, tokens, what was left out or kept from the model."""
    if not turn.context:
        return None
    prompt, report = (
        object_of(turn.context.get("compiled_prompt")),
        object_of(turn.context.get("budget_report")),
    )
    used = object_of(report.get("used")).values()
    return {
        "blocks": len(list_of(prompt.get("context_blocks"))),
        "tokens": sum(count for count in used if type(count) is int),
        "omitted": len(list_of(report.get("omissions"))),
        "redacted": [object_of(each).get("capability") for each in list_of(turn.context.get("redactions"))],
    }


def _judgment(turn: TurnView) -> dict[str, Any] | None:
    if "judgment" not in turn.layers:
        return None
    return {"candidate_plan_id": object_of(turn.layers["judgment"].get("candidate")).get("candidate_plan_id")}


def _policy_gate(turn: TurnView) -> dict[str, Any] | None:
    """The strictest of what was said of the turn: by the layer, of each call, and by the agent itself."""
    found: list[tuple[Any, Any]] = []
    if "policy_gate" in turn.layers:
        writes = turn.layers["policy_gate"]
        found.append((writes.get("verdict"), next(iter(texts_of(writes.get("obligations"))), None)))
    found += [
        (each.get("verdict"), each.get("gate")) for each in turn.decided if each.get("enforced") is not False
    ]
    if turn.escalation:
        found.append(("escalate", turn.escalation))
    known = [(VERDICTS.index(verdict), gate) for verdict, gate in found if verdict in VERDICTS]
    if not known:
        return None
    rank, gate = min(known, key=lambda each: each[0])
    return {"verdict": VERDICTS[rank], "approval_gate": gate}


def _critic(turn: TurnView) -> dict[str, Any]:
    reason = turn.verified.get("reason") or turn.scored.get("reason") or None
    return {
        "verify": turn.verified.get("verdict"),
        "score": turn.scored.get("verdict"),
        "reason": reason,
    }


def _consolidation(turn: TurnView) -> dict[str, Any] | None:
    if "consolidation" not in turn.layers:
        return None
    found = []
    for proposal in list_of(turn.layers["consolidation"].get("proposals")):
        candidate = object_of(object_of(proposal).get("candidate"))
        found.append(f"{text_of(candidate.get('entity'))} {text_of(candidate.get('predicate'))}")
    return {"memory_proposals": found}


def _reflection(turn: TurnView, limits: dict[str, Any]) -> dict[str, Any] | None:
    """Whether the goal is met, and what is left of the run's budget that is nearest to its end."""
    if "reflection" not in turn.layers:
        return None
    left = object_of(turn.reflection.get("budget"))
    shares = [
        left[key] / limit
        for key, limit in limits.items()
        if not key.endswith(_PER_TURN) and _is_number(limit) and limit > 0 and _is_number(left.get(key))
    ]
    remaining = f"{max(0, int(100 * min(shares)))}%" if shares else None
    return {"goal_met": turn.reflection.get("goal_met"), "budget_remaining": remaining}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- for people --------------------------------------------------------------------------------------------------------


def rows(fold: RunFold) -> list[dict[str, Any]]:
    """A row per turn and layer, its cell as text."""
    return [
        {"turn": cells["turn"], "layer": layer, "cell": text}
        for cells in cells_of(fold)
        for layer, text in _texts(cells)
    ]


def lines(fold: RunFold, glyphs: Glyphs, *, width: int | None) -> list[StyledLine]:
    """The turns one below the other, a line per layer."""
    found: list[StyledLine] = []
    for turn, cells in zip(fold.turns.turns, cells_of(fold), strict=True):
        found.append([(f"{glyphs.sign(turn.step.status)} turn {turn.number}", "bold")])
        named = named_rows([(layer, visible(text)) for layer, text in _texts(cells)])
        found += [[name, (fit(text, width, len(name[0])), style)] for name, (text, style) in named]
    return found


def _texts(cells: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each cell in words; of a layer that was skipped why, of one that was not reached nothing."""
    for layer, word in _WORDED.items():
        cell = cells[layer]
        skipped = cells["skipped"].get(layer)
        if skipped:
            yield layer, f"skipped: {skipped}"
        elif cell is not None:
            text = word(cell)
            if text:
                yield layer, text


def _attention_text(cell: dict[str, Any]) -> str:
    top = "" if cell["salience_top"] is None else f" (top {cell['salience_top']})"
    return ", ".join(map(str, cell["focus"])) + top


def _intent_text(cell: dict[str, Any]) -> str:
    template = f", template {cell['task_template']}" if cell["task_template"] else ""
    return f"{cell['name'] or 'none'}{template}"


def _context_text(cell: dict[str, Any]) -> str:
    parts = [count_of(cell["blocks"], "block"), count_of(cell["tokens"], "token")]
    parts += [f"{cell['omitted']} left out"] if cell["omitted"] else []
    parts += [f"kept from the model: {', '.join(map(str, cell['redacted']))}"] if cell["redacted"] else []
    return ", ".join(parts)


def _critic_text(cell: dict[str, Any]) -> str:
    words = ", ".join(f"{word} {cell[word]}" for word in ("verify", "score") if cell[word])
    return f"{words}: {cell['reason']}" if cell["reason"] else words


def _reflection_text(cell: dict[str, Any]) -> str:
    left = f", {cell['budget_remaining']} of the budget left" if cell["budget_remaining"] else ""
    return ("goal met" if cell["goal_met"] is True else "goal not met") + left


_WORDED: Final = {
    "perception": lambda cell: ", ".join(map(str, cell["events"])),
    "attention": _attention_text,
    "identity": lambda cell: ", ".join(str(value) for value in cell.values() if value),
    "intent": _intent_text,
    "context": _context_text,
    "judgment": lambda cell: cell["candidate_plan_id"] or "no plan",
    "policy_gate": lambda cell: " ".join(str(value) for value in cell.values() if value),
    "action": lambda cell: ", ".join(f"{each['tool']} {each['result']}" for each in cell),
    "critic": _critic_text,
    "consolidation": lambda cell: ", ".join(cell["memory_proposals"]),
    "reflection": _reflection_text,
}
