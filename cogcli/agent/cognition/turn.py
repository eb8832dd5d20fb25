"""One pass over the layers: compile, propose, verify, gate, act (docs/reference/agent-run.md#layers)."""

from __future__ import annotations

from cogcli.agent.cognition.attention import attention_from, find_held_events
from cogcli.agent.cognition.critic import CONFLICT, Verification, verify
from cogcli.agent.cognition.ends import (
    denial_ending,
    denial_of,
    overpacked_ending,
    redactions_of,
    refusal_ending,
)
from cogcli.agent.cognition.gate import apply_policy_gate
from cogcli.agent.cognition.judgment import judge, summarize_conversation
from cogcli.agent.cognition.layers import ORDER
from cogcli.agent.cognition.model_planner import ModelPlanner
from cogcli.agent.cognition.planner import JudgmentView, TurnPlan, to_plan
from cogcli.agent.cognition.progress import Progress
from cogcli.agent.cognition.settlement import settle
from cogcli.agent.cognition.turn_record import (
    TurnRecord,
    list_goals,
    values_at_start,
)
from cogcli.agent.context.compiler import CompiledContext, compile_context, find_evidence
from cogcli.agent.context.contradictions import find_contradictions
from cogcli.declarations.agent_events import CandidateProposed, ContextCompiled, PlanJudged
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.events import PlanCreated, PlanEntry
from cogcli.declarations.pack_spec import BUILT_IN_GATE
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json
from cogcli.policy.loop_guard import LoopTrip
from cogcli.policy.run_policy import Facts
from cogcli.run.engine.effects import Effects
from cogcli.run.engine.outcome import RunOutcome, describe_outcome
from cogcli.run.engine.plan import plan_entry, plan_skill


def pass_turn(loop: Progress) -> Effects:
    """Run the next turn. Return the RunOutcome of a run that waits, otherwise None.

    Raise PolicyApprovalError if a person must decide.
    """
    engine = loop.root.engine
    loop.stages.begin(engine.now)
    _open_turn(loop)
    for layer in ORDER[:6]:
        off = layer.name == "focus" and loop.invocation.request.focus == "off"
        loop.record.run_layer(layer.name, skipped="off" if off else "")
    before, loop.effects = loop.effects, []
    context = _compile_turn(loop)
    if loop.ending is None and (yield from summarize_conversation(loop)):
        context = _compile_context(loop)
    loop.stages.end_phase("compile", engine.now)
    yield from _propose_plan(loop, context, before)
    # The first edition has one phase for both.
    is_latest = loop.policy.edition >= LATEST_EDITION
    if is_latest:
        loop.stages.end_phase("plan", engine.now)
    verification = _verify_plan(loop, context)
    verification, allowed = apply_policy_gate(loop, context, verification)
    loop.stages.end_phase("verify" if is_latest else "plan", engine.now)
    outcome: RunOutcome | None = None
    skipped = ""
    if loop.plan is not None and allowed:
        outcome = yield from _run_plan(loop, loop.plan)
        if outcome.status == "pending":
            return outcome
    elif loop.plan is not None and loop.skips_action:
        skipped = "safety_mode"
    loop.record.complete("action", {"effects": loop.effects}, skipped=skipped)
    loop.stages.end_phase("execute", engine.now)
    settle(loop, verification, outcome)
    return None


def _open_turn(loop: Progress) -> None:
    """Reserve the turn, and set the values that its layers read."""
    budgets = loop.policy.budgets
    loop.turn += 1
    loop.policy.turn = loop.turn
    reserved = budgets.reserve({"turns": 1})
    if reserved.overrun is not None:
        loop.end_by_budget(reserved.overrun)
    else:
        reserved.commit()
        budgets.begin_turn()
    if loop.policy.edition >= LATEST_EDITION:
        loop.add_answer_notices()
    exceeded = loop.ending.reason if loop.ending else ""
    ledger = {"exceeded": exceeded, "remaining": budgets.remaining()}
    known = values_at_start(
        loop.invocation,
        ledger,
        loop.effects,
        loop.notices,
        waiting=find_held_events(loop.record.known),
        goals=list_goals(
            loop.invocation, loop.turn, loop.reasoning.state if loop.reasoning else None
        ),
        now=loop.root.engine.now,
    )
    loop.record = TurnRecord(loop.root, loop.turn, known, loop.policy.edition)


