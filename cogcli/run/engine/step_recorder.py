"""The record of one step. It is filled while the step runs, and the closing event is made from it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from cogcli.base.calls import BindingChain, Member
from cogcli.base.errors import EffectInDoubtError, RuntimeErrorBase
from cogcli.base.json_text import excerpt_of_json
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade, FallbackUse, StepError, Usage, WrittenFile
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    ENDINGS,
    CallRetried,
    StepAnswered,
    StepFinished,
    StepStarted,
)
from cogcli.run.engine.context import Fallback, Run
from cogcli.run.engine.effects import Cancelled, Effects, Sleep
from cogcli.run.engine.outcome import status_of
from cogcli.run.engine.plan import PlannedStep
from cogcli.run.engine.step_times import ClockReading, StepTimes
from cogcli.state.reducer import Write

if TYPE_CHECKING:
    from cogcli.run.engine.ports import CallAccount

    class IntentMembers(TypedDict, total=False):
        """The members of `step.started` that depend on the kind of step."""

        binding: str | None
        service: str | None
        capability: str | None
        skill: str | None
        attempt: int | None
        idempotency_key: str | None
        side_effects: str | bool | None
        decision: dict[str, Any] | None
        items: int | None
        targets: list[str] | None

    class CallMembers(TypedDict, total=False):
        """The members of a closing event that only a step has that started."""

        action_id: str | None
        kind: str
        input_excerpt: str
        attempts: list[AttemptMade]
        capability: str | None
        fallback: FallbackUse | None
        tool: str


EXCERPT: Final = 200
_TOKENS_IN: Final = ("input_tokens", "prompt_tokens")
_TOKENS_OUT: Final = ("output_tokens", "completion_tokens")


def no_usage() -> dict[str, int]:
    """Return the usage of a step without calls."""
    return {"llm_calls": 0, "tool_calls": 0, "tokens_in": 0, "tokens_out": 0}


class StepRecord:
    """The reads, attempts, usage and times of one step, or of one gate, item or target in it."""

    def __init__(
        self,
        run: Run,
        path: str,
        uses: str,
        capability: Capability | None,
        kind: str,
        started: ClockReading | None = None,
    ) -> None:
        """Begin the record of a step. `started` is the time of its start, by default now."""
        self.run = run
        self.path = path
        self.uses = uses
        self.capability = capability
        self.kind = kind
        self.reads: dict[str, None] = {}
        self.expression_reads: dict[str, None] = {}
        """References in expressions. The closing event lists them after those of the input."""
        self.reused_from: Mapping[str, str] | None = None
        """The episode and event of the reused result, or None."""
        self.idempotency_key = f"{run.state.run_id}:{path}"
        """The idempotency key of its calls."""
        self.round: int | None = None
        """The number of this round of a `while` step, from 0. None outside of one."""
        self.effect_left = False
        """Whether a call that must not be repeated may have happened."""
        self.in_doubt: EffectInDoubtError | None = None
        """The error of one of this step's invocations that may have happened."""
        self._begun = 0
        self._attempts_answered = 0
        """Number of attempts when `step.answered` was last appended."""
        self._repeats: dict[str, Any] | None = None
        self.input: dict[str, Any] | None = None
        self.member: Member | None = None
        self.chain: BindingChain | None = None
        self.attempts: list[AttemptMade] = []
        """The attempts of the closing event, skipped bindings included."""
        self.usage = no_usage()
        self.action_id: str | None = None
        self._part_tools = set[str]()
        """The tools that the parts of the step called."""
        self.durable = False
        self.intent: str | None = None
        """The id of the `step.started` event."""
        self.decision: dict[str, str] | None = None
        """The run policy's decision for `step.started`. None for the default policy."""
        self.masks: tuple[str, ...] = ()
        """The paths of the output that the policy masks."""
        self.limits: CallAccount | None = None
        """The amounts that its call adds to the counters of the policy's limits. None if it adds nothing."""
        self._started = started or ClockReading.now(run.engine.clock)

    @classmethod
    def of_step(
        cls, run: Run, planned: PlannedStep, started: ClockReading | None = None
    ) -> StepRecord:
        """Return a new record of a planned step. `started` is the time of its start, by default now."""
        step = planned.step
        path = run.path(step.id)
        return cls(run, path, step.uses, planned.capability, planned.kind, started)

    @property
    def speaker(self) -> str:
        """The `speaker` of this step's events: its binding id, else `system`."""
        return self.member.binding_id if self.member else "system"

    def new_part(
        self, planned: PlannedStep, name: int | str, started: ClockReading | None = None
    ) -> StepRecord:
        """Return a new record of an item or round by number, or of a target by name. `started` is the time of its
        start, by default now.
        """
        path = StepPath(self.path).item(name)
        return StepRecord(self.run, path, self.uses, planned.capability, planned.kind, started)

    def restore(self, closing: Event) -> None:
        """Copy the results from the closing event of this item or round, which is its only event in this log."""
        ended = StepFinished.of(closing.payload)
        self.reads = dict.fromkeys(ended.reads)
        if ended.usage is not None:
            self.add_usage(ended.usage.json)
        self.action_id = ended.action_id
        self._part_tools = {ended.tool} if ended.tool else set()

    def add_part(self, inner: StepRecord) -> None:
        """Add the reads, usage and effects of an item, a round or a target."""
        self.add_usage(inner.usage)
        self.reads |= inner.reads
        self.expression_reads |= inner.expression_reads
        self.effect_left |= inner.effect_left
        self.durable |= inner.durable
        if inner.action_id:
            self._part_tools.add(inner.tool)

    def add_call(self, reads: dict[str, None], usage: dict[str, int], tool: str) -> None:
        """Add the reads, usage and tool of an item or a round that has no record."""
        self.add_usage(usage)
        self.reads |= reads
        self._part_tools.add(tool)

    @property
    def tool(self) -> str:
        """The tool that the step called, as `protocol:service`. For a loop: the tools of its parts, joined with
        commas. Otherwise the text of `uses`.
        """
        if self.member is not None:
            return f"{self.member.protocol}:{self.member.service_id}"
        return ", ".join(sorted(self._part_tools)) or self.uses

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return self.run.state.run_id

    @property
    def called_id(self) -> str:
        """The id of the called capability, empty for a nested skill."""
        return self.capability.id if self.capability else ""

    @property
    def attempts_made(self) -> int:
        """The number of attempts, without skipped bindings."""
        return sum(attempt.status != "skipped" for attempt in self.attempts)

    @property
    def last_made(self) -> AttemptMade:
        """The last attempt that was made. Requires at least one."""
        return next(attempt for attempt in reversed(self.attempts) if attempt.status != "skipped")

    def wait(self, seconds: float) -> Effects:
        """Wait before the next attempt. If the log already has that attempt, return at once.

        On replay, a wait that was cancelled in the log is cancelled at the same position.
        """
        dispatcher, position = self.run.engine.dispatcher, None
        if dispatcher is not None:
            number = 1 + (self.attempts_made if self.attempts else self._begun)
            if dispatcher.is_repeated(self.run_id, self.path, number):
                return
            position = dispatcher.ended_at(self.run_id, self.path)
        yield Sleep(time.monotonic() + seconds, position)

    def set_target(self, uses: str, capability: Capability | None, values: dict[str, Any]) -> None:
        """Set the next target: the text of `uses`, the capability (None for a nested skill), and the input."""
        self.uses = uses
        self.capability = capability
        self.input = values

    def record_effect(self) -> None:
        """Record that a call must not be repeated: neither this step nor a step that contains its run retries
        after it.
        """
        self.effect_left = self.run.effect_left = True

    def schedule_repeat(self, wait: float, error: RuntimeErrorBase) -> None:
        """Record that the step itself will retry after `wait` seconds because of this error. The next `begin`
        appends the retry.
        """
        self._repeats = {
            "reason": "retry",
            "wait_ms": round(wait * 1000),
            "error": {"code": error.code, "message": error.message, "left": error.left},
        }

    def begin(self, *, durable: bool = False, **members: Unpack[IntentMembers]) -> None:
        """Append `step.started` with these members, or `call.retried` if the step repeats its call.

        With `durable` the event is synced to disk.
        """
        self._begun += 1
        if self._repeats is not None:
            number = self.attempts_made + 1 if self.attempts else self._begun
            again = CallRetried(
                step_id=self.path,
                attempt=number,
                binding=members.get("binding"),
                service=members.get("service"),
                **self._repeats,
            )
            self.run.emit(self._build_draft(again), durable=durable)
            if self.limits is not None:
                self.limits.release_unsent()
            return
        self.durable = durable
        event = self.run.emit(self.intent_draft(**members), durable=durable)
        self.record_begun(event.id)

    def intent_draft(self, **members: Unpack[IntentMembers]) -> Draft:
        """Return the draft of `step.started` with these members."""
        started = StepStarted(
            step_id=self.path,
            uses=self.uses,
            input=self.input,
            reads=list(self.reads),
            round=self.round,
            **members,
        )
        return self._build_draft(started)

    def record_begun(self, intent: str) -> None:
        """Store the id of the `step.started` event, which is in the log now."""
        self.intent = intent
        self.action_id = action_of(intent)

    def append_answer(self, output: dict[str, Any]) -> None:
        """Append `step.answered`, once per attempt, for an output that is not written yet or that no closing
        event will contain.
        """
        if self._attempts_answered == len(self.attempts):
            return
        self._attempts_answered = len(self.attempts)
        answered = StepAnswered(step_id=self.path, output=output, attempts=list(self.attempts))
        self.run.emit(self._build_draft(answered), durable=self.durable)

    def _build_draft(self, payload: Payload) -> Draft:
        return draft_of(payload, self.run_id, step_id=self.path, speaker=self.speaker)

    def count_call(self, usage: Mapping[str, int] | None) -> None:
        """Count one answered attempt, and add the token usage in its reply."""
        self.usage["llm_calls" if usage else "tool_calls"] += 1
        if usage:
            self.usage["tokens_in"] += _first_present(usage, _TOKENS_IN)
            self.usage["tokens_out"] += _first_present(usage, _TOKENS_OUT)

    def add_usage(self, usage: dict[str, int]) -> None:
        """Add the usage of a child run or a gate."""
        for key, value in usage.items():
            self.usage[key] += value

    def locate(self, error: RuntimeErrorBase) -> None:
        """Add to an error the place where it arose. Members that are already set do not change."""
        error.step_id = error.step_id or self.path
        error.run_id = error.run_id or self.run_id
        error.skill_id = error.skill_id or self.run.state.skill_id
        error.attempts = error.attempts or [attempt.json for attempt in self.attempts]
        if self.capability is not None:
            error.capability_id = error.capability_id or self.capability.id
        if self.member is not None:
            error.binding_id = error.binding_id or self.member.binding_id
            error.service_id = error.service_id or self.member.service_id

    def fail(self, error: RuntimeErrorBase) -> Event | None:
        """Locate the error and append the closing event. If the step waits for a person, append nothing and
        return None.
        """
        self.locate(error)
        engine = self.run.engine
        if isinstance(error, EffectInDoubtError):
            engine.in_doubt = engine.in_doubt or error
        status = status_of(error)
        return None if status == "pending" else self.finish(status, reason=error.code, error=error)

    def close_cancelled(self, cancelled: Cancelled) -> Event | None:
        """Close the step as cancelled, and return its closing event.

        If the cause is external, defer the event and return None. If the run then waits, the step stays open, and
        a resume starts it again.
        """
        draft = self.closing_draft("skipped", reason="cancelled")
        if not cancelled.external:
            return self._append_end(draft)
        self.run.defer_ending(self.path, draft, durable=self.durable)
        return None

    def finish(
        self,
        ending: str,
        *,
        reason: str | None = None,
        detail: str | None = None,
        output: dict[str, Any] | None = None,
        writes: list[Write] | None = None,
        error: RuntimeErrorBase | None = None,
        times: StepTimes | None = None,
    ) -> Event:
        """Append the closing event and return it. On resume and replay return the recorded one.

        `times` are the times of the step if its end was measured already.
        """
        draft = self.closing_draft(
            ending,
            reason=reason,
            detail=detail,
            output=output,
            writes=writes or (),
            error=error,
            times=times,
        )
        return self._append_end(draft)

    def _append_end(self, draft: Draft) -> Event:
        self.run.engine.append_deferred(self.path)
        event = self.run.emit(draft, durable=self.durable)
        if self.limits is not None:
            self.limits.release_unsent()
        return event

    def closing_draft(
        self,
        ending: str,
        *,
        reason: str | None = None,
        detail: str | None = None,
        output: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
        error: RuntimeErrorBase | None = None,
        times: StepTimes | None = None,
    ) -> Draft:
        """Return the draft of the closing event. If the step never started, it has no members about its call, but
        it has the usage, since gates may have used tokens.
        """
        began = self.action_id is not None
        if began and times is None:
            times = StepTimes.until_now(self._started, self.run.engine.clock)
        members: CallMembers = self._call_members() if began else {}
        payload = ENDINGS[ending](
            step_id=self.path,
            uses=self.uses,
            usage=self._recorded_usage(began),
            reason=reason,
            detail=detail or None,
            output=output,
            error=_step_error_from(error),
            reused_from=None if self.reused_from is None else dict(self.reused_from),
            writes=[write.to_written() for write in writes],
            reads=list(self.reads | self.expression_reads),
            latency_ms=times and times.duration_ms,
            result_artifacts=self._result_artifacts(ending, writes),
            **members,
        )
        return draft_of(
            payload,
            self.run_id,
            step_id=self.path,
            speaker=self.speaker,
            caused_by=self.intent,
            metrics=times and times._asdict(),
        )

    def _recorded_usage(self, began: bool) -> Usage | None:
        """Return the usage for the closing event. A step that never started has none, unless a gate used tokens."""
        return Usage.of(self.usage) if began or any(self.usage.values()) else None

    def _result_artifacts(self, ending: str, writes: Sequence[Write]) -> list[str | WrittenFile]:
        """Return the artifacts that the step wrote. With the ending `done`, the files of its calls are included."""
        files = self._written_files() if ending == "done" else []
        return [*_written_artifacts(writes), *files]

    def _call_members(self) -> CallMembers:
        """Return the members of the closing event of a step that started."""
        return {
            "action_id": self.action_id,
            "kind": self.kind,
            "input_excerpt": excerpt_of_json(self.input, EXCERPT),
            "attempts": self.attempts,
            "capability": self.called_id or None,
            "fallback": self._fallback_use(),
            "tool": self.tool,
        }

    def _written_files(self) -> list[WrittenFile]:
        """Return the files that the step's successful calls wrote, each with its last version."""
        made = (each for each in self.attempts if each.status == "success")
        return list({file.path: file for each in made for file in each.files}.values())

    def _fallback_use(self) -> FallbackUse | None:
        """Return whether a fallback binding was called, or None if the chain has only one binding."""
        if self.chain is None or (len(self.chain.members) == 1 and not self.chain.passed_over):
            return None
        ids = self.chain.binding_ids
        used = any(each.binding_id != ids[0] and each.status != "skipped" for each in self.attempts)
        if used:
            self._note_fallback(ids[0])
        return FallbackUse(fallback_used=used, fallback_chain=ids)

    def _note_fallback(self, first: str) -> None:
        """If a fallback binding answered instead of the binding `first`, add it to the fallbacks of the run tree."""
        last = self.attempts[-1]
        if last.status != "success" or last.binding_id == first:
            return
        failed = [each for each in self.attempts if each.binding_id == first]
        reason = (failed[-1].message or "") if failed else ""
        self.run.engine.fallbacks.append(Fallback(self.path, last.binding_id, first, reason))


def _written_artifacts(writes: Sequence[Write]) -> list[str]:
    """Return the paths below `working.artifacts` that these writes set."""
    targets = (write.target for write in writes)
    return [
        ".".join(target.path[1:])
        for target in targets
        if target.text.startswith("working.artifacts.")
    ]


def _first_present(usage: Any, names: tuple[str, ...]) -> int:
    for name in names:
        if name in usage:
            return int(usage[name])
    return 0


def action_of(intent: str) -> str:
    """Return the id of the action that a `step.started` event begins."""
    return f"act_{intent[3:]}"


def _step_error_from(error: RuntimeErrorBase | None) -> StepError | None:
    if error is None:
        return None
    return StepError(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        hint=error.hint or None,
        reason=error.reason or None,
        effect=error.effect or None,
        say=error.say or None,
    )
