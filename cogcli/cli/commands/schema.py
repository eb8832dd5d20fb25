"""`schema [NAME]`: one JSON Schema, the list of their names, or all of them written to a directory."""

from __future__ import annotations

import os
from typing import Annotated

from cogcli.app.editor_schemas import ids_of
from cogcli.app.schemas import NAMES, schema_file
from cogcli.app.schemas import schema as schema_of
from cogcli.base.errors import OK, UnusableEnvironment
from cogcli.base.files import hint_for_write, write_atomic
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.options import OUTPUT, argument, command, switch, text, wrong_flag, wrong_value


@command(
    examples=(
        ("cogcli schema", "list them"),
        ("cogcli schema skill > skill.schema.json", "one"),
        (
            "cogcli schema --all -o .cogcli/schemas",
            "all, with the ids of this project, for an editor",
        ),
    )
)
def schema(
    context: CommandContext,
    name: Annotated[str | None, argument("[NAME]", NAMES)] = None,
    *,
    all: Annotated[bool, switch("--all", help="write every schema")] = False,
    o: Annotated[str | None, text("-o", "DIR", "the directory for --all", OUTPUT)] = None,
) -> int:
    """Write a schema, the names of all schemas, or the paths of the written files."""
    if all and name is not None:
        raise wrong_flag("`--all` takes no name", "leave one of them out")
    if all:
        return _write_all(context, o)
    if o is not None:
        raise wrong_flag("`-o` belongs to `--all`")
    if name is None:
        context.own["json_schema"] = list(NAMES)
        context.answer("".join(f"{name}\n" for name in NAMES))
    else:
        context.own["json_schema"] = schema_of(name)
        context.answer(dumps(context.own["json_schema"], indent=True) + "\n")
    return OK


def _write_all(context: CommandContext, folder: str | None) -> int:
    """Write all schemas to a folder. Raise UsageError or UnusableEnvironment `env.disk`."""
    if folder is None:
        raise wrong_value("`--all` needs `-o DIR`")
    context.settings.require_inside(folder)
    written, known = [], ids_of(context.settings)
    try:
        os.makedirs(folder, exist_ok=True)
        for name in NAMES:
            path = os.path.join(folder, f"{name}.schema.json")
            write_atomic(path, schema_file(name, known), mode=0o644)
            written.append(path.replace(os.sep, "/"))
    except OSError as error:
        raise UnusableEnvironment(
            "env.disk",
            f"`{folder}` cannot be written: {error.strerror}",
            hint=hint_for_write(error),
        ) from error
    context.own["created"] = written
    context.answer("".join(f"{visible(path)}\n" for path in written))
    return OK
