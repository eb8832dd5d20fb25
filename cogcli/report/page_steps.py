"""The steps of a run as a page shows them: input, attempts, output and decisions of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import GateDecided, PolicyDecided
from cogcli.episode.run_history import Branch, StepHistory
from cogcli.report.humanize import count_of, duration, error_text
from cogcli.report.page_log import PageLog
from cogcli.report.page_values import PageValue, ValueLimit, json_text, line_of
from cogcli.report.styled_text import UNICODE, style_of
from cogcli.report.tree import flow

MOST_STEPS: Final = 1000
"""The number of steps after which steps with status `done` are hidden."""
_MOST_PARTS: Final = 20
"""The number of listed items of a loop. Those that are not done come first."""


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


class PageParts(NamedTuple):
    """The items or rounds of a step: counts by status, and a list with unfinished ones first."""

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
    parts: PageParts | None
    below: list[PageStep]
    open: bool


class StepPages:
    """Builds the steps of one page. `explained` holds by `seq` of a decision the reason for it."""

    def __init__(
        self, log: PageLog, limit: ValueLimit, explained: Mapping[int, dict[str, Any]], prefix: str
    ) -> None:
        self._log = log
        self._limit = limit
        self._explained = explained
        self._prefix = prefix
        self._count = 0
        self.hidden = 0
        """The number of steps beyond the limit."""

    def steps(self, branches: Sequence[Branch]) -> list[PageStep]:
        """Return the steps of these branches."""
        found = []
        for branch in branches:
            if self._count >= MOST_STEPS and branch.step.status == "done":
                self.hidden += 1
                continue
            self._count += 1
            found.append(self._step(branch))
        return found

    def _step(self, branch: Branch) -> PageStep:
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
            attempts=[self._attempt(n, each, ended) for n, each in enumerate(step.attempts, start=1)],
            values=[value for value in values if value], decisions=decisions,
            parts=_summarize_parts(parts) if parts else None, below=self.steps(others),
            open=step.status in ("failed", "vetoed"),
        )  # fmt: skip

    def _attempt(self, number: int, attempt: AttemptMade, where: str) -> PageAttempt:
        words = [
            attempt.binding_id,
            attempt.service_id,
            attempt.status,
            attempt.method,
            attempt.url,
        ]
        words += [f"HTTP {attempt.status_code}"] if attempt.status_code is not None else []
        values = [
            self._limit.value("request", attempt.request, where),
            self._limit.value("reply", attempt.reply, where),
            self._limit.value("printed", attempt.printed, where),
            self._limit.value("stderr", attempt.stderr, where),
            self._limit.value("noticed", "\n".join(attempt.notices), where),
        ]
        title = f"attempt {number}: " + " · ".join(word for word in words if word)
        return PageAttempt(title, [value for value in values if value])

    def decision(
        self, step_id: str, event: Event, payload: GateDecided | PolicyDecided
    ) -> PageDecision:
        """Return a decision about a call, with its reason."""
        explained = {} if event.seq is None else self._explained.get(event.seq, {})
        by_policy = payload if isinstance(payload, PolicyDecided) else None
        verdict = payload.verdict or payload.decision
        status = "asks" if verdict in _ASKS else _DECIDED.get(payload.decision, "vetoed")
        return PageDecision(
            step=step_id,
            capability=(by_policy.capability or "") if by_policy else "",
            verdict=f"{verdict} {payload.gate or ''}".strip(),
            status=style_of(status),
            sign=UNICODE.sign(status),
            reason=(by_policy and by_policy.rule) or payload.reason or "",
            facts=[*_explanations(explained), *_facts_of_decision(payload, explained)],
        )


_ASKS: Final = ("allow_with_gate", "escalate")
_DECIDED: Final = {"allow": "done", "audit": "warning"}


def _explanations(explained: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the comparisons that decided, with threshold and value."""
    flips = {(each["path"], each["rule"]): each["text"] for each in explained.get("flips", ())}
    for each in explained.get("compared", ()):
        flip = flips.get((each["path"], each["rule"]))
        yield "decided by", each["text"] + (f"; {flip}" if flip else "")
    if why := explained.get("why"):
        yield "decided by", f"cannot be told: {why}"


def _facts_of_decision(
    payload: GateDecided | PolicyDecided, explained: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the values that were read, the matched rules and obligations, and the stages in order."""
    by_policy = payload if isinstance(payload, PolicyDecided) else None
    if by_policy and isinstance(by_policy.reads, dict):
        for path, value in by_policy.reads.items():
            yield "read", f"{path} = {json_text(value)}"
    for path in explained.get("missing", ()):
        yield "missing", str(path)
    if by_policy:
        yield from _matched_rules(by_policy)
    if isinstance(payload, GateDecided) and payload.on_fail:
        yield "on fail", payload.on_fail
    if not payload.enforced:
        yield "enforced", "no"
    stages = [
        f"{each['stage']} {each['outcome']}"
        + (f" ({each['reason']})" if each.get("reason") else "")
        for each in explained.get("stages", ())
    ]
    if stages:
        yield "stages", " → ".join(stages)


def _matched_rules(payload: PolicyDecided) -> Iterator[tuple[str, str]]:
    """Yield the rules that matched, their obligations, and the verdicts of rules in shadow mode."""
    for name, words in (("matched", payload.matched), ("obligations", payload.obligations)):
        if words:
            yield name, ", ".join(words)
    for each in payload.would or ():
        yield "would", f"{each.get('rule')}: {each.get('verdict')} (shadow)"


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


def _summarize_parts(parts: Sequence[Branch]) -> PageParts:
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.step.status] = counts.get(part.step.status, 0) + 1
    first = [each.step for each in parts if each.step.status != "done"]
    rest = [each.step for each in parts if each.step.status == "done"]
    listed = [
        (step.name, step.status, error_text(step.error) or step.reason)
        for step in (*first, *rest)[:_MOST_PARTS]
    ]
    word = "item" if StepPath(parts[0].step.id).in_loop else "part"
    return PageParts(
        count_of(len(parts), word), list(counts.items()), listed, len(parts) - len(listed)
    )
