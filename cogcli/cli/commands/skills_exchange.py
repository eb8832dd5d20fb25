"""`skills export`, `skills import`: skills as folders with a SKILL.md, out and in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import OK, UsageError
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Write the folders, or the skill; answer with the files."""
    command = context.arguments.command
    files = _export(context) if command and command.name == "skills export" else _import(context)
    context.own["created"] = files
    if not context.json:
        context.screen.answer("".join(f"{visible(file)}\n" for file in files))
    return OK


def _export(context: CommandContext) -> list[str]:
    from cogcli.app.skill_export import export_skills

    return export_skills(context.settings, context.arguments.words, _required(context, "--to", "DIR"))


def _import(context: CommandContext) -> list[str]:
    from cogcli.app.skill_folder import read_folder
    from cogcli.app.skill_import import import_skill

    capability = _required(context, "--capability", "CAP")
    result = import_skill(context.settings, read_folder(context.arguments.words[0]), capability)
    for warning in result.warnings:
        context.warnings.append({"code": "import.note", "message": warning})
        if not context.screen.quiet:
            context.screen.notify_line([("note", "warning"), (f": {visible(warning)}", "")])
    return [result.file]


def _required(context: CommandContext, flag: str, shape: str) -> str:
    value = context.arguments.text(flag)
    if not value:
        name = context.arguments.command.name if context.arguments.command else ""
        raise UsageError("usage.flag", f"`{name}` needs `{flag} {shape}`", expected=f"{flag} {shape}")
    return value
