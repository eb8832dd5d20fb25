"""One episode as a page (docs/reference/command-line.md#page): the content of its log in a reader's order.

Pure: the same episode gives the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted
from cogcli.declarations.governance_events import Approval
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedPolicy, RunPins
from cogcli.declarations.shared_events import RecordedPermissions
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History, describe_system_user
from cogcli.episode.layout import Finding
from cogcli.episode.manifest import NamedFile
from cogcli.episode.run_history import RunHistory
from cogcli.report.approval_view import view_payload
from cogcli.report.event_lines import EventLines
from cogcli.report.humanize import duration, short_trace, size
from cogcli.report.lineage import DeclaredPlaces, Lineage, rows, targets
from cogcli.report.page_drawings import lineage_of, timeline_of
from cogcli.report.page_error import PageError, error_of
from cogcli.report.page_log import PageLog, RequestAndAnswer
from cogcli.report.page_steps import DecisionReasons, PageDecision, PageStep, StepPages
from cogcli.report.page_turns import PageTurn, turns_of
from cogcli.report.page_values import PageValue, ValueLimit
from cogcli.report.styled_text import UNICODE, outcome_style, plain_text, style_of
from cogcli.report.tree import decision_text, footer
from cogcli.report.unfinished_runs import UnfinishedState, describe

MAX_EVENTS: Final = 500
_MAX_TARGETS: Final = 200
_SEVERITIES: Final = {"error": "failed", "warning": "warning", "info": "skipped"}


class PageSource(NamedTuple):
    """The data of one episode after reading and verification."""

    name: str
    status: str
    events: Sequence[Event]
    fold: History
    unfinished: UnfinishedState
    declared: DeclaredPlaces
    specs: Json
    """The pinned specs by `kind:id`, each with its `file`. Empty if the episode does not keep them."""
    findings: Sequence[Finding]
    level: str
    proves: str
    files: Sequence[NamedFile]
    """The files in the manifest. Empty before the episode is sealed."""
    head: str
    explained: Sequence[Json]
    """For a governed run: the reason for each decision."""
    meaning: str
    """The meaning of the run's error code."""
    warnings: Sequence[str]
    """Messages about unreadable parts."""
    next: Sequence[str]
    """Commands that continue the run or show more."""
    sealed: bool = True
    """Whether all files were written. False for a run that ended while its process died."""
    fault: str = ""
    """The first file that disagrees with the others, and how. Empty if all agree."""
    fault_status: str = ""
    """With a fault: `altered` or `unsealed`."""

    @property
    def shown_status(self) -> str:
        """Return the status on the page: the status in the log, unless the files contradict each
        other."""
        return (
            f"{self.fault_status}, the log says {self.status}" if self.fault_status else self.status
        )

    @property
    def is_open(self) -> bool:
        """Whether the run has not ended, or is not sealed."""
        return self.unsealed or self.status in ("running", "pending", "interrupted")

    @property
    def unsealed(self) -> bool:
        """Whether the run has ended without a manifest, because of a crash during sealing."""
        return not self.sealed and self.status not in ("running", "pending", "interrupted")


class PageEvent(NamedTuple):
    """One event as a line: its position in the log, its time of day, its type and its details."""

    number: int
    time: str
    type: str
    words: str


class PageApproval(NamedTuple):
    """A request to a person, and its answer."""

    what: str
    step: str
    tone: str
    word: str
    facts: list[tuple[str, str]]


class Page(NamedTuple):
    """All data of one episode that the template displays."""

    anchor: str
    title: str
    version: str
    task: str
    status: str
    outcome: str
    sign: str
    tone: str
    facts: list[tuple[str, str]]
    chips: list[str]
    notice_title: str
    notices: list[tuple[str, str]]
    """Conditions that keep the run from ending, and unreadable parts. A word and a sentence each."""
    error: PageError | None
    next: list[str]
    decision: str
    outputs: list[PageValue]
    inputs: list[PageValue]
    timeline: str
    lineage: str
    targets: list[Json]
    steps: list[PageStep]
    hidden_steps: int
    turns: list[PageTurn]
    approvals: list[PageApproval]
    decisions: list[PageDecision]
    events: list[PageEvent]
    hidden_events: int
    level: str
    proves: str
    level_tone: str
    findings: list[tuple[str, str, str]]
    """Tone, code and message of each finding."""
    files: list[tuple[str, str, str]]
    """Name, size and hash of each file."""
    hashes: list[tuple[str, str]]


