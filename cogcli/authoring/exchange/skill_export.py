"""`skills export`: skills as folders with a SKILL.md, for agents that read such folders
(docs/reference/protocols.md#skill-folders).

The head is YAML that even strict readers accept: block style, every text in quotes, no `---`
inside."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from cogcli.app.inventory.kinds import spec_details
from cogcli.app.settings import Settings
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.files import hint_for_write, write_atomic
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json

FILE: Final = "SKILL.md"
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#])")


def export_skills(settings: Settings, ids: Sequence[str], folder: str) -> list[str]:
    """Write the skills and return the files, one per skill, in the order of `ids`.

    Write all or nothing. Raise SkillNotFoundError, ProblemsFound, UsageError or UnusableEnvironment.
    """
    documents: dict[str, str] = {}
    named: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        name = folder_name(id)
        if name in named:
            message = f"`{id}` and `{named[name]}` would both be `{name}`"
            raise UsageError("usage.value", message, hint="export one at a time")
        named[name] = id
        path = os.path.join(folder, name)
        settings.require_inside(path)
        if os.path.lexists(path):
            raise UsageError(
                "output.exists", f"`{path}` exists", hint="remove it, or give another --to DIR"
            )
        documents[path] = document(name, spec_details(settings, "skills", id))
    return [_write_file(path, text) for path, text in documents.items()]


def folder_name(id: str) -> str:
    """Return the name of a skill's folder: its id with hyphens. A name that is too long is
    truncated and ends with a hash.
    """
    name = re.sub(r"[._]", "-", id)
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:55].rstrip('-')}-{sha256(id.encode()).hexdigest()[:8]}"


def document(name: str, spec: Json) -> str:
    """Return the text of a SKILL.md, from the object of `skills show`."""
    head = [
        "---",
        f"name: {_quote_text(name)}",
        f"description: {_quote_text(_shorten_description(spec['description'] or spec['name']))}",
        "metadata:",
        f"  cogcli-skill: {_quote_text(spec['id'])}",
        f"  cogcli-version: {_quote_text(spec['version'])}",
        "---",
    ]
    body = [
        "",
        f"# {_escape_markdown(spec['name'])}",
        "",
        _escape_markdown(spec["description"]),
        "",
        "Run it with values of your own; standard output is one JSON object with the outputs:",
        "",
        "```sh",
        visible(spec["run"]).replace("```", ""),
        "```",
    ]
    for title, fields in (("Inputs", spec["inputs"]), ("Outputs", spec["outputs"])):
        if fields:
            body += ["", f"## {title}", "", *_field_table(fields)]
    body += [
        "",
        "`cogcli trace @last` tells what a run did; a step that waits for a person ends the command with 5.",
    ]
    return "\n".join([*head, *body]) + "\n"


def _field_table(fields: Json) -> Iterator[str]:
    yield "| name | type | | description |"
    yield "|---|---|---|---|"
    for name, field in fields.items():
        words = ["required"] if field["required"] and field["default"] is None else []
        if field["default"] is not None:
            words.append(
                f"default {_escape_markdown(json.dumps(field['default'], ensure_ascii=False))}"
            )
        if field["enum"]:
            words.append(f"one of {_escape_markdown(', '.join(map(str, field['enum'])))}")
        yield f"| `{name}` | {field['type']} | {', '.join(words)} | {_escape_markdown(field['description'])} |"


def _escape_markdown(text: str) -> str:
    """Return text escaped for a line of Markdown."""
    return _MARKUP.sub(r"\\\1", visible(" ".join(text.split())))


def _shorten_description(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[: LONGEST_DESCRIPTION - 1]}…"


def _quote_text(text: str) -> str:
    """Return a double-quoted text without `---`, because some readers look for it before they parse
    quotes."""
    return json.dumps(text, ensure_ascii=False).replace("---", "\\u002d\\u002d\\u002d")


def _write_file(path: str, text: str) -> str:
    file = os.path.join(path, FILE)
    try:
        os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
        os.mkdir(path)
        write_atomic(file, text.encode(), mode=0o644)
    except OSError as error:
        raise UnusableEnvironment(
            "env.disk", f"`{path}` cannot be written: {error.strerror}", hint=hint_for_write(error)
        ) from error
    return file.replace(os.sep, "/")
