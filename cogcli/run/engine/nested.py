"""Nested skills: a child run with its own state inside the same episode (docs/reference/execution.md#nested)."""

from __future__ import annotations

from typing import Any

from cogcli.base.errors import MaxSkillDepthExceededError, RuntimeErrorBase
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.events import RunStarted, RunTerminated, SkillRef, StepFinished
from cogcli.run.engine.context import Run
from cogcli.run.engine.effects import Cancelled, Effects
from cogcli.run.engine.graph import GraphDriver
from cogcli.run.engine.outcome import RunOutcome, decide_outcome, name_step
from cogcli.run.engine.policy import enter_skill, learn_facts
from cogcli.run.engine.step_recorder import StepRecord, no_usage
from cogcli.state.execution import to_payload
from cogcli.state.reducer import initial_state

MAX_DEPTH = 10


def run_nested(record: StepRecord, skill_id: str, values: dict[str, Any]) -> Effects:
    """Run the nested skill and return its declared outputs.

    Raise Cancelled, or the child's error with the path to it in the message.
    """
    parent = record.run
    if parent.depth >= MAX_DEPTH:
        raise MaxSkillDepthExceededError(
            "skill.depth", f"skill `{skill_id}`: nested over {MAX_DEPTH} deep"
        )
    enclosing_tools = yield from enter_skill(record, skill_id, values)
    record.begin(skill=skill_id, decision=record.decision or None)
    child = _start_child(record, skill_id, values, enclosing_tools)
    graph = GraphDriver(child)
    try:
        yield from graph.drive()
        if parent.engine.stopping and not graph.complete:
            raise Cancelled(external=True)
    except (Cancelled, RuntimeErrorBase) as cause:
        raise _end_early(record, child, cause) from cause
    except Exception:
        _defer_end(child)  # a bug in cogcli ends the root run too
        raise
    finally:
        if child.effect_left:
            record.record_effect()
    outcome = decide_outcome(
        graph.endings,
        child.state.outputs,
        child.plan.skill.outputs,
        keep_going=parent.engine.options.keep_going,
        lenient=child.is_lenient,
    )
    if outcome.status == "aborted":
        raise _end_early(record, child, Cancelled(external=parent.engine.stopping))
    record.add_usage(_sum_usage(child))
    if outcome.status == "pending":
        _defer_end(child)
    else:
        _terminate_child(child, outcome)
    if outcome.error is not None:
        raise _prefix_path(child, outcome.error)
    outputs = {
        name: value for name, value in outcome.outputs.items() if name in child.plan.skill.outputs
    }
    learn_facts(record, record.uses, outputs)
    return outputs


def _start_child(
    record: StepRecord, skill_id: str, values: dict[str, Any], enclosing_tools: tuple[str, ...]
) -> Run:
    parent, engine = record.run, record.run.engine
    plan = engine.plan_of(skill_id)
    skill = plan.skill
    payload = RunStarted(
        task=parent.state.frame.goal or f"{skill.name}: {skill.description}",
        skill=SkillRef(id=skill.id, version=skill.version),
        inputs=values,
        frame=to_payload(parent.state.frame),
        options=engine.options.to_payload(),
        seed=0,
        using="runner",
        tags={},
        pins={},
        parent_run_id=parent.state.run_id,
    )
    draft = draft_of(payload, engine.ids.run_id(), step_id=record.path)
    state = initial_state(engine.append(draft))
    return Run(
        engine, plan, state, record.path, parent.depth + 1, parent.spawn_step, enclosing_tools
    )


def _terminate_child(child: Run, outcome: RunOutcome) -> None:
    """Append the deferred closing events of the runs below the child, then the child's last event."""
    child.engine.append_deferred(child.prefix)
    child.emit(_end_draft(child, outcome))


def _defer_end(child: Run) -> None:
    """Defer the child's end, `aborted`, until the enclosing scope ends, since a request in an ended run cannot be
    answered.
    """
    child.defer_ending(
        child.prefix, _end_draft(child, RunOutcome("aborted", None, dict(child.state.outputs)))
    )


def _end_draft(child: Run, outcome: RunOutcome) -> Draft:
    payload = RunTerminated(
        status=outcome.status,
        status_reason=outcome.error.code if outcome.error else None,
        outputs=outcome.outputs,
        error=None,
        required_missing=list(outcome.required_missing),
        contradictions=list(outcome.contradictions),
    )
    return draft_of(payload, child.state.run_id, step_id=child.prefix)


def _sum_usage(child: Run) -> dict[str, int]:
    """Return the calls and tokens of the child's steps, including steps whose closing event is deferred."""
    sums = child.state.trace.metrics
    used = {name: getattr(sums, name) for name in no_usage()}
    for each in child.engine.deferred:
        if each.run is child and StepPath(each.path).is_step:
            usage = StepFinished.of(each.draft.payload).usage
            for name, value in usage.json.items() if usage else ():
                used[name] += value
    return used


def _end_early(record: StepRecord, child: Run, cause: Cancelled | RuntimeErrorBase) -> Exception:
    """End a child that was cancelled or whose step exceeded its time limit, and return the error for the step. If the
    child has an effect in doubt, it waits instead, and its error is returned.
    """
    record.add_usage(_sum_usage(child))
    if child.in_doubt is not None:
        _defer_end(child)
        return _prefix_path(child, child.in_doubt)
    if isinstance(cause, RuntimeErrorBase):
        _terminate_child(child, RunOutcome("error", cause, dict(child.state.outputs)))
    elif cause.external:
        _defer_end(child)
    else:
        _terminate_child(child, RunOutcome("aborted", None, dict(child.state.outputs)))
    return cause


def _prefix_path(child: Run, error: RuntimeErrorBase) -> RuntimeErrorBase:
    """Return the child's error with the skill and the step in which it arose prefixed to its message."""
    skill_id = child.state.skill_id
    if error.step_id is None:
        error.skill_id, error.run_id = skill_id, child.state.run_id
        error.message = f"skill `{skill_id}`: {error.message}"
    else:
        step = StepPath(error.step_id).first(child.prefix)
        error.message = f"skill `{skill_id}` > {name_step(error, step, skill_id)}"
    return error
