"""The end of a turn: its score, whether the run ends, and proposals for memory (docs/reference/agent-run.md#next)."""

from __future__ import annotations

from typing import Final

from cogcli.agent.cognition.critic import TIED_FROM, Results, Score, Verification, score
from cogcli.agent.cognition.ends import (
    SKIPPED,
    Denial,
    LoopEnding,
    denial_ending,
    denied_goal,
    failing,
)
from cogcli.agent.cognition.planner import decision_of
from cogcli.agent.cognition.progress import Progress
from cogcli.agent.cognition.reply import is_met, render
from cogcli.agent.cognition.turn_record import milliseconds
from cogcli.agent.context.memory import session_entity
from cogcli.declarations.agent_events import (
    MemoryProposed,
    PressureCaptured,
    ReflectionRecorded,
    ResultJudged,
)
from cogcli.declarations.layer_records import TurnEffect
from cogcli.declarations.pack_spec import BUILT_IN_GATE
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json
from cogcli.policy.guardrails import find_guardrails_for_text
from cogcli.policy.pressure import (
    GateWait,
    Pressures,
    budget_pressure,
    gate_pressure,
    loop_pressure,
    share,
)
from cogcli.policy.proposals import proposal_from
from cogcli.run.engine.outcome import RunOutcome

_DENIALS: Final = ("policy.", "safety.")
"""The first words of the codes of calls that were denied."""
_BEFORE_SCORE: Final = ("compile", "plan", "verify", "execute")
_AFTER_SCORE: Final = ("score", "consolidate")
MAX_FAILING: Final = 3
"""The number of consecutive failed calls that end a run."""


def settle(loop: Progress, verification: Verification, outcome: RunOutcome | None) -> None:
    """End a turn. Raise PolicyApprovalError if a person must decide."""
    state = _compute_pressures(loop).to_payload(loop.risk, loop.root.engine.now)
    loop.record.emit(PressureCaptured(turn=loop.turn, **state))
    is_latest = loop.policy.edition >= LATEST_EDITION
    scored = Score("accept", "", False)
    _escalate_repeated_denial(loop, state["escalation_propensity"])
    if loop.ending is None and verification.verdict == "ok":
        scored = _score_turn(loop, outcome, state["escalation_propensity"])
    elif loop.ending is None and is_latest:
        _escalate_latency(loop, _BEFORE_SCORE)
    loop.goal_met = scored.goal_met
    loop.stages.end_phase("score", loop.root.engine.now)
    _count_failing(loop)
    if loop.ending is None and (verification.verdict == "ok" or loop.skips_action):
        _decide_end(loop, scored, outcome)
    if loop.ending is None and not loop.candidate.fault:
        _count_idle(loop)
    _close_reasoning(loop)
    _store_proposals(loop)
    _record_reflection(loop, scored)
    has_completed = loop.ending is None or loop.ending.status == "completed"
    if is_latest and has_completed:
        _escalate_latency(loop, _AFTER_SCORE)


def _escalate_latency(loop: Progress, phases: tuple[str, ...]) -> None:
    """Request a person's decision if one of these phases exceeded its time limit. A rejection ends the run."""
    late = loop.stages.find_late_phase(loop.invocation.limits, phases)
    if not late:
        return
    reason = f"budget_exceeded:latency:{late}"
    gates = loop.seen.evidence_gates
    judged = ResultJudged(
        turn=loop.turn,
        verdict="escalate",
        reason=reason,
        goal_met=loop.goal_met,
        evidence_gates=gates,
    )
    loop.record.emit(judged)
    loop.ask(BUILT_IN_GATE, reason)


def _close_reasoning(loop: Progress) -> None:
    """Pass the results of the turn to the state of the reasoning model."""
    if loop.reasoning is None:
        return
    results = loop.seen.list_results(loop.plan) if loop.plan and loop.effects else []
    ending = (loop.ending.reason or loop.ending.status) if loop.ending else ""
    notices = loop.new_notices if loop.policy.edition >= LATEST_EDITION else []
    loop.new_notices = []
    loop.reasoning.close_turn(
        results, loop.response, ending, loop.root.engine.now, loop.record, notices
    )