def page_of(source: PageSource, limit: ValueLimit, *, prefix: str = "") -> Page:
    """Return the page of an episode. `prefix` keeps the anchors of several episodes distinct."""
    fold, log = source.fold, PageLog(source.events)
    explanations = {each["seq"]: read_record(DecisionReasons, each) for each in source.explained}
    run = fold.root or RunHistory("")
    steps = StepPages(log, limit, explanations, prefix)
    shown = steps.steps(fold.branches())
    flow = Lineage(source.events)
    places = targets(fold, flow, source.declared)
    task = run.start.task if run.start else ""
    word = source.shown_status.partition(",")[0]
    return Page(
        anchor=f"{prefix}top", title=run.skill or task or "run", version=run.version,
        task=task, status=source.shown_status, outcome=_OUTCOMES.get(word, word),
        sign=UNICODE.outcome(word), tone=outcome_style(word), facts=_fact_rows(source, run),
        chips=_status_chips(fold, run), notices=_notice_rows(source),
        notice_title=_notice_title(source),
        error=error_of(run, source.specs, source.meaning), next=list(source.next), decision=decision_text(fold),
        outputs=limit.members(run.outputs, "state.json"),
        inputs=limit.members(run.inputs, "events.jsonl, line 1"),
        timeline=timeline_of(fold, f"{prefix}timeline"),
        lineage=lineage_of(fold, flow, places, source.declared, f"{prefix}lineage"),
        targets=rows(places)[:_MAX_TARGETS], steps=shown, hidden_steps=steps.hidden, turns=turns_of(fold, log, limit),
        approvals=_page_approvals(log), decisions=_page_decisions(log, steps), events=_page_events(source.events),
        hidden_events=max(0, len(source.events) - MAX_EVENTS), level=source.level, proves=source.proves,
        level_tone=style_of(_LEVELS.get(source.level, "warning")),
        findings=[(style_of(_SEVERITIES[each.severity]), each.code, _with_place(each)) for each in source.findings],
        files=[(each.name, size(each.size or 0), each.sha256) for each in source.files],
        hashes=_hash_rows(source, run),
    )  # fmt: skip


_OUTCOMES: Final = {
    "ok": "Finished", "error": "Failed", "partial": "Finished in part", "vetoed": "Refused", "aborted": "Aborted",
    "pending": "Waits for a person", "running": "Still running", "interrupted": "Interrupted, not finalised",
    "altered": "Altered", "unsealed": "Ended, not sealed",
}  # fmt: skip
_LEVELS: Final = {"altered": "failed", "consistent": "done", "signed": "done", "anchored": "done"}


def _fact_rows(source: PageSource, run: RunHistory) -> list[tuple[str, str]]:
    start = run.start or read_record(RunStarted, {})
    policy = read_record(RecordedPolicy, start.policy)
    pairs = {
        "started": _format_time(run.started_at),
        "took": duration(source.fold.ms),
        "episode": source.fold.episode_id or source.name,
        "trace": short_trace(source.fold.trace_id),
        "pack": policy.pack.partition("#sha256:")[0],
        "shadow": "no rule of the pack was enforced" if policy.shadow else "",
        "intent": policy.intent,
        "user": policy.user,
        "trust": read_record(RecordedPermissions, start.options).trust_level or "",
        "seed": str(start.seed) if start.seed else "",
        "tags": ", ".join(f"{name}={value}" for name, value in start.tags.items()),
    }
    return [(name, text) for name, text in pairs.items() if text]


