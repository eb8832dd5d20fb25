"""`learn.jsonl`: one reflection at the end of a run, with proposals derived from its log
(docs/reference/episode.md#learn). The evidence of a proposal is the first few events that support it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from cogcli.base.calls import STEP_SECONDS
from cogcli.base.canonical import digest
from cogcli.declarations.call_records import RunError
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode import summary
from cogcli.episode.log_fold import NEARLY, LogFold, Use, Uses

MAX_PROPOSALS: Final = 100
HIGH: Final = 0.8
TURNS_IN_A_ROW: Final = 3
_SIGNALS: Final = ("_pressure", "_propensity")
"""Suffixes of the signals in `functional_state.captured`."""


def first_link(episode_id: str) -> str:
    """Return the `prev` of the first line of `learn.jsonl`."""
    return digest(f"cogcli/learn/1:{episode_id}".encode())


def learn_lines(fold: LogFold) -> bytes:
    """Return the bytes of `learn.jsonl` for a log whose root run has ended. They follow from the log alone."""
    ended = fold.projection.terminated
    if ended is None:
        raise ValueError("the run has not ended")
    reflection = {
        "seq": 0,
        "id": f"lr_{ended.id.removeprefix('ev_')}",
        "timestamp": ended.timestamp,
        "episode_id": ended.episode_id,
        "run_id": ended.run_id,
        "entry_type": "reflection",
        "agent_id": "system",
        "basis": {
            "success": summary.success(fold),
            "reasons": _failure_reasons(fold),
            "latencies": _step_latencies(fold),
            "counts": summary.counts(fold),
        },
        "proposals": [proposal for rule in _RULES for proposal in rule(fold)][:MAX_PROPOSALS],
        "evidence_ids": [ended.id],
        "caused_by": ended.id,
        "prev": first_link(ended.episode_id),
    }
    decision = fold.projection.decision
    if decision is not None and decision.agent:
        reflection["x-agent"] = decision.reflection()
    return orjson.dumps(reflection, option=orjson.OPT_APPEND_NEWLINE)


def _failure_reasons(fold: LogFold) -> list[str]:
    error = read_record(RunError, fold.projection.error())
    reasons = (fold.projection.end.status_reason, error.code, error.message)
    return list(dict.fromkeys(reason for reason in reasons if type(reason) is str and reason))


def _step_latencies(fold: LogFold) -> Json:
    latencies = summary.step_latency_ms(fold)
    slowest = max(latencies, key=latencies.__getitem__, default=None)
    return {
        "total_ms": sum(latencies.values()),
        "max_ms": max(latencies.values(), default=0),
        "slowest_step": slowest,
    }


def _fallback_proposals(fold: LogFold) -> Iterator[Json]:
    for binding in (uses := fold.counters.fallbacks).counts:
        text = f"binding `{binding}` needed its fallback: repair it, or make the fallback the first choice"
        yield _build_proposal("binding-fallback", binding, text, uses)


def _slow_steps(fold: LogFold) -> Iterator[Json]:
    limit = fold.projection.start.options.step_timeout_seconds
    limit = STEP_SECONDS if limit is None else limit
    for step in (uses := fold.counters.slow).counts:
        text = f"step `{step}` used more than 80 % of its {limit:g} s"
        yield _build_proposal("step-timeout", step, text, uses)


def _second_tries(fold: LogFold) -> Iterator[Json]:
    for step in (uses := fold.counters.retried).counts:
        if step not in fold.counters.needed_more:
            text = f"step `{step}` always succeeded on the second try: look at what fails the first time"
            yield _build_proposal("second-try", step, text, uses)


def _spent_budgets(fold: LogFold) -> Iterator[Json]:
    for name, budget in summary.budgets(fold).items():
        limit, used = budget["limit"], budget["used"]
        if limit and used is not None and used / limit > NEARLY:
            text = f"budget `{name}` was nearly spent: {used} of {limit}"
            yield _build_proposal("budget-spent", name, text, _uses_at_end(fold, name))


def _missing_outputs(fold: LogFold) -> Iterator[Json]:
    for name in fold.projection.end.required_missing:
        text = f"output `{name}` was never produced: no step that ran writes it"
        yield _build_proposal("output-missing", str(name), text, _uses_at_end(fold, str(name)))


def _high_pressure(fold: LogFold) -> Iterator[Json]:
    """Propose to inspect each signal of an agent that stayed high over consecutive turns."""
    pressed = fold.counters.pressed
    signals = {name: None for state, _ in pressed for name in state if name.endswith(_SIGNALS)}
    for signal in signals:
        uses = Uses()
        for row in _high_rows(signal, pressed):
            if len(row) >= TURNS_IN_A_ROW:
                for use in row:
                    uses.add(use)
        if turns := uses.counts[signal]:
            text = f"`{signal}` was {HIGH} or more in {turns} turns, three or more in a row: see what it asks for"
            yield _build_proposal("high-pressure", signal, text, uses)


def _high_rows(signal: str, pressed: list[tuple[Json, str]]) -> Iterator[list[Use]]:
    """Yield each series of consecutive turns in which a signal was high."""
    row: list[Use] = []
    for state, event in pressed:
        value = state.get(signal)
        if isinstance(value, int | float) and value >= HIGH:
            row.append(Use(signal, event))
            continue
        yield row
        row = []
    yield row


_RULES: Final = (
    _fallback_proposals,
    _slow_steps,
    _second_tries,
    _spent_budgets,
    _missing_outputs,
    _high_pressure,
)


def _uses_at_end(fold: LogFold, about: str) -> Uses:
    uses = Uses()
    if (ended := fold.projection.terminated) is not None:
        uses.add(Use(about, ended.id))
    return uses


def _build_proposal(kind: str, about: str, text: str, uses: Uses) -> Json:
    return {
        "kind": kind,
        "about": about,
        "suggestion": text,
        "count": uses.counts[about],
        "evidence_ids": uses.evidence.get(about, []),
    }
