"""`skills show ID`: fields, layer, steps, and a line to run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Source, argument
from cogcli.core.errors import OK
from cogcli.core.terminal_text import cells, pad, truncate, visible, visible_block

if TYPE_CHECKING:
    from cogcli.report.styled_text import StyledLine


@command(
    examples=(
        ("cogcli skills show text.summarize", "what it takes"),
        ("cogcli skills show text.summarize --source", "its YAML"),
        ("cogcli skills show text.summarize --json | jq .spec.inputs", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def show(
    context: CommandContext, skill_id: Annotated[str, argument("ID", "skills")], *, source: Source = False
) -> int:
    """Show the skill, or its file."""
    from cogcli.app.inventory.listing import read_source, spec_details

    if source and not context.json:
        context.screen.answer(visible_block(read_source(context.settings, "skills", skill_id)))
        return OK
    spec = spec_details(context.settings, "skills", skill_id)
    context.own["spec"] = spec
    if source:
        context.own["source"] = read_source(context.settings, "skills", skill_id)
    if not context.json:
        context.screen.answer_lines(_lines(spec, context.screen.out.width))
    return OK


def _lines(spec: dict[str, Any], width: int | None) -> list[StyledLine]:
    lines: list[StyledLine] = [
        [(visible(f"{spec['id']} {spec['version']}"), "bold"), (f"  {visible(spec['name'])}", "")]
    ]
    lines.append([(_cut(visible(spec["description"]), width), "")])
    lines += _fields("inputs", spec["inputs"], width) + _fields("outputs", spec["outputs"], width)
    lines.append([("steps", "bold")])
    size = max((cells(step["id"]) for step in spec["steps"]), default=0)
    lines += [[(_cut(f"  {pad(s['id'], size)}  {s['uses']}", width), "")] for s in spec["steps"]]
    lines.append([("from    ", "dim"), (visible(f"{spec['layer']}  {spec['file']}"), "")])
    lines += [[("hides   ", "dim"), (visible(file), "")] for file in spec["shadows"]]
    lines.append([("run     ", "dim"), (visible(spec["run"]), "")])
    return lines


def _fields(title: str, fields: dict[str, Any], width: int | None) -> list[StyledLine]:
    lines: list[StyledLine] = [[(title, "bold")]] if fields else []
    size = max((cells(name) for name in fields), default=0)
    for name, field in fields.items():
        lines.append([(_cut(f"  {pad(name, size)}  {visible(_field_text(field))}", width), "")])
    return lines


def _field_text(field: dict[str, Any]) -> str:
    from cogcli.cli.envelope import dumps

    parts = [f"{field['type']:<7}", "required" if field["required"] else "optional"]
    if field["default"] is not None:
        parts.append(f"default {dumps(field['default'])}")
    if field["enum"]:
        parts.append(f"one of {', '.join(map(str, field['enum']))}")
    return "  ".join([" ".join(parts), " ".join(field["description"].split())]).rstrip()


def _cut(text: str, width: int | None) -> str:
    return text if width is None else truncate(text, width)
