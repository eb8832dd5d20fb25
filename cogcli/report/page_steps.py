"""The steps of a run as a page shows them: what each was given, asked, got and gave, and what was decided of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.core.step_path import StepPath
from cogcli.report.humanize import count_of, duration, error_text
from cogcli.report.page_log import PageLog
from cogcli.report.page_values import PageValue, ValueLimit, json_text, line_of
from cogcli.report.run_view import Branch, StepView
from cogcli.report.styled_text import UNICODE, style_of
from cogcli.report.tree import flow

MOST_STEPS: Final = 1000
"""Steps that are shown in full; what failed comes before what did not."""
_MOST_PARTS: Final = 20
"""Items of a loop that are listed, those that were not done first."""


class PageAttempt(NamedTuple):
    """One attempt of a call."""

    title: str
    values: list[PageValue]


class PageDecision(NamedTuple):
    """A decision about the call of a step: what was said, the stages it passed, what was read and compared."""

    step: str
    capability: str
    verdict: str
    status: str
    sign: str
    reason: str
    facts: list[tuple[str, str]]


class PageParts(NamedTuple):
    """The items or rounds of a step: how many ended how, and those that were not done."""

    total: str
    counts: list[tuple[str, int]]
    listed: list[tuple[str, str, str]]
    """Name, status and error of each that is listed."""
    hidden: int


class PageStep(NamedTuple):
    """One step and what is shown under it."""

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
    """Builds the steps of one page; `explained` says by the `seq` of a decision why it was made."""

    def __init__(
        self, log: PageLog, limit: ValueLimit, explained: Mapping[int, dict[str, Any]], prefix: str
    ) -> None:
        self._log = log
        self._limit = limit
        self._explained = explained
        self._prefix = prefix
        self._count = 0
        self.hidden = 0
        """Steps that are too many to show."""

    def steps(self, branches: Sequence[Branch]) -> list[PageStep]:
        """The steps of these branches."""
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
            flow=flow(run, step, UNICODE), facts=list(_facts(step)),
            error=error_text(step.error) if step.error else "",
            attempts=[self._attempt(n, each, ended) for n, each in enumerate(step.attempts, start=1)],
            values=[value for value in values if value], decisions=decisions,
            parts=_parts(parts) if parts else None, below=self.steps(others),
            open=step.status in ("failed", "vetoed"),
        )  # fmt: skip

    def _attempt(self, number: int, attempt: dict[str, Any], where: str) -> PageAttempt:
        words = [
            text_of(attempt.get(name)) for name in ("binding_id", "service_id", "status", "method", "url")
        ]
        code = attempt.get("status_code")
        words += [f"HTTP {code}"] if type(code) is int else []
        named = {name: attempt.get(name) for name in ("request", "reply", "printed", "stderr")}
        named["noticed"] = "\n".join(map(str, list_of(attempt.get("notices"))))
        values = [self._limit.value(word, value, where) for word, value in named.items()]
        title = f"attempt {number}: " + " · ".join(word for word in words if word)
        return PageAttempt(title, [value for value in values if value])

    def decision(self, step_id: str, event: Any, payload: dict[str, Any]) -> PageDecision:
        """What was decided of a call, and why."""
        told = object_of(self._explained.get(event.seq))
        verdict = text_of(payload.get("verdict")) or text_of(payload.get("decision"))
        gate = text_of(payload.get("gate"))
        reason = text_of(payload.get("rule")) or text_of(payload.get("reason"))
        status = _DECIDED.get(text_of(payload.get("decision")), "vetoed")
        status = "asks" if verdict in _ASKS else status
        return PageDecision(
            step=step_id, capability=text_of(payload.get("capability")), verdict=f"{verdict} {gate}".strip(),
            status=style_of(status), sign=UNICODE.sign(status), reason=reason, facts=list(_reasons(payload, told)),
        )  # fmt: skip


_ASKS: Final = ("allow_with_gate", "escalate")
_DECIDED: Final = {"allow": "done", "audit": "warning"}


def _reasons(payload: dict[str, Any], told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Which comparison decided, with threshold and value; what was read; the stages in order."""
    flips = {(each["path"], each["rule"]): each["text"] for each in told.get("flips", ())}
    for each in told.get("compared", ()):
        flip = flips.get((each["path"], each["rule"]))
        yield "decided by", each["text"] + (f"; {flip}" if flip else "")
    if why := told.get("why"):
        yield "decided by", f"cannot be told: {why}"
    for path, value in object_of(payload.get("reads")).items():
        yield "read", f"{path} = {json_text(value)}"
    for name in ("missing",):
        yield from (("missing", str(path)) for path in told.get(name, ()))
    for name in ("matched", "obligations"):
        if words := ", ".join(map(str, list_of(payload.get(name)))):
            yield name, words
    for each in map(object_of, list_of(payload.get("would"))):
        yield "would", f"{each.get('rule')}: {each.get('verdict')} (shadow)"
    if on_fail := text_of(payload.get("on_fail")):
        yield "on fail", on_fail
    if payload.get("enforced") is False:
        yield "enforced", "no"
    stages = [
        f"{each['stage']} {each['outcome']}" + (f" ({each['reason']})" if each.get("reason") else "")
        for each in told.get("stages", ())
    ]
    if stages:
        yield "stages", " → ".join(stages)


def _facts(step: StepView) -> Iterator[tuple[str, str]]:
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


def _parts(parts: Sequence[Branch]) -> PageParts:
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.step.status] = counts.get(part.step.status, 0) + 1
    first = [each.step for each in parts if each.step.status != "done"]
    rest = [each.step for each in parts if each.step.status == "done"]
    listed = [
        (step.name, step.status, error_text(step.error) if step.error else step.reason)
        for step in (*first, *rest)[:_MOST_PARTS]
    ]
    word = "item" if StepPath(parts[0].step.id).in_loop else "part"
    return PageParts(count_of(len(parts), word), list(counts.items()), listed, len(parts) - len(listed))
