"""`skills export` and `skills import`: exchange skills as folders with a SKILL.md."""

from __future__ import annotations

from typing import Annotated

from cogcli.authoring.exchange.skill_export import export_skills
from cogcli.authoring.exchange.skill_folder import read_folder
from cogcli.authoring.exchange.skill_import import import_skill
from cogcli.base.errors import OK, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, text


@command(
    examples=(
        ("cogcli skills export text.brief --to skills-for-agents", "one: text-brief/SKILL.md"),
        ("cogcli skills export text.brief doc.digest --to .claude/skills", "several"),
        ("cogcli skills export text.brief --to out --json | jq -r '.created[]'", "for scripts"),
    ),
    exits=(0, 2, 3),
    maximum=1000,
)
def export_folders(
    context: CommandContext,
    ids: Annotated[list[str], argument("ID...", "skills")],
    *,
    to: Annotated[str, text("--to", "DIR", "the directory for the folders; required", OUTPUT)] = "",
) -> int:
    """Write each skill as a folder, and print the written files."""
    if not to:
        raise _missing_flag(context, "--to DIR")
    return _answer_files(context, export_skills(context.settings, ids, to))


@command(
    examples=(
        (
            "cogcli skills import ./pdf-forms --capability llm.text.generate",
            "as imported.pdf-forms",
        ),
        (
            "cogcli skills import ./release-notes --capability text.content.summarize",
            "with another capability",
        ),
        ("cogcli skills import ./pdf-forms --capability llm.text.generate --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def import_folder(
    context: CommandContext,
    folder: Annotated[str, argument("DIR")],
    *,
    capability: Annotated[
        str,
        text(
            "--capability",
            "CAP",
            "the capability that receives the text; required",
            completes="capabilities",
        ),
    ] = "",
) -> int:
    """Write a skill made from a folder, and print its file."""
    if not capability:
        raise _missing_flag(context, "--capability CAP")
    result = import_skill(context.settings, read_folder(folder), capability)
    for warning in result.warnings:
        context.warnings.append({"code": "import.note", "message": warning})
        if not context.screen.quiet:
            context.screen.notify_line([("note", "warning"), (f": {visible(warning)}", "")])
    return _answer_files(context, [result.file])


def _answer_files(context: CommandContext, files: list[str]) -> int:
    """Print the written files, and add them to the envelope."""
    context.own["created"] = files
    context.answer("".join(f"{visible(file)}\n" for file in files))
    return OK


def _missing_flag(context: CommandContext, flag: str) -> UsageError:
    """Return the error for a missing flag."""
    return UsageError("usage.flag", f"`{context.call.command}` needs `{flag}`", expected=flag)
