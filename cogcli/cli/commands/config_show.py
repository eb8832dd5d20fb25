"""`config show [KEY]`: settings with their origins, and the contents of each registry layer."""

from __future__ import annotations

import os
from typing import Annotated

from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS, PINS
from cogcli.app.settings.pins import active_pins
from cogcli.app.settings.trust import VARIABLE, store_path
from cogcli.base.errors import OK, UsageError
from cogcli.base.problems import suggestion
from cogcli.base.terminal_text import pad, visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import plain
from cogcli.cli.options import OUTPUT, argument, command, switch
from cogcli.specs.host_layout import KIND_OF_FILE
from cogcli.specs.layers import Layer


@command(
    examples=(
        ("cogcli config show --origin", "all settings, with origins"),
        ("cogcli config show max_workers", "one setting"),
        ("cogcli config show --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def show(
    context: CommandContext,
    key: Annotated[str | None, argument("[KEY]", "settings")] = None,
    *,
    origin: Annotated[
        bool, switch("--origin", help="show the origin of each value", panel=OUTPUT)
    ] = False,
) -> int:
    """Display all settings or one. Invalid lines of configuration files are only warnings here."""
    settings = context.settings
    rows = _setting_rows(settings)
    if key is not None:
        if key not in rows:
            hint = suggestion(key, list(rows)) or f"there is {', '.join(rows)}"
            raise UsageError("usage.value", f"there is no setting `{key}`", hint=hint)
        rows = {key: rows[key]}
    for problem in settings.problems:
        context.warn(problem)
    context.own["settings"] = {
        name: {"value": value, "origin": source} for name, (value, source) in rows.items()
    }
    if "trust" in rows:
        changes = settings.trust.changes
        context.own["trust"] = {
            "state": settings.trust.state,
            "changes": [{"change": what, "name": name} for what, name in changes],
        }
    if not context.json:
        _write_settings(context, rows, one=key is not None, origin=origin)
    return OK


def _setting_rows(settings: Settings) -> dict[str, tuple[object, str]]:
    """Return the value and origin of each setting, by name."""
    rows: dict[str, tuple[object, str]] = {
        name: settings.with_origin(name) for name in KEYS if name != PINS
    }
    pins = active_pins(settings)
    origins = ", ".join(dict.fromkeys(pin.origin for pin in pins.values()))
    rows[PINS] = (
        {id: pin.reference.partition("@")[2] for id, pin in pins.items()},
        origins or "default",
    )
    runs_dir, origin = settings.runs_dir_with_origin()
    rows["runs_dir"] = (settings.display_path(runs_dir), origin)
    rows["project"] = (settings.project, "found upwards" if settings.project else "none")
    state = settings.trust.state
    origin = VARIABLE if state == "environment" else store_path(settings.environ)
    rows["trust"] = (state, "default" if state in ("none", "untrusted") else origin)
    return rows


def _write_settings(
    context: CommandContext, rows: dict[str, tuple[object, str]], *, one: bool, origin: bool
) -> None:
    """Write the settings as lines. For a single setting without `origin` this is its value alone."""
    if one and not origin:
        ((name, (value, _)),) = rows.items()
        changes = _change_lines(context) if name == "trust" else []
        lines = [visible(_value_text(value)), *changes]
    else:
        lines = _setting_lines(context, rows, origin=origin)
    if origin and not one:
        lines += ["", *_layer_lines(context)]
    context.screen.answer("".join(f"{line.rstrip()}\n" for line in lines))


def _setting_lines(
    context: CommandContext, rows: dict[str, tuple[object, str]], *, origin: bool
) -> list[str]:
    texts = {name: f"{name} = {visible(_value_text(value))}" for name, (value, _) in rows.items()}
    size = max(map(len, texts.values()))
    lines = [
        f"{pad(text, size)}   {visible(rows[name][1])}" if origin else text
        for name, text in texts.items()
    ]
    if "trust" in rows and context.settings.trust.changes:
        lines += ["", "since it was accepted", *_change_lines(context)]
    return lines


_SPEC_FOLDERS = ("skills", "capabilities", "bindings", "services", "policies")


def _list_kinds(layer: Layer) -> list[str]:
    """Return the folders of specs in a layer, and the files of a layer of host overrides."""
    kinds = [name for name in _SPEC_FOLDERS if os.path.isdir(os.path.join(layer.root, name))]
    host_files = KIND_OF_FILE if layer.host else ()
    return kinds + [n for n in host_files if os.path.lexists(os.path.join(layer.root, n))]


def _layer_lines(context: CommandContext) -> list[str]:
    """Return a line for each registry layer with the kinds of files that it contains, weakest layer
    first.
    """
    if context.settings.problems:
        return []
    lines = []
    for layer in context.settings.layers:
        kinds = _list_kinds(layer)
        trusted = "trusted" if layer.trusted else "not trusted"
        shown = context.settings.display_path(layer.root)
        name = f"{layer.name}  {shown}" if layer.name != layer.root else shown
        lines.append(visible(f"{name}  {trusted}  {' '.join(kinds) or 'empty'}"))
    return ["layers, later wins", *(f"  {line}" for line in lines)]


def _change_lines(context: CommandContext) -> list[str]:
    """Return the changes since the project was trusted, and the command that accepts them."""
    changes = [f"  {what} {visible(name)}" for what, name in context.settings.trust.changes]
    return [*changes, "  accept it: cogcli config trust"] if changes else []


def _value_text(value: object) -> str:
    return "none" if value in (None, [], (), {}) else plain(value)
