"""What a step did: collected while it runs, for its closing event."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from cogcli.core.calls import BindingChain, Member, Siblings
from cogcli.core.canonical import span_of, trace_of
from cogcli.core.errors import EffectInDoubtError, RuntimeErrorBase
from cogcli.core.step_path import StepPath
from cogcli.engine.context import Fallback, Run
from cogcli.engine.outcome import status_of
from cogcli.engine.plan import PlannedStep
from cogcli.engine.tasks import Cancelled, Effects, Sleep
from cogcli.events import build
from cogcli.events.envelope import Draft, Event
from cogcli.mapping.apply import Write
from cogcli.specs.capability import Capability

_EXCERPT: Final = 200
_TOKENS_IN: Final = ("input_tokens", "prompt_tokens")
_TOKENS_OUT: Final = ("output_tokens", "completion_tokens")


def no_usage() -> dict[str, int]:
    """Usage of a step that called nothing."""
    return {"llm_calls": 0, "tool_calls": 0, "tokens_in": 0, "tokens_out": 0}


class StepRecord:
    """What one step, or one gate, item or target in it, did: reads, attempts, usage, times."""

    def __init__(self, run: Run, path: str, uses: str, capability: Capability | None, kind: str) -> None:
        self.run = run
        self.path = path
        self.uses = uses
        self.capability = capability
        self.kind = kind
        self.reads: dict[str, None] = {}
        self.expression_reads: dict[str, None] = {}
        """References in expressions; they come after those of the input."""
        self.reused_from: Mapping[str, str] | None = None
        """The episode and event whose result was taken over, if one was."""
        self.idempotency_key = f"{run.state.run_id}:{path}"
        """The idempotency key of its calls."""
        self.round: int | None = None
        """Which round of a `while` step this is, from 0."""
        self.siblings: Siblings | None = None
        """The invocations of the same foreach that this one's calls may go out with."""
        self.effect_left = False
        """Whether something that must not happen twice may have happened."""
        self.in_doubt: EffectInDoubtError | None = None
        """An effect of one of this step's invocations that may have happened."""
        self._begun = 0
        self._attempts_answered = 0
        """Number of attempts when `step.answered` was last appended."""
        self._repeats: dict[str, Any] | None = None
        self.input: dict[str, Any] | None = None
        self.member: Member | None = None
        self.chain: BindingChain | None = None
        self.attempts: list[dict[str, Any]] = []
        """The entries of the closing event, bindings that were passed over included."""
        self.usage = no_usage()
        self.action_id: str | None = None
        self._part_tools = set[str]()
        """What the parts of the step called."""
        self.durable = False
        self.intent: str | None = None
        """The id of the `step.started` event."""
        self.decision: dict[str, str] | None = None
        """What the policy of the run said, as `step.started` names it; None for the default one."""
        self._started_at = run.engine.clock.now()
        self._started = run.engine.clock.monotonic()

    @classmethod
    def of_step(cls, run: Run, planned: PlannedStep) -> StepRecord:
        """The record of a step that begins now."""
        step = planned.step
        return cls(run, run.path(step.id), step.uses, planned.capability, planned.kind)

    @property
    def speaker(self) -> str:
        """The `speaker` of this step's events: its binding id, else `system`."""
        return self.member.binding_id if self.member else "system"

    def part(self, planned: PlannedStep, name: int | str) -> StepRecord:
        """The record of an item or round by its number, or of a target by its name, that begins now."""
        path = StepPath(self.path).item(name)
        return StepRecord(self.run, path, self.uses, planned.capability, planned.kind)

    def add_part(self, inner: StepRecord) -> None:
        """Take over what an item, a round or a target read, used and left behind."""
        self.add_usage(inner.usage)
        self.reads |= inner.reads
        self.expression_reads |= inner.expression_reads
        self.effect_left |= inner.effect_left
        self.durable |= inner.durable
        if inner.action_id:
            self._part_tools.add(inner.tool)

    @property
    def tool(self) -> str:
        """What the step called: `protocol:service`, else the nested skill; of a loop what its parts called, by commas;
        what it names if nothing was called."""
        if self.member is not None:
            return f"{self.member.protocol}:{self.member.service_id}"
        return ", ".join(sorted(self._part_tools)) or self.uses

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return self.run.state.run_id

    @property
    def called_id(self) -> str:
        """The capability that is called, empty for a nested skill."""
        return self.capability.id if self.capability else ""

    @property
    def attempts_made(self) -> int:
        """Number of attempts, bindings passed over not counted."""
        return sum(attempt["status"] != "skipped" for attempt in self.attempts)

    @property
    def last_made(self) -> dict[str, Any]:
        """The last attempt that was made. Only called after one was."""
        return next(attempt for attempt in reversed(self.attempts) if attempt["status"] != "skipped")

    def wait(self, seconds: float) -> Effects:
        """Wait before the next attempt. Over a log that has it this is over; one cut off there is so again."""
        dispatcher, position = self.run.engine.dispatcher, None
        if dispatcher is not None:
            number = 1 + (self.attempts_made if self.attempts else self._begun)
            if dispatcher.is_repeated(self.run_id, self.path, number):
                return
            position = dispatcher.ended_at(self.run_id, self.path)
        yield Sleep(time.monotonic() + seconds, position)

    def traceparent(self, attempt: int) -> str:
        """The W3C header of an attempt: its span is known before it leaves (docs/reference/protocols.md#export)."""
        if self.intent is None:
            return ""
        return f"00-{trace_of(self.run.state.trace_id)}-{span_of(self.intent, attempt)}-01"

    def set_target(self, uses: str, capability: Capability | None, values: dict[str, Any]) -> None:
        """Set what is called next: the text of `uses`, the capability (None for a nested skill), the input."""
        self.uses = uses
        self.capability = capability
        self.input = values

    def note_effect(self) -> None:
        """Note a call that must not be repeated: neither this step nor one around its run retries then."""
        self.effect_left = self.run.effect_left = True

    def schedule_repeat(self, wait: float, error: RuntimeErrorBase) -> None:
        """The next intent is a retry by the step itself because of this error, after `wait` seconds."""
        self._repeats = {
            "reason": "retry",
            "wait_ms": round(wait * 1000),
            "error": {"code": error.code, "message": error.message, "left": error.left},
        }

    def begin(self, payload: dict[str, Any], *, durable: bool = False) -> None:
        """Append `step.started`, or `call.retried` where the step repeats its call. `durable`: synced to disk."""
        self._begun += 1
        if self._repeats is not None:
            number = self.attempts_made + 1 if self.attempts else self._begun
            target = {"binding": payload.get("binding"), "service": payload.get("service")}
            again = {"attempt": number, **target, **self._repeats}
            draft = build.call_retried(self.run_id, self.path, payload=again, speaker=self.speaker)
            self.run.emit(draft, durable=durable)
            return
        self.durable = durable
        body = {"uses": self.uses, **payload, "input": self.input, "reads": list(self.reads)}
        if self.round is not None:
            body["round"] = self.round
        draft = build.step_started(self.run_id, self.path, speaker=self.speaker, payload=body)
        event = self.run.emit(draft, durable=durable)
        self.intent = event.id
        self.action_id = f"act_{event.id[3:]}"

    def append_answer(self, output: dict[str, Any]) -> None:
        """Append `step.answered`, once per attempt: for a result that waits, or that no closing event will have."""
        if self._attempts_answered == len(self.attempts):
            return
        self._attempts_answered = len(self.attempts)
        attempts = list(self.attempts)
        draft = build.step_answered(
            self.run_id, self.path, output=output, attempts=attempts, speaker=self.speaker
        )
        self.run.emit(draft, durable=self.durable)

    def count_call(self, usage: Mapping[str, int] | None) -> None:
        """Count an attempt to which a reply came, with the usage that this reported."""
        self.usage["llm_calls" if usage else "tool_calls"] += 1
        if usage:
            self.usage["tokens_in"] += _first(usage, _TOKENS_IN)
            self.usage["tokens_out"] += _first(usage, _TOKENS_OUT)

    def add_usage(self, usage: dict[str, int]) -> None:
        """Take over what a child run or a gate used."""
        for key, value in usage.items():
            self.usage[key] += value

    def locate(self, error: RuntimeErrorBase) -> None:
        """Fill in where an error arose; what it has already stays."""
        error.step_id = error.step_id or self.path
        error.run_id = error.run_id or self.run_id
        error.skill_id = error.skill_id or self.run.state.skill_id
        error.attempts = error.attempts or list(self.attempts)
        if self.capability is not None:
            error.capability_id = error.capability_id or self.capability.id
        if self.member is not None:
            error.binding_id = error.binding_id or self.member.binding_id
            error.service_id = error.service_id or self.member.service_id

    def fail(self, error: RuntimeErrorBase) -> Event | None:
        """Close by an error, which is located here; None where it waits for a person: then nothing closes."""
        self.locate(error)
        engine = self.run.engine
        if isinstance(error, EffectInDoubtError):
            engine.in_doubt = engine.in_doubt or error
        status = status_of(error)
        return None if status == "pending" else self.finish(status, reason=error.code, error=error)

    def cut_off(self, cut: Cancelled) -> Event | None:
        """Close as cancelled. From outside the end is held back: of a run that waits the step stays open, and whoever
        goes on begins it again."""
        draft = self._end("skipped", {"reason": "cancelled"})
        if not cut.outside:
            return self._append_end(draft)
        self.run.hold(self.path, draft, durable=self.durable)
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
    ) -> Event:
        """Append the closing event and give it; on resume and replay the recorded one."""
        failure = error_payload(error) if error else None
        members = {"reason": reason, "detail": detail or None, "output": output, "error": failure}
        return self._append_end(self._end(ending, members, writes or ()))

    def _append_end(self, draft: Draft) -> Event:
        self.run.engine.append_held(self.path)
        return self.run.emit(draft, durable=self.durable)

    def _end(self, ending: str, members: Mapping[str, Any], writes: Sequence[Write] = ()) -> Draft:
        """The closing event; members that are None are left out."""
        payload: dict[str, Any] = {"uses": self.uses}
        if self.action_id:
            payload = self._call_members()
        elif any(self.usage.values()):  # it never began; its gates may have
            payload["usage"] = self.usage
        payload.update((name, value) for name, value in members.items() if value is not None)
        if self.reused_from is not None:
            payload["reused_from"] = dict(self.reused_from)
        payload["writes"] = [write.to_payload() for write in writes]
        payload["reads"] = list(self.reads | self.expression_reads)
        payload["latency_ms"], metrics = self._timing()
        artifacts = [w.target.path for w in writes if w.target.text.startswith("working.artifacts.")]
        payload["result_artifacts"] = [".".join(path[1:]) for path in artifacts]
        return build.step_finished(
            self.run_id,
            self.path,
            ending=ending,
            speaker=self.speaker,
            payload=payload,
            metrics=metrics,
            caused_by=self.intent,
        )

    def _call_members(self) -> dict[str, Any]:
        """The members of a closing event that only a step which began has."""
        payload: dict[str, Any] = {
            "uses": self.uses,
            "action_id": self.action_id,
            "kind": self.kind,
            "input_excerpt": excerpt(self.input),
            "attempts": self.attempts,
            "usage": self.usage,
        }
        if self.capability is not None:
            payload["capability"] = self.capability.id
        if self.chain is not None and (len(self.chain.members) > 1 or self.chain.passed_over):
            ids = self.chain.binding_ids
            used = any(each["binding_id"] != ids[0] and each["status"] != "skipped" for each in self.attempts)
            payload["fallback"] = {"fallback_used": used, "fallback_chain": ids}
            if used:
                self._note_fallback(ids[0])
        payload["tool"] = self.tool
        return payload

    def _note_fallback(self, first: str) -> None:
        """Note the binding that answered instead of the first one; nothing if no binding answered."""
        last = self.attempts[-1]
        if last["status"] != "success" or last["binding_id"] == first:
            return
        failed = [each for each in self.attempts if each["binding_id"] == first]
        reason = failed[-1]["message"] if failed else ""
        self.run.engine.fallbacks.append(Fallback(self.path, last["binding_id"], first, reason))

    def _timing(self) -> tuple[int | None, dict[str, Any] | None]:
        if self.action_id is None:
            return None, None
        clock = self.run.engine.clock
        took = max(0, round((clock.monotonic() - self._started) * 1000))
        return took, {"started_at": self._started_at, "completed_at": clock.now(), "duration_ms": took}


def _first(usage: Any, names: tuple[str, ...]) -> int:
    for name in names:
        if name in usage:
            return int(usage[name])
    return 0


def excerpt(value: Any) -> str:
    """A value's JSON, cut at 200 characters."""
    return orjson.dumps(value)[: _EXCERPT * 4].decode(errors="ignore")[:_EXCERPT]


def error_payload(error: RuntimeErrorBase) -> dict[str, Any]:
    """The `error` object of a closing event."""
    payload = {"code": error.code, "message": error.message, "retryable": error.retryable}
    told = {"hint": error.hint, "reason": error.reason, "effect": error.effect}
    return payload | {name: text for name, text in told.items() if text}
