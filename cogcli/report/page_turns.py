"""The turns of an agent's run as a page shows them: layers, what the model was asked and answered, and its context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.report import layer_cells
from cogcli.report.humanize import duration
from cogcli.report.page_log import ModelCall, PageLog
from cogcli.report.page_values import PageValue, ValueLimit, line_of
from cogcli.report.run_fold import RunFold
from cogcli.report.run_view import count_in
from cogcli.report.styled_text import UNICODE, style_of
from cogcli.report.turns import TurnView


class PageBlock(NamedTuple):
    """A section of a context."""

    id: str
    bucket: str
    tokens: int
    trust: str
    note: str
    """Whether it was cut."""
    content: PageValue | None


class PageModelCall(NamedTuple):
    """A question to a model, and what it answered."""

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
    """What the context had no room for, or may not hold, with the reason."""
    steps: list[str]
    response: str


def turns_of(fold: RunFold, log: PageLog, limit: ValueLimit) -> list[PageTurn]:
    """The turns in order; none of a run without an agent."""
    rows = layer_cells.rows(fold)
    return [
        PageTurn(
            name=turn.step.name, intent=turn.step.uses, sign=UNICODE.sign(turn.step.status),
            tone=style_of(turn.step.status), time=duration(turn.step.ms),
            layers=[(row["layer"], row["cell"]) for row in rows if row["turn"] == turn.number],
            calls=[_model_call(id, call, limit) for id, call in log.model_calls.items() if call.turn == turn.number],
            blocks=list(_blocks(turn, limit)), omitted=list(_omitted(turn)), steps=turn.steps,
            response=text_of(turn.candidate.get("response")),
        )
        for turn in fold.turns.turns
    ]  # fmt: skip


def _model_call(id: str, call: ModelCall, limit: ValueLimit) -> PageModelCall:
    answer = call.answer
    reply, error, usage = (object_of(answer.get(name)) for name in ("reply", "error", "usage"))
    ended = f"failed: {text_of(error.get('code'))}" if error else "answered" if answer else "no answer"
    tokens = f"{count_in(usage, 'tokens_in')} tokens in, {count_in(usage, 'tokens_out')} out" if usage else ""
    facts = [text_of(reply.get("model")), tokens + (" (estimated)" if answer.get("estimated") else "")]
    facts += [duration(count_in(answer, "latency_ms")) if answer else "", text_of(reply.get("finish"))]
    where = line_of(call.line)
    request = object_of(call.request.get("request"))
    messages = [
        limit.value(text_of(each.get("role")) or "message", each.get("content"), where)
        for each in map(object_of, list_of(request.get("messages")))
    ]
    answered = [
        limit.value("answer", reply.get("text"), where),
        limit.value("tool calls", reply.get("tool_calls"), where),
        limit.value("error", error, where),
    ]
    title = f"{id} · {text_of(call.request.get('purpose'))} · {ended}"
    return PageModelCall(
        title, " · ".join(each for each in facts if each), [v for v in (*answered, *messages) if v]
    )


def _blocks(turn: TurnView, limit: ValueLimit) -> Iterator[PageBlock]:
    prompt = object_of(turn.context.get("compiled_prompt"))
    for block in map(object_of, list_of(prompt.get("context_blocks"))):
        yield PageBlock(
            text_of(block.get("block_id")), text_of(block.get("bucket")), count_in(block, "tokens"),
            text_of(block.get("trust")), "cut" if block.get("truncated") is True else "",
            limit.value("content", block.get("content"), "events.jsonl"),
        )  # fmt: skip


def _omitted(turn: TurnView) -> Iterator[str]:
    report = object_of(turn.context.get("budget_report"))
    for each in list_of(report.get("omissions")):
        yield _named(each, ("block_id", "id", "ref"))
    for each in list_of(turn.context.get("redactions")):
        yield "kept from the model: " + _named(each, ("capability", "ref", "id"))


def _named(value: Any, keys: tuple[str, ...]) -> str:
    """`name: reason` of an object, whatever its name is called."""
    members = object_of(value)
    name = next((text_of(members[key]) for key in keys if text_of(members.get(key))), "")
    reason = text_of(members.get("reason"))
    return ": ".join(part for part in (name, reason) if part) or str(value)[:200]