def _record_reflection(loop: Progress, score: Score) -> None:
    known = loop.record.known
    known["score"] = {**score._asdict(), "next": "stop" if loop.ending else "continue"}
    exceeded = loop.ending.reason if loop.ending else ""
    known["ledger"] = {"exceeded": exceeded, "remaining": loop.policy.budgets.remaining()}
    loop.record.run_layer("reflection")
    loop.stages.end_phase("consolidate", loop.root.engine.now)
    times = loop.stages.milliseconds if loop.policy.edition >= LATEST_EDITION else None
    error = loop.ending.error if loop.ending else None
    reflection = ReflectionRecorded(
        turn=loop.turn,
        **known["reflection"],
        stage_ms=times,
        say=(error.say if error else "") or None,
    )
    recorded = loop.record.append(reflection).payload
    if error is not None:
        error.say = ReflectionRecorded.of(recorded).say or ""  # as recorded, without secrets


def _compute_pressures(loop: Progress) -> Pressures:
    invocation, seen = loop.invocation, loop.seen
    begun, now = loop.root.first.timestamp, loop.root.engine.now
    elapsed = milliseconds(begun, now)
    if loop.policy.edition >= LATEST_EDITION:
        elapsed = loop.stages.measure(begun, now)
    usage = loop.policy.budgets.usage()
    return Pressures(
        budget_pressure(
            invocation.limits, usage, soft=invocation.limits["soft"], elapsed_ms=elapsed
        ),
        loop_pressure(
            loop.guard.max_identical,
            loop.replans,
            int(invocation.limits["replans"]),
            loop.guard.idle_turns,
        ),
        share(len(loop.policy.unresolved), len(seen.evidence_gates)),
        *_gate_and_conflict(loop),
    )


def _gate_and_conflict(loop: Progress) -> tuple[float, float]:
    """Return the pressure of gates and the pressure of contradictions. A turn ends only after the answers at its gates,
    so the pressure of a gate is the duration of its answer.
    """
    if loop.policy.edition < LATEST_EDITION:
        return 0.0, float(bool(loop.seen.conflicts))
    learned = ((edge.subject, edge.predicate) for edge in loop.seen.learned_edges)
    found = loop.contradictions
    return (
        gate_pressure(_gate_waits(loop), soft=loop.invocation.limits["soft"]),
        share(found.count_unresolved(learned), found.total),
    )


def _gate_waits(loop: Progress) -> list[GateWait]:
    """Return how long each person's answer in the turn took."""
    return [
        GateWait(
            milliseconds(answer.asked.asked_at, answer.at),
            milliseconds(answer.asked.asked_at, answer.asked.expires_at),
        )
        for answer in loop.unnoted_answers
        if answer.asked.asked_at
    ]


def _score_turn(loop: Progress, outcome: RunOutcome | None, propensity: float) -> Score:
    """Return the critic's verdict on the turn. An escalation waits here for a person."""
    _record_denials(loop)
    success = _evaluate_goal(loop, outcome)
    if success and loop.plan is not None and loop.plan.template is not None:
        loop.response = render(loop.plan.template.reply, loop.root.run.state)
    gap = _find_gap(loop)
    results = _collect_results(loop, success, propensity, is_same_gap=gap == loop.last_gap)
    found = score(results)
    judged = ResultJudged(
        turn=loop.turn, **found._asdict(), evidence_gates=loop.seen.evidence_gates
    )
    loop.record.emit(judged)
    if found.verdict == "escalate":
        loop.ask(BUILT_IN_GATE, found.reason)
        return Score("accept", found.reason, results.goal_met)
    loop.last_gap = gap if found.verdict == "replan" or loop.policy.edition < LATEST_EDITION else ""
    return found