def _compile_turn(loop: Progress) -> CompiledContext:
    """Return the context of the turn. An escalated message waits here for a person; a refused one ends the run."""
    invocation = loop.invocation
    context = _compile_context(loop)
    loop.policy.merge_known_facts(
        context.compilation.evidence.facts, lambda now: _facts_at(loop, now)
    )
    loop.contradictions = find_contradictions(context.compilation)
    if context.refused or context.is_overpacked:
        loop.withheld = context.refused or overpacked_ending().reason
    if loop.ending is not None:
        return context
    if context.refused:
        why = loop.explain_guardrail(context.refused)
        say = loop.policy.find_say(context.refused)
        loop.ending = refusal_ending(context.refused, invocation.pack.decisions.intents, why, say)
    elif context.is_overpacked:
        loop.ending = overpacked_ending()
    elif loop.turn == 1:
        loop.ask_for(invocation.request.message)
        loop.withheld = loop.ending.reason if loop.ending else ""
    return context


def _facts_at(loop: Progress, now: str) -> Facts:
    """Return the facts about the entities of the request at a time, since evidence may become stale during a turn."""
    state, invocation = loop.root.run.state, loop.invocation
    compiled = invocation.compile_input(
        loop.turn, state.run_id, state.trace_id, now, loop.seen.learned_edges
    )
    return find_evidence(compiled, invocation.intent)[1].facts


def _compile_context(loop: Progress, part: float = 1.0) -> CompiledContext:
    """Compile the context of the turn, and append it. A prompt for a model gets this fraction of its tokens."""
    state = loop.root.run.state
    compile_input = loop.invocation.compile_input(
        loop.turn, state.run_id, state.trace_id, loop.root.engine.now, loop.seen.learned_edges
    )
    if loop.policy.edition >= LATEST_EDITION:
        compile_input = compile_input._replace(attention=attention_from(loop.record.logged))
    context = compile_context(compile_input)
    if isinstance(loop.planner, ModelPlanner):
        view = _planner_view(loop, context)
        context = loop.planner.fit(view._replace(room=int(view.room * part)))
    compiled = ContextCompiled(turn=loop.turn, context_hash=context.hash, context=context.payload)
    loop.record.emit(compiled)
    loop.record.known["context"] = {"context_hash": context.hash}
    return context


def _planner_view(loop: Progress, context: CompiledContext) -> JudgmentView:
    """Return the input of the planner in this turn."""
    return JudgmentView(
        loop.invocation,
        context,
        loop.turn,
        notices=tuple(loop.notices),
        now=loop.root.engine.now,
        seed=loop.root.first.payload["seed"],
        room=int(loop.invocation.limits["tokens.context"]),
        state=loop.reasoning.state if loop.reasoning else None,
    )


def _propose_plan(loop: Progress, context: CompiledContext, effects: list[Json]) -> Effects:
    """Let the planner propose a plan, unless the run ends. `effects` are the effects of the previous turn."""
    loop.plan = None
    view = _planner_view(loop, context)._replace(effects=tuple(effects))
    candidate = None
    if loop.ending is None:
        candidate = yield from judge(loop, view, lambda part: _compile_context(loop, part))
    if candidate is not None:
        loop.candidate = candidate
        members = loop.candidate.to_payload(loop.decision_key)
        loop.record.emit(CandidateProposed(turn=loop.turn, **members))
        loop.plan = to_plan(loop.invocation, loop.candidate, loop.turn)
        loop.response = loop.candidate.response
    loop.notices = []
    proposed = (
        {"candidate_plan_id": loop.plan.plan_id} if loop.plan else {"response": bool(loop.response)}
    )
    loop.record.complete("judgment", {"candidate": proposed})


