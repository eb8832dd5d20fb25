"""The screens of one spec of any kind: all of it, or the explanation of its binding choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.terminal_text import cells, pad, visible
from cogcli.cli.envelope import dumps
from cogcli.cli.streams import OutputStream
from cogcli.declarations.value_types import Json
from cogcli.report.styled_text import StyledLine, fit, fit_line, named_rows, style_of
from cogcli.specs.selection import RULES

_STYLES: Final = {"chosen": "green", "unusable": "red"}
_STATE: Final = len("not named")
_ABOVE: Final = ("id", "version", "description", "layer", "file", "shadows", "run")
"""The members that have lines of their own."""


def spec_lines(kind: str, spec: Json, out: OutputStream) -> list[StyledLine]:
    """Return the lines of `show`: all of a spec."""
    return (
        _skill_spec_lines(spec, out)
        if kind == "skills"
        else list(_plain_lines(kind, spec, out.width))
    )


def explanation_lines(kind: str, body: Json, width: int | None) -> list[StyledLine]:
    """Return the lines of `explain`, cut at the width of the terminal."""
    lines = {"skills": _skill, "services": _service}.get(kind, _capability)
    return [fit_line(line, width) for line in lines(body)]


def _skill_spec_lines(spec: Json, out: OutputStream) -> list[StyledLine]:
    width = out.width
    head = (visible(f"{spec['id']} {spec['version']}"), "bold")
    lines: list[StyledLine] = [[head, (f"  {visible(spec['name'])}", "")]]
    lines.append([(visible(spec["description"]), "")])
    lines += _fields("inputs", spec["inputs"]) + _fields("outputs", spec["outputs"])
    lines.append([("steps", "bold")])
    size = max((cells(step["id"]) for step in spec["steps"]), default=0)
    lines += [[(fit(f"  {pad(s['id'], size)}  {s['uses']}", width), "")] for s in spec["steps"]]
    lines += _skill_bindings(spec["bindings"], out)
    rows = [("tags", fit(_text(spec["tags"]), width and width - 8))] if spec["tags"] else []
    rows += [
        ("from", f"{spec['layer']}  {spec['file']}"),
        *(("hides", file) for file in spec["shadows"]),
    ]
    if not spec["usable"]:
        rows.append(("usable", f"no: cogcli skills explain {spec['id']}"))
    return lines + named_rows([*rows, ("run", spec["run"])], indent="", least=len("usable"))


def _skill_bindings(rows: list[Json], out: OutputStream) -> list[StyledLine]:
    """Return the binding that is called for each capability that a skill reaches."""
    lines: list[StyledLine] = [[("bindings", "bold")]] if rows else []
    size = max((cells(row["capability"]) for row in rows), default=0)
    for row in rows:
        status = "done" if row["usable"] else "failed"
        text = f"{pad(row['capability'], size)}  {row['binding'] or 'nothing can be called'}"
        line = [(f"  {out.glyphs.sign(status)} ", style_of(status)), (visible(text), "")]
        lines.append(fit_line(line, out.width))
    return lines


def _fields(title: str, fields: Json) -> list[StyledLine]:
    lines: list[StyledLine] = [[(title, "bold")]] if fields else []
    size = max((cells(name) for name in fields), default=0)
    for name, field in fields.items():
        lines.append([(f"  {pad(name, size)}  ", ""), (visible(_field(field)), "")])
    return lines


def _plain_lines(kind: str, spec: Json, width: int | None) -> Iterator[StyledLine]:
    head = f"{spec['id']} {spec.get('version', '')}".rstrip()
    yield [(visible(head), "bold")]
    if spec.get("description"):
        yield [(visible(spec["description"]), "")]
    plain = {name: value for name, value in spec.items() if _is_shown_in_line(name, value)}
    size = max([len("replaces"), *(cells(name) for name in plain)])
    room = width and max(10, width - size - 2)
    texts = [(name, fit(visible(_text(value)), room)) for name, value in plain.items()]
    yield from named_rows(texts, indent="", least=size)
    for name, value in spec.items():
        if isinstance(value, dict) and value:
            yield from _table_lines(name, value, width)
    yield from named_rows(_origin_rows(kind, spec), indent="", least=size)


def _is_shown_in_line(name: str, value: object) -> bool:
    """Whether a member gets its own line: false counts as a value, empty values do not."""
    is_shown = bool(value) or value is False
    return is_shown and name not in _ABOVE and not isinstance(value, dict)


def _table_lines(name: str, table: Json, width: int | None) -> Iterator[StyledLine]:
    yield [(name, "bold")]
    size = max(cells(key) for key in table)
    for key, item in table.items():
        yield [(fit(visible(f"  {pad(key, size)}  {_text(item)}"), width), "")]


def _origin_rows(kind: str, spec: Json) -> list[tuple[str, str]]:
    """Return the origin of a spec, the specs it replaces, and the commands that explain and run it."""
    places = [("from", spec), *(("replaces", shadow) for shadow in spec["shadows"])]
    rows = [(name, f"{place['layer']}  {place['file']}") for name, place in places]
    if kind != "services":
        capability = spec["capability"] if kind == "bindings" else spec["id"]
        rows.append(("why", f"cogcli bindings explain {capability}"))
    if spec.get("run"):
        rows.append(("run", spec["run"]))
    return rows


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict) and value.keys() >= {"type", "required", "default"}:
        return _field(value)
    return dumps(value)


def _field(field: Json) -> str:
    parts = [f"{field['type']:<7}", "required" if field["required"] else "optional"]
    if field["default"] is not None:
        parts.append(f"default {dumps(field['default'])}")
    if field["enum"]:
        parts.append(f"one of {', '.join(map(str, field['enum']))}")
    return "  ".join([" ".join(parts), " ".join((field["description"] or "").split())]).rstrip()


def _capability(body: Json) -> Iterator[StyledLine]:
    yield _head(body)
    yield _row("conformance", f"at least {body['required_conformance_profile']}")
    yield _row("from", f"{body['layer']}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
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
    yield from _bindings(body["bindings"])


def _head(body: Json) -> StyledLine:
    """Return the capability and the binding that is called for it."""
    line: StyledLine = [(visible(body["capability_id"]), "bold"), (" → ", "dim")]
    chosen = [row["binding_id"] for row in body["bindings"] if row["state"] == "chosen"]
    if not chosen:
        return [*line, ("nothing", "red")]
    return [*line, (visible(chosen[0]), "green"), (f"  by rule `{body['selection_source']}`", "")]


def _row(name: str, text: str) -> StyledLine:
    return [(f"{name:<11}  ", "dim"), (visible(text), "")]


def _hidden_lines(shadows: list[dict[str, str]], indent: str = "") -> Iterator[StyledLine]:
    for shadow in shadows:
        yield [
            (f"{indent}{'replaces':<11}  ", "dim"),
            (visible(f"{shadow['layer']}  {shadow['file']}"), ""),
        ]


def _bindings(rows: list[Json]) -> Iterator[StyledLine]:
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
        yield from _hidden_lines(row["shadows"], indent)
        yield from _hidden_lines(row["service_shadows"], f"{indent}service ")


def _skill(body: Json) -> Iterator[StyledLine]:
    yield [(visible(body["skill_id"]), "bold")]
    if body["file"]:
        yield _row("from", f"{body['layer'] or 'broken'}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
    for choice in body["capabilities"]:
        yield _head(choice)
        yield from _bindings([row for row in choice["bindings"] if row["state"] != "not named"])


def _service(body: Json) -> Iterator[StyledLine]:
    yield [
        (visible(body["service_id"]), "bold"),
        ("" if body["trusted"] else "  not trusted", "red"),
    ]
    yield _row("from", f"{body['layer']}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
    if not body["bindings"]:
        yield _row("bindings", "none: nothing can call it")
    for row in body["bindings"]:
        yield [(visible(row["capability_id"]), "bold")]
        yield from _bindings([{**row, "service_shadows": []}])
