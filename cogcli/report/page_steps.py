"""The steps of a run as a page shows them: input, attempts, output and decisions of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import GateDecided, PolicyDecided
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.run_history import Branch, StepHistory
from cogcli.report.humanize import count_of, duration, error_text
from cogcli.report.page_log import PageLog
from cogcli.report.page_values import PageValue, ValueLimit, json_text, line_of
from cogcli.report.styled_text import UNICODE, style_of
from cogcli.report.tree import flow
from cogcli.specs.unchecked import object_at

MAX_STEPS: Final = 1000
"""The number of steps after which steps with status `done` are hidden."""
_MAX_PARTS: Final = 20
"""The number of listed items of a loop. Those that are not done come first."""


class _ShadowVerdict(Record):
    """The verdict of a rule in shadow mode."""

    rule: str | None = None
    verdict: str | None = None


class _DecidingComparison(Record):
    """A comparison that determined a decision, or a change of its value that would change the
    decision."""

    path: str
    rule: str
    text: str


class _DecisionStage(Record):
    """A stage of a governed call."""

    stage: str
    outcome: str
    reason: str = ""


class DecisionReasons(Record):
    """The reasons of a recorded decision, as `policy explain` prints them
    (docs/reference/pack.md#explain)."""

    compared: list[_DecidingComparison]
    flips: list[_DecidingComparison]
    missing: list[str]
    """Paths without a value."""
    stages: list[_DecisionStage]
    why: str = ""
    """The reason why nothing can be explained."""


class PageAttempt(NamedTuple):
    """One attempt of a call."""

    title: str
    values: list[PageValue]


class PageDecision(NamedTuple):
    """A decision about the call of a step: verdict, stages, and the values that were read and compared."""

    step: str
    capability: str
    verdict: str
    status: str
    sign: str
    reason: str
    facts: list[tuple[str, str]]


class PageIterations(NamedTuple):
    """The items or rounds of a step: counts by status, and a list that starts with unfinished
    ones."""

    total: str
    counts: list[tuple[str, int]]
    listed: list[tuple[str, str, str]]
    """Name, status and error of each listed item."""
    hidden: int


class PageStep(NamedTuple):
    """One step with its details."""

    anchor: str
    id: str
    name: str
    uses: str
    status: str
    sign: str
    tone: str
    time: str
    flow: str
    facts: list[tuple[str, str]]
    error: str
    attempts: list[PageAttempt]
    values: list[PageValue]
    decisions: list[PageDecision]
    parts: PageIterations | None
    below: list[PageStep]
    open: bool


class StepPages:
    """Builds the steps of one page. `explained` contains the reasons of decisions, by `seq`."""

    def __init__(
        self, log: PageLog, limit: ValueLimit, explained: Mapping[int, DecisionReasons], prefix: str
    ) -> None:
        self._log = log
        self._limit = limit
        self._explained = explained
        self._prefix = prefix
        self._count = 0
        self.hidden = 0
        """The number of steps beyond the limit."""

    def steps(self, branches: Sequence[Branch]) -> list[PageStep]:
        """Return the steps of these branches. After `MAX_STEPS` steps, completed ones are counted
        in `hidden`."""
        found = []
        for branch in branches:
            if self._count >= MAX_STEPS and branch.step.status == "done":
                self.hidden += 1
                continue
            self._count += 1
            found.append(self._build_step(branch))
        return found

    def _build_step(self, branch: Branch) -> PageStep:
        run, step, below = branch
        anchor = f"{self._prefix}step-{self._count}"
        path = StepPath(step.id)
        parts = [each for each in below if StepPath(each.step.id).in_loop and not path.in_loop]
        others = [each for each in below if each not in parts]
        decisions = [self.decision(step.id, *each) for each in self._log.decisions.get(step.id, ())]
        place = (run.id or None, step.id)
        ended = line_of(self._log.ended.get(place))
        values = [
            self._limit.value("input", step.input, line_of(self._log.begun.get(place))),
            self._limit.value("output", step.output, ended),
        ]
        return PageStep(
            anchor=anchor, id=step.id, name=step.name, uses=step.uses, status=step.status,
            sign=UNICODE.sign(step.status), tone=style_of(step.status), time=duration(step.ms),
            flow=flow(run, step, UNICODE), facts=list(_step_facts(step)),
            error=error_text(step.error),
            attempts=[self._build_attempt(n, each, ended) for n, each in enumerate(step.attempts, start=1)],
            values=[value for value in values if value], decisions=decisions,
            parts=_summarize_parts(parts) if parts else None, below=self.steps(others),
            open=step.status in ("failed", "vetoed"),
        )  # fmt: skip

    def _build_attempt(self, number: int, attempt: AttemptMade, file_name: str) -> PageAttempt:
        columns = [
            attempt.binding_id,
            attempt.service_id,
            attempt.status,
            attempt.method,
            attempt.url,
        ]
        columns += [f"HTTP {attempt.status_code}"] if attempt.status_code is not None else []
        values = [
            self._limit.value("request", attempt.request, file_name),
            self._limit.value("reply", attempt.reply, file_name),
            self._limit.value("printed", attempt.printed, file_name),
            self._limit.value("stderr", attempt.stderr, file_name),
            self._limit.value("noticed", "\n".join(attempt.notices), file_name),
        ]
        title = f"attempt {number}: " + " · ".join(word for word in columns if word)
        return PageAttempt(title, [value for value in values if value])

    def decision(
        self, step_id: str, event: Event, payload: GateDecided | PolicyDecided
    ) -> PageDecision:
        """Return a decision about a call, with its reason."""
        verdict = payload.verdict or payload.decision
        status = "asks" if verdict in _ASKS else _DECIDED.get(payload.decision, "vetoed")
        decision = PageDecision(
            step=step_id,
            capability="",
            verdict=f"{verdict} {payload.gate or ''}".strip(),
            status=style_of(status),
            sign=UNICODE.sign(status),
            reason=payload.reason or "",
            facts=[],
        )
        if isinstance(payload, GateDecided):
            return decision._replace(facts=list(_facts_of_gate(payload)))
        reasons = self._explained.get(-1 if event.seq is None else event.seq)
        return decision._replace(
            capability=payload.capability or "",
            reason=payload.rule or decision.reason,
            facts=list(_facts_of_policy(payload, reasons or read_record(DecisionReasons, None))),
        )


_ASKS: Final = ("allow_with_gate", "escalate")
_DECIDED: Final = {"allow": "done", "audit": "warning"}


def _explain_comparisons(reasons: DecisionReasons) -> Iterator[tuple[str, str]]:
    """Yield the comparisons that decided, with threshold and value."""
    flips = {(each.path, each.rule): each.text for each in reasons.flips}
    for each in reasons.compared:
        flip = flips.get((each.path, each.rule))
        yield "decided by", each.text + (f"; {flip}" if flip else "")
    if reasons.why:
        yield "decided by", f"cannot be told: {reasons.why}"


def _facts_of_gate(payload: GateDecided) -> Iterator[tuple[str, str]]:
    if payload.on_fail:
        yield "on fail", payload.on_fail
    if not payload.enforced:
        yield "enforced", "no"


def _facts_of_policy(payload: PolicyDecided, reasons: DecisionReasons) -> Iterator[tuple[str, str]]:
    """Yield the comparisons, the values that were read, the matched rules and obligations, and the stages in order."""
    yield from _explain_comparisons(reasons)
    for path, value in object_at(payload.reads).items():
        yield "read", f"{path} = {json_text(value)}"
    for path in reasons.missing:
        yield "missing", path
    yield from _matched_rules(payload)
    if not payload.enforced:
        yield "enforced", "no"
    stages = [
        f"{each.stage} {each.outcome}" + (f" ({each.reason})" if each.reason else "")
        for each in reasons.stages
    ]
    if stages:
        yield "stages", " → ".join(stages)


def _matched_rules(payload: PolicyDecided) -> Iterator[tuple[str, str]]:
    """Yield the rules that matched, their obligations, and the verdicts of rules in shadow mode."""
    for name, words in (("matched", payload.matched), ("obligations", payload.obligations)):
        if words:
            yield name, ", ".join(words)
    for each in payload.would or ():
        shadow = read_record(_ShadowVerdict, each)
        yield "would", f"{shadow.rule}: {shadow.verdict} (shadow)"


def _step_facts(step: StepHistory) -> Iterator[tuple[str, str]]:
    pairs = {
        "binding": step.binding + (" (fallback)" if step.fallback else ""),
        "tool": step.tool,
        "reads": ", ".join(step.reads),
        "writes": ", ".join(step.writes),
        "waits for": ", ".join(step.depends_on),
        "effects": step.effect if step.effect not in ("", "none") else "",
        "started": step.started_at,
        "tokens": f"{step.tokens[0]} in, {step.tokens[1]} out" if step.tokens else "",
        "reused": "its result was taken over from another episode" if step.reused else "",
    }
    yield from ((name, text) for name, text in pairs.items() if text)


def _summarize_parts(parts: Sequence[Branch]) -> PageIterations:
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.step.status] = counts.get(part.step.status, 0) + 1
    first = [each.step for each in parts if each.step.status != "done"]
    rest = [each.step for each in parts if each.step.status == "done"]
    listed = [
        (step.name, step.status, error_text(step.error) or step.reason)
        for step in (*first, *rest)[:_MAX_PARTS]
    ]
    word = "item" if StepPath(parts[0].step.id).in_loop else "part"
    return PageIterations(
        count_of(len(parts), word), list(counts.items()), listed, len(parts) - len(listed)
    )
