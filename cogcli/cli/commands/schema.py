"""`schema [NAME]`: a JSON Schema, the list of them, or all into a directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogcli.app.schemas import NAMES, schema
from cogcli.cli.envelope import dumps
from cogcli.core.errors import OK, EnvironmentRefusal, UsageError
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Answer with a schema, with the names, or with the files written."""
    given = context.arguments
    if given.on("--all"):
        if given.words:
            raise UsageError("usage.flag", "`--all` takes no name", hint="leave one of them out")
        return _write_all(context, given.text("-o"))
    if given.given("-o"):
        raise UsageError("usage.flag", "`-o` belongs to `--all`")
    if not given.words:
        context.own["json_schema"] = list(NAMES)
        text = "".join(f"{name}\n" for name in NAMES)
    else:
        found = schema(given.words[0])
        context.own["json_schema"] = found
        text = dumps(found, indent=True) + "\n"
    if not context.json:
        context.screen.answer(text)
    return OK


def _write_all(context: CommandContext, folder: str | None) -> int:
    from cogcli.core.files import write_atomic

    if folder is None:
        raise UsageError("usage.value", "`--all` needs `-o DIR`")
    written = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name in NAMES:
            path = os.path.join(folder, f"{name}.schema.json")
            write_atomic(path, (dumps(schema(name), indent=True) + "\n").encode(), mode=0o644)
            written.append(path.replace(os.sep, "/"))
    except OSError as error:
        raise EnvironmentRefusal("env.disk", f"`{folder}` cannot be written: {error.strerror}") from error
    context.own["created"] = written
    if not context.json:
        context.screen.answer("".join(f"{visible(path)}\n" for path in written))
    return OK