def _format_time(timestamp: str) -> str:
    """Return `2026-11-20 22:54:22 UTC` for a timestamp in cogcli's format. Other timestamps are unchanged."""
    return f"{timestamp[:10]} {timestamp[11:19]} UTC" if timestamp[10:11] == "T" else timestamp


def _status_chips(fold: History, run: RunHistory) -> list[str]:
    counted = [f"{run.count('done')} of {len(run.own)} steps done"] if run.own else []
    for status in ("failed", "skipped", "vetoed"):
        counted += [f"{run.count(status)} {status}"] if run.count(status) else []
    return [*counted, *plain_text(footer(fold, UNICODE)).split(f" {UNICODE.dot} ")]


def _notice_title(source: PageSource) -> str:
    if source.fault_status == "altered":
        return "Altered"
    if source.is_open:
        return "Not finished"
    return "Not whole" if source.warnings else "Next"


def _notice_rows(source: PageSource) -> list[tuple[str, str]]:
    found = [("not whole", text) for text in source.warnings]
    if source.status == "running":
        found.append(
            ("running", "this run goes on: the page shows what its log held when it was made")
        )
    if source.status == "interrupted":
        found.append(
            (
                "interrupted",
                "its process ended before the run did; `cogcli resume` continues with it",
            )
        )
    if source.fault_status == "altered":
        found.append(("altered", f"{source.fault}: `cogcli verify` says what each file should be"))
    elif source.unsealed:
        found.append(
            ("unsealed", "the run has ended, but its process died before everything was written")
        )
    return found + describe(source.unfinished, source.fold.last, _format_time)


def _page_approvals(log: PageLog) -> list[PageApproval]:
    return [_page_approval(exchange) for exchange in log.approvals.values()]


def _page_approval(exchange: RequestAndAnswer) -> PageApproval:
    request, word = exchange.request, exchange.answer or "waits"
    # The page has no clock: whether the request has expired is seen by its time.
    view = view_payload(request, exchange.asked_at)
    pairs: list[tuple[str, str | None]] = [
        *view.rows(with_answers=exchange.reply is None),
        ("asked", _format_time(exchange.asked_at)),
        ("answered", _format_time(exchange.answered_at)),
        *_reply_pairs(exchange.reply).items(),
    ]
    return PageApproval(
        what=request.capability or request.gate or "approval",
        step=request.step_id or "",
        tone=style_of(_ANSWERS.get(word, "asks")),
        word=word,
        facts=[(name, text) for name, text in pairs if text],
    )


_ANSWERS: Final = {"granted": "done", "rejected": "vetoed"}


def _reply_pairs(reply: Approval | None) -> dict[str, str | None]:
    if reply is None:
        return {}
    role = f" ({reply.role})" if reply.role else ""
    origin = reply.taken_from
    return {
        "by": f"{reply.by or ''}{role}".strip(),
        "system user": " ".join(describe_system_user(reply)).removeprefix("as "),
        "signed with": reply.signature.key if reply.signature else "unsigned",
        "saying": reply.reason,
        "taken over from": f"{reply.approval_id} of {origin.episode_id}" if origin else None,
    }


def _page_decisions(log: PageLog, steps: StepPages) -> list[PageDecision]:
    return [steps.decision(id, *each) for id, found in log.decisions.items() for each in found]


def _page_events(events: Sequence[Event]) -> list[PageEvent]:
    lines = EventLines()
    found = []
    for number, event in enumerate(events[:MAX_EVENTS], start=1):
        time, type, *words = lines.line(event).split(" ", 2)
        found.append(PageEvent(number, time[11:23] or time, type, words[0][:400] if words else ""))
    return found


def _with_place(finding: Finding) -> str:
    if not finding.file:
        return finding.message
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    return f"{place}: {finding.message}"


def _hash_rows(source: PageSource, run: RunHistory) -> list[tuple[str, str]]:
    pins = read_record(RunPins, run.start.pins if run.start else None)
    pairs = [
        ("end of the log", source.head),
        ("policy", pins.policy_hash),
        *sorted(pins.specs.items()),
    ]
    return [(name, text) for name, text in pairs if text]
