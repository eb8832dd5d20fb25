"""`capabilities show`, `bindings show`, `services show`: one spec in full, or its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.cli.command import Examples, command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Source, SpecId
from cogcli.core.errors import OK
from cogcli.core.terminal_text import cells, pad, truncate, visible, visible_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogcli.report.styled_text import StyledLine

_ABOVE: Final = ("id", "version", "description", "layer", "file", "shadows")
"""What is told in lines of its own."""


_SAMPLES: Final = {
    "capabilities": "text.content.summarize",
    "bindings": "python_text_content_summarize_lead",
    "services": "official_text",
}


def _examples(name: str) -> Examples:
    line = f"cogcli {name} {_SAMPLES[name.split()[0]]}"
    return (
        (line, "what it says"),
        (f"{line} --source", "its file"),
        (f"{line} --json | jq .spec", "for scripts"),
    )


@command(examples=_examples, exits=(0, 2, 3))
def show(context: CommandContext, id: SpecId, *, source: Source = False) -> int:
    """Show the spec, or its file."""
    from cogcli.app.inventory.listing import read_source, spec_details

    kind = context.kind
    if source and not context.json:
        context.screen.answer(visible_block(read_source(context.settings, kind, id)))
        return OK
    spec = spec_details(context.settings, kind, id)
    context.own["spec"] = spec
    if source:
        context.own["source"] = read_source(context.settings, kind, id)
    if not context.json:
        context.screen.answer_lines(list(_lines(kind, spec, context.screen.out.width)))
    return OK


def _lines(kind: str, spec: dict[str, Any], width: int | None) -> Iterator[StyledLine]:
    head = f"{spec['id']} {spec.get('version', '')}".rstrip()
    yield [(visible(head), "bold")]
    if spec.get("description"):
        yield [(_cut(visible(spec["description"]), width), "")]
    plain = {k: v for k, v in spec.items() if k not in _ABOVE and not isinstance(v, dict) and _has_value(v)}
    size = max([len("replaces"), *(cells(name) for name in plain)])
    for name, value in plain.items():
        yield [(f"{pad(name, size)}  ", "dim"), (_cut(visible(_text(value)), width, size + 2), "")]
    for name, value in spec.items():
        if isinstance(value, dict) and value:
            yield [(name, "bold")]
            inner = max(cells(key) for key in value)
            for key, item in value.items():
                text = f"  {pad(key, inner)}  {_text(item)}"
                yield [(_cut(visible(text), width), "")]
    yield [(f"{pad('from', size)}  ", "dim"), (visible(f"{spec['layer']}  {spec['file']}"), "")]
    for shadow in spec["shadows"]:
        text = visible(f"{shadow['layer']}  {shadow['file']}")
        yield [(f"{pad('replaces', size)}  ", "dim"), (text, "")]
    if kind != "services":
        asked = spec["capability"] if kind == "bindings" else spec["id"]
        yield [(f"{pad('why', size)}  ", "dim"), (visible(f"cogcli bindings explain {asked}"), "")]


def _has_value(value: Any) -> bool:
    """Whether a value is displayed: `false` and 0 are, None and empty ones are not."""
    return value is False or bool(value)


def _text(value: Any) -> str:
    from cogcli.cli.envelope import dumps

    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict) and value.keys() >= {"type", "required", "default"}:
        return _field(value)
    return dumps(value)


def _field(field: dict[str, Any]) -> str:
    from cogcli.cli.envelope import dumps

    parts = [f"{field['type']:<7}", "required" if field["required"] else "optional"]
    if field["default"] is not None:
        parts.append(f"default {dumps(field['default'])}")
    if field["enum"]:
        parts.append(f"one of {', '.join(map(str, field['enum']))}")
    return "  ".join([" ".join(parts), " ".join((field["description"] or "").split())]).rstrip()


def _cut(text: str, width: int | None, used: int = 0) -> str:
    return text if width is None else truncate(text, max(10, width - used))
