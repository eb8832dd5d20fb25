"""The turns of an agent's run as a page shows them: layers, model requests with their answers, and the context."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import StepError
from cogcli.declarations.layer_records import ContextOmission, ModelQuestion, RecordedReply
from cogcli.declarations.reading import read_record
from cogcli.episode.history import History
from cogcli.episode.turn_history import TurnHistory
from cogcli.report import layer_cells
from cogcli.report.humanize import duration
from cogcli.report.page_log import ModelCall, PageLog
from cogcli.report.page_values import PageValue, ValueLimit, line_of
from cogcli.report.styled_text import UNICODE, style_of


class PageBlock(NamedTuple):
    """A section of a context."""

    id: str
    bucket: str
    tokens: int
    trust: str
    note: str
    """`cut` if the content was cut, otherwise empty."""
    content: PageValue | None


class PageModelCall(NamedTuple):
    """A request to a model, and the model's answer."""

    title: str
    facts: str
    values: list[PageValue]


class PageTurn(NamedTuple):
    """One pass over the layers."""

    name: str
    intent: str
    sign: str
    tone: str
    time: str
    layers: list[tuple[str, str]]
    calls: list[PageModelCall]
    blocks: list[PageBlock]
    omitted: list[str]
    """Entries that did not fit into the context or were withheld, with the reason."""
    steps: list[str]
    response: str


def turns_of(fold: History, log: PageLog, limit: ValueLimit) -> list[PageTurn]:
    """Return the turns in order. Empty for a run without an agent."""
    rows = layer_cells.rows(fold)
    return [
        PageTurn(
            name=turn.step.name,
            intent=turn.step.uses,
            sign=UNICODE.sign(turn.step.status),
            tone=style_of(turn.step.status),
            time=duration(turn.step.ms),
            layers=[(row["layer"], row["cell"]) for row in rows if row["turn"] == turn.number],
            calls=[
                _model_call(id, call, limit)
                for id, call in log.model_calls.items()
                if call.request.turn == turn.number
            ],
            blocks=list(_build_blocks(turn, limit)),
            omitted=list(_omission_lines(turn)),
            steps=turn.steps,
            response=turn.candidate.response if turn.candidate else "",
        )
        for turn in fold.turns.turns
    ]


def _model_call(id: str, call: ModelCall, limit: ValueLimit) -> PageModelCall:
    where = line_of(call.line)
    asked = read_record(ModelQuestion, call.request.request)
    values = [limit.value(each.role or "message", each.content, where) for each in asked.messages]
    facts: list[str] = []
    ended = "no answer"
    if answer := call.answer:
        reply = read_record(RecordedReply, answer.reply)
        tokens = f"{answer.usage.tokens_in} tokens in, {answer.usage.tokens_out} out"
        estimated = " (estimated)" if answer.estimated else ""
        facts = [reply.model, tokens + estimated, duration(answer.latency_ms), reply.finish]
        ended = (
            "answered"
            if answer.error is None
            else f"failed: {read_record(StepError, answer.error).code}"
        )
        answered = [
            limit.value("answer", reply.text, where),
            limit.value("tool calls", reply.tool_calls, where),
            limit.value("error", answer.error, where),
        ]
        values = [*answered, *values]
    return PageModelCall(
        title=f"{id} · {call.request.purpose} · {ended}",
        facts=" · ".join(fact for fact in facts if fact),
        values=[value for value in values if value],
    )


def _build_blocks(turn: TurnHistory, limit: ValueLimit) -> Iterator[PageBlock]:
    if turn.context is None:
        return
    for block in turn.context.compiled_prompt.context_blocks:
        yield PageBlock(
            block.block_id,
            block.bucket,
            block.tokens,
            block.trust,
            "cut" if block.truncated else "",
            limit.value("content", block.content, "events.jsonl"),
        )


def _omission_lines(turn: TurnHistory) -> Iterator[str]:
    if turn.context is None:
        return
    for each in turn.context.budget_report.omissions:
        yield _name_and_reason(each)
    for each in turn.context.redactions:
        yield "kept from the model: " + _name_and_reason(each)


def _name_and_reason(left_out: ContextOmission) -> str:
    return ": ".join(part for part in (left_out.name, left_out.reason) if part)
