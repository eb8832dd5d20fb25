"""The screens of one spec of any kind: all its fields, or the explanation of its binding choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.terminal_text import cells, pad, visible
from cogcli.cli.envelope import dumps
from cogcli.cli.streams import OutputStream
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.report.styled_text import StyledLine, fit, fit_line, named_rows, style_of
from cogcli.specs.selection import RULES

_STYLES: Final = {"chosen": "green", "unusable": "red"}
_STATE: Final = len("not named")
_ABOVE: Final = ("id", "version", "description", "layer", "file", "shadows", "run", "tools")
"""The members that have lines of their own."""


class ShownSpec(Record):
    """The members of a spec of any kind but a skill that have lines of their own."""

    id: str
    version: str = ""
    description: str | None = None
    run: str | None = None
    tools: list[Json] | None = None


def spec_lines(kind: str, spec: Json, out: OutputStream) -> list[StyledLine]:
    """Return the lines of `show` for a spec."""
    return (
        _skill_spec_lines(spec, out)
        if kind == "skills"
        else list(_plain_lines(kind, spec, out.width))
    )


def explanation_lines(kind: str, body: Json, width: int | None) -> list[StyledLine]:
    """Return the lines of `explain`, truncated to the width of the terminal."""
    lines = {"skills": _skill_lines, "services": _service_lines}.get(kind, _capability_lines)
    return [fit_line(line, width) for line in lines(body)]


def _skill_spec_lines(spec: Json, out: OutputStream) -> list[StyledLine]:
    """Return the lines of `show` for a skill."""
    width = out.width
    head = (visible(f"{spec['id']} {spec['version']}"), "bold")
    lines: list[StyledLine] = [[head, (f"  {visible(spec['name'])}", "")]]
    lines.append([(visible(spec["description"]), "")])
    lines += _field_lines("inputs", spec["inputs"]) + _field_lines("outputs", spec["outputs"])
    lines.append([("steps", "bold")])
    size = max((cells(step["id"]) for step in spec["steps"]), default=0)
    lines += [[(fit(f"  {pad(s['id'], size)}  {s['uses']}", width), "")] for s in spec["steps"]]
    lines += _skill_binding_lines(spec["bindings"], out)
    rows = [("tags", fit(_value_text(spec["tags"]), width and width - 8))] if spec["tags"] else []
    rows += [
        ("from", f"{spec['layer']}  {spec['file']}"),
        *(("hides", file) for file in spec["shadows"]),
    ]
    if not spec["usable"]:
        rows.append(("usable", f"no: cogcli skills explain {spec['id']}"))
    return lines + named_rows([*rows, ("run", spec["run"])], indent="", minimum=len("usable"))


def _skill_binding_lines(rows: list[Json], out: OutputStream) -> list[StyledLine]:
    """Return a line per capability that a skill reaches, with the binding that is called for it."""
    lines: list[StyledLine] = [[("bindings", "bold")]] if rows else []
    size = max((cells(row["capability"]) for row in rows), default=0)
    for row in rows:
        status = "done" if row["usable"] else "failed"
        text = f"{pad(row['capability'], size)}  {row['binding'] or 'nothing can be called'}"
        line = [(f"  {out.glyphs.sign(status)} ", style_of(status)), (visible(text), "")]
        lines.append(fit_line(line, out.width))
    return lines


def _field_lines(title: str, fields: Json) -> list[StyledLine]:
    """Return the lines of inputs or outputs below a title."""
    lines: list[StyledLine] = [[(title, "bold")]] if fields else []
    size = max((cells(name) for name in fields), default=0)
    for name, field in fields.items():
        lines.append([(f"  {pad(name, size)}  ", ""), (visible(_field_text(field)), "")])
    return lines


def _plain_lines(kind: str, spec: Json, width: int | None) -> Iterator[StyledLine]:
    """Yield the lines of `show` for any other kind of spec."""
    shown = read_record(ShownSpec, spec)
    yield [(visible(f"{shown.id} {shown.version}".rstrip()), "bold")]
    if shown.description:
        yield [(visible(shown.description), "")]
    plain = {name: value for name, value in spec.items() if _has_own_line(name, value)}
    size = max([len("replaces"), *(cells(name) for name in plain)])
    room = width and max(10, width - size - 2)
    texts = [(name, fit(visible(_value_text(value)), room)) for name, value in plain.items()]
    yield from named_rows(texts, indent="", minimum=size)
    for name, value in spec.items():
        if isinstance(value, dict) and value:
            yield from _table_lines(name, value, width)
    yield from _tool_lines(shown.tools or [], width)
    yield from named_rows(_origin_rows(kind, spec), indent="", minimum=size)


def _tool_lines(tools: list[Json], width: int | None) -> Iterator[StyledLine]:
    """Yield the locked tools of a service, each with its schemas and annotations."""
    if tools:
        yield [("tools", "bold")]
    for tool in tools:
        description = " ".join((tool["description"] or "").split())
        yield [(fit(visible(f"  {tool['name']}  {description}".rstrip()), width), "")]
        members = (("takes", "inputSchema"), ("gives", "outputSchema"), ("claims", "annotations"))
        for name, key in members:
            if tool[key] is not None:
                yield [(fit(visible(f"    {name:<6}  {dumps(tool[key])}"), width), "")]


def _has_own_line(name: str, value: object) -> bool:
    """Return whether a member is displayed on a separate line. False is displayed; other empty values are not."""
    is_shown = bool(value) or value is False
    return is_shown and name not in _ABOVE and not isinstance(value, dict)


def _table_lines(name: str, table: Json, width: int | None) -> Iterator[StyledLine]:
    """Yield a member that is an object as a name and a line per key."""
    yield [(name, "bold")]
    size = max(cells(key) for key in table)
    for key, item in table.items():
        yield [(fit(visible(f"  {pad(key, size)}  {_value_text(item)}"), width), "")]


def _origin_rows(kind: str, spec: Json) -> list[tuple[str, str]]:
    """Return the origin of a spec, the specs that it replaces, and the commands that explain and run it."""
    places = [("from", spec), *(("replaces", shadow) for shadow in spec["shadows"])]
    rows = [(name, f"{place['layer']}  {place['file']}") for name, place in places]
    if kind != "services":
        capability = spec["capability"] if kind == "bindings" else spec["id"]
        rows.append(("why", f"cogcli bindings explain {capability}"))
    if run := read_record(ShownSpec, spec).run:
        rows.append(("run", run))
    return rows


def _value_text(value: object) -> str:
    """Return a value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict) and value.keys() >= {"type", "required", "default"}:
        return _field_text(value)
    return dumps(value)