def _collect_results(
    loop: Progress, success: bool | None, propensity: float, *, is_same_gap: bool
) -> Results:
    """Return the input of the critic. `success` is whether the goal is met; None without a rule."""
    phases = _BEFORE_SCORE if loop.policy.edition >= LATEST_EDITION else ("plan",)
    has_answer = bool(loop.response) and not loop.candidate.asking
    is_open = loop.skips_action or loop.policy.unresolved or loop.denies_goal
    return Results(
        effects=tuple(loop.effects),
        post_gate_failed=loop.seen.post_gate_failed,
        late_phase=loop.stages.find_late_phase(loop.invocation.limits, phases),
        conflicts=loop.seen.conflicts,
        success=success,
        answered=has_answer and not is_open,
        may_replan=_may_replan(loop, success),
        tied=is_same_gap,
        escalation_propensity=propensity,
    )


def _may_replan(loop: Progress, success: bool | None) -> bool:
    """Return whether another plan may follow.

    If a model refused and the run had no effect, its refusal is the answer.
    """
    says_no = success is False and loop.plan is None and not loop.has_acted
    return loop.planner.replans and loop.policy.budgets.allows_replan and not says_no


def _find_gap(loop: Progress) -> str:
    """Return the need that the turn did not meet: the capability of its first failed call, otherwise the goal."""
    bad = [each for each in loop.effects if each["status"] in ("failed", "vetoed")]
    if not bad:
        return "goal"
    found: str = bad[0]["step_id" if loop.policy.edition < LATEST_EDITION else "capability"]
    return found


def _escalate_repeated_denial(loop: Progress, propensity: float) -> None:
    """Request a person's decision under pressure, if the policy denied the same capability as before the last
    replan.
    """
    gap, loop.denied_gap = loop.denied_gap, ""
    if not gap or loop.ending is not None:
        return
    if gap == loop.last_gap and propensity >= TIED_FROM:
        loop.ask(BUILT_IN_GATE, f"tie:{gap}")
    loop.last_gap = gap


def _evaluate_goal(loop: Progress, outcome: RunOutcome | None) -> bool | None:
    """Return whether the goal is met: by the rule of the decision, otherwise by that of the template.

    None without a rule, and for a model's plan before its answer.
    """
    template = loop.plan.template if loop.plan else None
    rule = decision_of(loop.invocation, loop.candidate).success
    if loop.skips_action:
        return None
    if template is None:
        return _is_goal_met(loop, rule) if rule is not None and loop.response else None
    is_done = outcome is not None and outcome.status == "ok"
    if rule is not None:
        return is_done and _is_goal_met(loop, rule)
    if template.success is not None:
        return is_met(template.success, loop.root.run.state)
    return is_done


def _is_goal_met(loop: Progress, rule: object) -> bool:
    return is_met(rule, loop.root.run.state, loop.policy.facts, loop.seen.outputs)


def _record_denials(loop: Progress) -> None:
    """Record the results of the turn's calls. A denied effect is open until a call of the same capability succeeds."""
    for effect in map(TurnEffect.of, loop.effects):
        if effect.status == "done":
            loop.open_denials.pop(effect.capability, None)
            loop.has_acted = loop.has_acted or loop.may_act(effect.capability)
        elif effect.status == "vetoed" and (effect.code or "").startswith(_DENIALS):
            by_policy = (effect.code or "").startswith("policy.")
            reason = loop.seen.denial if by_policy and loop.seen.denial else effect.code or ""
            say = loop.seen.find_say(effect.step_id) if by_policy else ""
            loop.record_denial(effect.capability, Denial(reason, say))


def _decide_end(loop: Progress, score: Score, outcome: RunOutcome | None) -> None:
    """Decide whether the run ends with this turn."""
    if score.verdict == "replan":
        loop.replan(score.reason, list(loop.effects))
    elif outcome is not None and outcome.error is not None and not loop.planner.replans:
        status = "denied" if outcome.status == "vetoed" else "failed"
        reason = loop.seen.denial or outcome.error.code
        loop.ending = LoopEnding(status, reason, outcome.error)
    elif loop.skips_action and loop.plan is not None:
        loop.ending = LoopEnding("completed", SKIPPED)
    elif loop.response or loop.plan is None or loop.plan.template is not None:
        _end_with_response(loop, score)