def _verify_plan(loop: Progress, context: CompiledContext) -> Verification:
    """Return the critic's verdict on the plan. A plan that may not run ends the run or leads to a replan."""
    if loop.ending is not None:
        return Verification(())
    trips = _record_trips(loop)
    found = verify(
        loop.invocation,
        context,
        loop.candidate,
        loop.plan,
        remaining=loop.policy.budgets.remaining(),
        missing_evidence=loop.policy.unresolved,
        trips=trips,
        conflicts=loop.seen.conflicts if loop.policy.edition >= LATEST_EDITION else (),
    )
    fails = [fail.to_payload() for fail in found.fails]
    reason = found.fails[0].reason if found.fails else ""
    judged = PlanJudged(turn=loop.turn, verdict=found.verdict, reason=reason, fails=fails)
    loop.record.emit(judged)
    if found.verdict != "ok" and not loop.skips_action:
        _react_to_failures(loop, context, found, trips)
    return found


def _react_to_failures(
    loop: Progress, context: CompiledContext, verification: Verification, trips: dict[str, LoopTrip]
) -> None:
    """Ask a person, plan again or end the run, after a plan that may not run."""
    redacted = redactions_of(context, verification, loop.policy.find_say)
    for capability, denial in redacted.items():
        loop.record_denial(capability, denial)
    if verification.verdict == "escalate":
        _ask_about_conflict(loop, verification)
        return
    again = next((trip for trip in trips.values() if trip.again), None)
    if again or verification.verdict == "reject" or not loop.planner.replans:
        loop.ending = denial_ending(*denial_of(verification, redacted, again))
        return
    reason = verification.fails[0].reason if verification.fails else ""
    loop.replan(reason, [fail.to_payload() for fail in verification.fails])


def _ask_about_conflict(loop: Progress, verification: Verification) -> None:
    """Request a person's decision about a plan whose required evidence has two values.

    Even after an approval the conflict remains. If the planner can replan, it proposes another plan, otherwise the run
    ends.
    """
    (reason, *_) = (fail.reason for fail in verification.fails if fail.code == CONFLICT)
    loop.ask(BUILT_IN_GATE, reason)
    if loop.ending is None and loop.planner.replans:
        fails = [fail.to_payload() for fail in verification.fails]
        loop.notify({"type": "conflict", "text": reason, "details": fails})
    elif loop.ending is None:
        loop.ending = denial_ending(reason)


def _record_trips(loop: Progress) -> dict[str, LoopTrip]:
    """Append the trips of the loop guard over the calls of the candidate, and return them by step."""
    trips = {}
    for call in loop.candidate.calls:
        trip = loop.guard.propose(call.capability, call.arguments)
        if trip is not None:
            trips[f"t{loop.turn}_{call.id}"] = trip
            loop.record_trip(trip)
    return trips


def _run_plan(loop: Progress, plan: TurnPlan) -> Effects:
    """Run the plan in the root run, and return the RunOutcome."""
    engine = loop.root.engine
    steps = plan_skill(plan.skill, engine.capabilities, engine.skills)
    created = _draft_plan_created(loop, plan, [plan_entry(step) for step in steps.steps])
    outcome: RunOutcome = yield from loop.root.drive(steps, created)
    loop.effects = loop.seen.list_effects(plan)
    for call in loop.candidate.calls:
        result = loop.seen.find_result(f"t{plan.turn}_{call.id}")
        if result is not None:
            loop.guard.record_result(call.capability, call.arguments, result)
    return describe_outcome(outcome, loop.root.run.state.skill_id)


def _draft_plan_created(loop: Progress, plan: TurnPlan, records: list[PlanEntry]) -> Draft:
    source = f"planner.{loop.planner.name}"
    payload = PlanCreated(
        source=source,
        rationale=f"turn {plan.turn} of {loop.invocation.pack.pack_id}",
        step_records=records,
        steps=[f"{each.kind}:{each.description}" for each in records],
        plan_id=plan.plan_id,
        plan_hash=plan.plan_hash,
        turn=plan.turn,
    )
    return draft_of(payload, loop.root.run.state.run_id, speaker=source)