def _field_text(field: Json) -> str:
    """Return an input or output as text."""
    parts = [f"{field['type']:<7}", "required" if field["required"] else "optional"]
    if field["default"] is not None:
        parts.append(f"default {dumps(field['default'])}")
    if field["enum"]:
        parts.append(f"one of {', '.join(map(str, field['enum']))}")
    return "  ".join([" ".join(parts), " ".join((field["description"] or "").split())]).rstrip()


def _capability_lines(body: Json) -> Iterator[StyledLine]:
    """Yield the lines of `explain` for a capability."""
    yield _choice_line(body)
    yield _named_line("conformance", f"at least {body['required_conformance_profile']}")
    yield _named_line("from", f"{body['layer']}  {body['file']}")
    yield from _replaced_lines(body["shadows"])
    yield [("rules", "bold")]
    considered = {row["rule"]: row for row in body["considered"]}
    size = max([0, *(cells(row["binding_id"]) for row in considered.values() if row["binding_id"])])
    for rule in RULES:
        if rule == "prefer" and rule not in considered:
            continue
        row = considered.get(rule, {"binding_id": None, "reason": "not asked", "chosen": False})
        text = f"{pad(row['binding_id'] or '', size)}  {row['reason']}"
        yield [(f"  {rule:<9}  ", ""), (visible(text).rstrip(), "" if row["chosen"] else "dim")]
    yield [("bindings", "bold")]
    yield from _binding_lines(body["bindings"])


def _choice_line(body: Json) -> StyledLine:
    """Return the line with a capability and the binding that is called for it."""
    line: StyledLine = [(visible(body["capability_id"]), "bold"), (" → ", "dim")]
    chosen = [row["binding_id"] for row in body["bindings"] if row["state"] == "chosen"]
    if not chosen:
        return [*line, ("nothing", "red")]
    return [*line, (visible(chosen[0]), "green"), (f"  by rule `{body['selection_source']}`", "")]


def _named_line(name: str, text: str) -> StyledLine:
    return [(f"{name:<11}  ", "dim"), (visible(text), "")]


def _replaced_lines(shadows: list[dict[str, str]], indent: str = "") -> Iterator[StyledLine]:
    """Yield the specs that a spec replaces."""
    for shadow in shadows:
        yield [
            (f"{indent}{'replaces':<11}  ", "dim"),
            (visible(f"{shadow['layer']}  {shadow['file']}"), ""),
        ]


def _binding_lines(rows: list[Json]) -> Iterator[StyledLine]:
    """Yield the lines of bindings, each with its state and reason."""
    size = max([0, *(cells(row["binding_id"]) for row in rows)])
    indent = " " * (2 + _STATE + 2)
    for row in rows:
        yield [
            (f"  {row['state']:<{_STATE}}  ", _STYLES.get(row["state"], "dim")),
            (visible(f"{pad(row['binding_id'], size)}  {row['reason']}"), ""),
        ]
        if "layer" not in row:
            yield from [[(indent, ""), (visible(row["file"]), "dim")]] if row["file"] else []
            continue
        where = f"{row['protocol']}:{row['service_id']}  {row['conformance_profile']}"
        yield [(indent, ""), (visible(f"{where}  {row['layer']}  {row['file']}"), "dim")]
        yield from _replaced_lines(row["shadows"], indent)
        yield from _replaced_lines(row["service_shadows"], f"{indent}service ")


def _skill_lines(body: Json) -> Iterator[StyledLine]:
    """Yield the lines of `explain` for a skill."""
    yield [(visible(body["skill_id"]), "bold")]
    if body["file"]:
        yield _named_line("from", f"{body['layer'] or 'broken'}  {body['file']}")
    yield from _replaced_lines(body["shadows"])
    for choice in body["capabilities"]:
        yield _choice_line(choice)
        yield from _binding_lines(
            [row for row in choice["bindings"] if row["state"] != "not named"]
        )


def _service_lines(body: Json) -> Iterator[StyledLine]:
    """Yield the lines of `explain` for a service."""
    yield [
        (visible(body["service_id"]), "bold"),
        ("" if body["trusted"] else "  not trusted", "red"),
    ]
    yield _named_line("from", f"{body['layer']}  {body['file']}")
    yield from _replaced_lines(body["shadows"])
    if not body["bindings"]:
        yield _named_line("bindings", "none: nothing can call it")
    for row in body["bindings"]:
        yield [(visible(row["capability_id"]), "bold")]
        yield from _binding_lines([{**row, "service_shadows": []}])
