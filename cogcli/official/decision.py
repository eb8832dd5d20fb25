"""Recommends one of several scored options. The margin over the next one is the confidence; without
scores it recommends none.
"""

from __future__ import annotations

from typing import NamedTuple

from cogcli.official.options import check_constraints, read_options
from cogcli.official.values import is_number, list_of
from cogcli.sdk import Refused

_LEVELS = ((0.3, "high"), (0.1, "medium"))
_TOLERATED = {"low": 0.1, "medium": 0.0, "high": 0.0}
_MAX_SCORE = 1e12
_STATED = ("failure_modes", "risks", "cons")


class _Candidate(NamedTuple):
    """An option with its score, the constraints it breaks or that could not be checked, and its
    analysis.
    """

    id: str
    score: float | None
    broken: list[dict[str, object]]
    unchecked: list[dict[str, object]]
    analysis: dict[str, object]
    missing: list[object]


def justify_option(
    scored_options: list[object],
    analyzed_options: list[object],
    goal: str,
    tradeoffs: list[object] | None = None,
    constraints: dict[str, object] | None = None,
    risk_tolerance: str | None = None,
) -> dict[str, object]:
    """Return the option with the highest score that breaks no constraint, and the evidence for and
    against it.

    `confidence_score` is its margin over the next one, as a share of the scale (1, or the highest
    score if above). `confidence_level` is high from 0.3, medium from 0.1, else low; for a tie it is
    `none`, with confidence 0 and without a recommendation. With a low risk tolerance a margin under
    0.1 gives no recommendation either. `failure_modes` lists where it is worst, and the failures
    that the analysis states; `next_steps` names missing numbers. Raise Refused `no-evidence` if no
    option has a score, or all scored ones break a constraint.
    """
    if risk_tolerance is not None and risk_tolerance not in _TOLERATED:
        raise Refused(
            "bad-data",
            f"risk_tolerance must be {', '.join(_TOLERATED)}, found {risk_tolerance!r:.40}",
        )
    candidates = _build_candidates(scored_options, analyzed_options, constraints or {})
    scored = [candidate for candidate in candidates if candidate.score is not None]
    eligible = sorted((c for c in scored if not c.broken), key=lambda c: (-(c.score or 0), c.id))
    if not eligible:
        reason = "every scored option breaks a constraint" if scored else "no option has a score"
        raise Refused("no-evidence", reason, "score options by numbers first: eval.option.score")
    scale = max(1.0, *(abs(c.score or 0) for c in scored))
    following = (eligible[1].score or 0.0) if len(eligible) > 1 else 0.0
    margin = max(0.0, round(((eligible[0].score or 0.0) - following) / scale, 4))
    tied = [c.id for c in eligible if c.score == eligible[0].score] if len(eligible) > 1 else []
    is_close = margin < _TOLERATED[risk_tolerance or "medium"] and len(eligible) > 1
    best = None if len(tied) > 1 or is_close else eligible[0]
    level = (
        "none"
        if len(tied) > 1
        else next((name for minimum, name in _LEVELS if margin >= minimum), "low")
    )
    reason = (
        f"{', '.join(tied)} tie"
        if len(tied) > 1
        else f"{' leads '.join(c.id for c in eligible[:2])} by only {margin}"
    )
    answer: dict[str, object] = {
        "recommendation": best.id if best else f"No recommendation: {reason}",
        "alternatives_considered": [
            _alternative_entry(c, eligible[0]) for c in candidates if c is not best
        ],
        "confidence_score": margin,
        "confidence_level": level,
        "uncertainties": _find_uncertainties(candidates, tied),
        "failure_modes": _failure_modes(best) if best else [],
        "next_steps": _next_steps(candidates, tied),
    }
    summary = _summary_text(goal, answer, best, tradeoffs or [])
    return answer | {"human_readable": summary, "tie": len(tied) > 1, "method": "rules:margin"}


