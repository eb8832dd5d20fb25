"""A request for approval, or for input, on a screen: the same rows everywhere (`report/approval_view.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cogcli.base.canonical import compact
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.prompt import terminal_safe
from cogcli.declarations.governance_events import FieldSchema, InputField, InputRequested
from cogcli.declarations.reading import read_record
from cogcli.report.approval_view import ApprovalView
from cogcli.report.styled_text import StyledLine


def request_lines(
    context: CommandContext, view: ApprovalView, *, in_full: bool = False
) -> list[StyledLine]:
    """Return the lines of a request. Unless `in_full`, long texts that decide nothing are cut."""
    rows = view.rows(in_full=in_full)
    width = max(len(name) for name, _ in rows)
    lines: list[StyledLine] = []
    for name, text in rows:
        style = "bold" if name == "action" else ""
        for number, line in enumerate(text.split("\n")):
            head = "" if number else name
            lines.append([(f"  {head:<{width}}  ", "dim"), (terminal_safe(context, line), style)])
    return lines


def write_request(
    context: CommandContext,
    view: ApprovalView,
    write: Callable[[list[StyledLine]], None],
    *,
    in_full: bool = False,
) -> None:
    """Write the lines of a request with `write`."""
    write(request_lines(context, view, in_full=in_full))


def input_lines(context: CommandContext, asked: InputRequested) -> Iterator[StyledLine]:
    """Yield the lines of a request for input: the requester, the message and the fields."""
    rows = [("service", asked.service), ("call", f"{asked.step_id}: {asked.capability}")]
    for form in asked.forms:
        rows.append(("asks", visible_block(form.message)))
        if form.url:
            rows.append(("address", form.url))
        rows += [("field", f"{field.name}: {_describe_field(field)}") for field in form.fields]
    for name, text in rows:
        for number, line in enumerate(text.split("\n")):
            head = "" if number else name
            yield [(f"  {head:<7}  ", "dim"), (terminal_safe(context, visible(line)), "")]


def _describe_field(field: InputField) -> str:
    """Return what a field takes, its title, its description and its default."""
    schema = read_record(FieldSchema, field.accepts)
    texts = (schema.title, schema.description)
    words = [field.type_text, *(text for text in texts if text is not None)]
    if "default" in field.accepts:
        words.append(f"default {compact(field.accepts['default']).decode()}")
    return ", ".join([*words, *([] if field.required else ["optional"])])