def _end_with_response(loop: Progress, score: Score) -> None:
    """End with the response, unless a guardrail refuses it. An answer after a denied effect does not meet the goal."""
    must_refuse = loop.invocation.pack.policy.guardrails.must_refuse
    if loop.refuse(find_guardrails_for_text(must_refuse, loop.response, loop.policy.edition)):
        return
    loop.ask_for(loop.response)
    if loop.ending is not None:
        return
    if not score.goal_met and loop.denies_goal:
        loop.ending = denied_goal(*next(iter(loop.open_denials.items())))
        return
    unresolved = loop.policy.unresolved
    reason = (
        "" if score.goal_met else score.reason or (unresolved[0] if unresolved else "goal_unmet")
    )
    loop.ending = LoopEnding("completed", "input_missing" if loop.candidate.asking else reason)


def _count_failing(loop: Progress) -> None:
    """End a run with too many consecutive failed calls, if its planner would try again."""
    for effect in loop.effects:
        if effect["status"] in ("done", "failed"):
            loop.failing = loop.failing + 1 if effect["status"] == "failed" else 0
    if loop.ending is None and loop.planner.replans and loop.failing >= MAX_FAILING:
        failed = [effect["step_id"] for effect in loop.effects if effect["status"] == "failed"]
        loop.ending = failing(loop.seen.find_result(failed[-1]))


def _count_idle(loop: Progress) -> None:
    """End a run at its second turn without a new result."""
    proposed = [
        {"capability": call.capability, "args": call.arguments} for call in loop.candidate.calls
    ]
    trip = loop.guard.end_turn([*proposed, *(TurnEffect.of(each).result for each in loop.effects)])
    if trip is not None:
        loop.record_trip(trip)
        if trip.again:
            loop.ending = denial_ending(f"loop_guard:{trip.kind}")


def _outcome_word(loop: Progress) -> str:
    """Return the word for the outcome of a completed plan; empty if the template has none."""
    if loop.ending is None or loop.plan is None or loop.skips_action:
        return ""
    return loop.outcome_word(loop.ending) if loop.ending.status == "completed" else ""


def _session_subjects(loop: Progress) -> Json:
    """Return the topics of the run's session, for its working memory. Empty without a session."""
    invocation, session_id = loop.invocation, loop.invocation.request.session_id
    if not session_id or invocation.policy.edition < LATEST_EDITION or loop.withheld:
        return {}
    about: Json = {}
    if loop.turn == 1:
        about = {"intent": invocation.intent.intent, **invocation.intent.slots}
    outcome = _outcome_word(loop)
    about |= {"outcome": outcome} if outcome else {}
    ref = f"{loop.root.run.state.run_id}/t{loop.turn}"
    return {"session": session_entity(session_id), "about": about, "ref": ref}


def _store_proposals(loop: Progress) -> None:
    """Make proposals for memory, and store them."""
    invocation, known, run = loop.invocation, loop.record.known, loop.root.run
    user = invocation.request.user
    known["candidate"] = {
        "decision_key": loop.decision_key,
        "entity": next(iter(invocation.intent.slots.values()), f"user:{user.user_id}"),
        "outcome": _outcome_word(loop),
        "safety_mode": invocation.safety_mode,
        **_session_subjects(loop),
    }
    loop.record.run_layer("consolidation")
    proposals: list[Json] = []
    for each in known["proposals"]:
        made = proposal_from(
            each, run_id=run.state.run_id, at=loop.root.engine.now, consent=user.consent
        )
        proposals.append({"proposal_id": made.id_for(invocation.pack.tenant, user.user_id), **each})
    facts = [*loop.seen.facts, *(loop.reasoning.new_facts() if loop.reasoning else ())]
    at = loop.record.emit(MemoryProposed(turn=loop.turn, proposals=proposals, facts=facts))
    if loop.remember is not None and invocation.safety_mode != "read_only":
        calls = [
            {"capability": each["capability"], "status": each["status"]} for each in loop.effects
        ]
        content = {"turn": loop.turn, "calls": calls, "proposals": proposals}
        loop.root.engine.not_stored = loop.remember(content, run.state.run_id, at)