def _build_candidates(
    scored: list[object], analyzed: list[object], constraints: dict[str, object]
) -> list[_Candidate]:
    """Return the options with their scores, constraints and analyses."""
    options = read_options(scored) if scored else []
    analyses = {option.id: option for option in read_options(analyzed)} if analyzed else {}
    candidates = []
    for option in options:
        members = option.given if isinstance(option.given, dict) else {}
        analysis = analyses.get(option.id, option._replace(given={}, attributes={}))
        inner = analysis.given if isinstance(analysis.given, dict) else {}
        merged = option._replace(attributes=analysis.attributes | option.attributes)
        broken, unchecked = check_constraints(merged, constraints)
        broken += [entry for entry in list_of(inner, "broken_constraints") if entry not in broken]
        missing = list_of(members, "missing")
        candidates.append(
            _Candidate(
                option.id, _parse_score(members.get("score")), broken, unchecked, inner, missing
            )
        )
    return candidates


def _parse_score(value: object) -> float | None:
    if not is_number(value):
        return None
    if abs(value) > _MAX_SCORE:
        raise Refused("bad-data", f"a score must lie within {_MAX_SCORE:g}, found {value!r:.40}")
    return float(value)


def _alternative_entry(candidate: _Candidate, best: _Candidate) -> dict[str, object]:
    entry: dict[str, object] = {"id": candidate.id, "score": candidate.score}
    if candidate.score is not None and best.score is not None:
        entry["behind_by"] = round(best.score - candidate.score, 6)
    return entry | {
        "broken_constraints": candidate.broken,
        "best_on": list_of(candidate.analysis, "best_on"),
    }


def _find_uncertainties(candidates: list[_Candidate], tied: list[str]) -> list[object]:
    return [
        *([{"kind": "tie", "options": tied}] if len(tied) > 1 else []),
        *(
            {"kind": "unscored", "option": c.id, "missing": c.missing}
            for c in candidates
            if c.score is None
        ),
        *(
            {"kind": "unchecked-constraint", "option": c.id, "entry": e}
            for c in candidates
            for e in c.unchecked
        ),
    ]


def _failure_modes(best: _Candidate) -> list[object]:
    """Return the attributes on which the recommended option is worst, and the failures its analysis
    states.
    """
    worst: list[object] = [
        {"kind": "worst-on", "attribute": name} for name in list_of(best.analysis, "worst_on")
    ]
    inner = best.analysis.get("option")
    owners = [best.analysis, inner if isinstance(inner, dict) else {}]
    return worst + [entry for owner in owners for name in _STATED for entry in list_of(owner, name)]


def _next_steps(candidates: list[_Candidate], tied: list[str]) -> list[object]:
    lacking = [(c.id, name) for c in candidates if c.score is None for name in c.missing]
    return [
        *([{"action": "add a criterion", "options": tied}] if len(tied) > 1 else []),
        *(
            {"action": "give a number", "option": option, "criterion": name}
            for option, name in lacking
        ),
        *(
            {"action": "check a constraint", "option": c.id, "entry": e}
            for c in candidates
            for e in c.unchecked
        ),
    ]


def _summary_text(
    goal: str, answer: dict[str, object], best: _Candidate | None, tradeoffs: list[object]
) -> str:
    lines = [f"Goal: {' '.join(goal.split())}", f"Recommendation: {answer['recommendation']}"]
    if best:
        lines.append(
            f"Score: {best.score}; margin: {answer['confidence_score']} ({answer['confidence_level']})"
        )
    for key, label in (("best_on", "Best on"), ("worst_on", "Worst on")):
        names = list_of(best.analysis, key) if best else []
        lines += [f"{label}: {', '.join(map(str, names))}"] if names else []
    counts = {"alternatives_considered": "other options", "uncertainties": "uncertainties"}
    lines += [f"{len(list_of(answer, name))} {label}" for name, label in counts.items()]
    lines += [f"{len(tradeoffs)} tradeoffs"] if tradeoffs else []
    return "\n".join(lines)
