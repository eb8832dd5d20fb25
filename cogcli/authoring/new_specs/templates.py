"""The first content of new projects, skills, capabilities and packs
(docs/reference/command-line.md#new)."""

from __future__ import annotations

import os
from shlex import quote
from typing import Final

from cogcli.app.editor_schemas import write_schemas
from cogcli.app.registry import open_registry, read_spec_text
from cogcli.app.settings import Settings
from cogcli.app.settings.config import PROJECT_FILE
from cogcli.app.settings.trust_accept import accept_folder
from cogcli.authoring.new_specs.new_files import (
    SCHEMA_LINE,
    NewFile,
    NewSpecs,
    find_write_problems,
    project_of,
    refused_problem,
    require_free,
    schema_files,
    schema_line,
    written_files,
)
from cogcli.base.errors import UsageError
from cogcli.base.terminal_text import is_plain_name, visible
from cogcli.base.yaml.positions import YamlPositions
from cogcli.base.yaml.reader import parse
from cogcli.declarations.spec_types import LONGEST_ID
from cogcli.specs.id_grammar import CHANNEL, PLAIN_ID, SKILL_ID, is_capability_id

FIRST_SKILL: Final = "demo.hello"

_SKILL: Final = """\
id: {id}
version: "1.0.0"
name: {id}
description: Tidies a text and counts its words.
inputs:
  text: {{type: string, default: "  Hello   world  "}}
outputs:
  text: {{type: string, required: true}}
  words: {{type: integer, required: true}}
steps:
  # A step calls a capability: `cogcli capabilities ls` lists what there is.
  - id: tidy
    uses: text.content.normalize
    input: {{text: inputs.text}} # from the skill's inputs ...
    output: {{text: outputs.text}} # ... to its outputs, or to vars.NAME for later steps
  - id: count
    uses: text.readability.score
    input: {{text: outputs.text}}
    output: {{measures.words: outputs.words}}
"""
_CAPABILITY: Final = """\
# What a step may ask for and gets, whoever does it. A binding says who: `cogcli new binding {id} ...`.
id: {id}
version: "1.0.0"
description: Says what {id} does.
inputs:
  text: {{type: string, required: true, description: What is to be worked on.}}
outputs:
  text: {{type: string, required: true, description: What came of it.}}
# Without side effects it may be repeated freely; else say so, and what a person has to allow (safety).
properties: {{deterministic: true, side_effects: false, idempotent: true}}
"""
_PACK: Final = """\
# What an agent may do, and how a request becomes a plan.
contract_meta: {{contract_version: "1.0"}}
pack_meta:
  pack_id: {id}
  pack_version: 1.0.0
  defaults: {{safety_mode: read_only}} # nothing that changes something
policy_layer:
  permissions: [{{role: assistant, allow: ["skill:text.brief"]}}]
tooling_layer: {{}}
decision_layer:
  intents:
    # A request that says one of these phrases, with what may be called for it.
    - {{id: brief, risk: read_only, phrases: [brief, summary], capabilities: ["skill:text.brief"]}}
tone_and_comms: {{agent: {{role: assistant}}}}
"""
_SETTINGS: Final = """\
#:schema .cogcli/schemas/config.schema.json
# This file makes the directory a project. All settings: cogcli config show
"""
_IGNORED: Final = ".cogcli/\n"


_TRUSTED_NOTE: Final = (
    "the project is trusted: what is in this folder may start code and read your environment"
)
_UNTRUSTED_NOTE: Final = (
    "it held files before, so it is not trusted; if it is yours: cogcli config trust"
)


def _resolve_project_root(settings: Settings, name: str) -> str:
    """Return the absolute path of a new project. Raise UsageError for an invalid name, or a file at
    that path.
    """
    if not is_plain_name(name):
        raise UsageError(
            "usage.value",
            f"`{visible(name[:80])}` is not a name of a directory",
            expected="NAME, or .",
        )
    root = os.path.abspath(os.path.join(settings.base, name))
    if os.path.lexists(root) and not os.path.isdir(root):
        raise UsageError(
            "output.exists",
            f"`{settings.display_path(root)}` is not a directory",
            hint="give another name",
        )
    return root


def new_project(settings: Settings, name: str, *, start: str, force: bool) -> NewSpecs:
    """Create a project in a new directory, or in an existing one without changing its files.

    `start` is the directory to which `name` is relative, by default the working directory. A new or empty directory is
    trusted as a folder, because its owner will add all its content. Raise UsageError or UnusableEnvironment `env.disk`.
    """
    root = _resolve_project_root(settings, name)
    was_empty = not os.path.isdir(root) or not os.listdir(root)
    skill = f"skills/local/{FIRST_SKILL.replace('.', '/')}/skill.yaml"
    files = [
        NewFile(PROJECT_FILE, _SETTINGS.encode()),
        _from_template("skill", skill, _SKILL, FIRST_SKILL),
    ]
    ignored = os.path.lexists(os.path.join(root, ".gitignore"))
    if not ignored:
        files.append(NewFile(".gitignore", _IGNORED.encode()))
    with written_files(settings, root, [*files, *schema_files(root)], force=force):
        if was_empty:
            accept_folder(root, settings.environ)
        write_schemas(Settings({}, settings.environ, base=root))
    notes = [_TRUSTED_NOTE if was_empty else _UNTRUSTED_NOTE]
    notes += ["add .cogcli/ to .gitignore"] if ignored else []
    where = "" if root == settings.base and not start else f" -C {quote(os.path.join(start, name))}"
    shown = [settings.display_path(os.path.join(root, file.path)) for file in files]
    return NewSpecs(
        shown, notes, [f"cogcli run {FIRST_SKILL}{where}", f"cogcli validate --strict{where}"]
    )


def new_skill(
    settings: Settings, id: str | None, *, like: str | None, channel: str, force: bool
) -> NewSpecs:
    """Create a skill: a runnable example, or a copy of another skill with a new id.

    Raise UsageError or UnusableEnvironment `project.none`, `env.disk`.
    """
    root = project_of(settings)
    if id is None and like is None:
        raise UsageError(
            "usage.flag", "`new skill` needs an ID, or `--like` a skill", expected="ID"
        )
    id = id or _default_copy_id(str(like))
    _require_id(
        SKILL_ID.fullmatch(id) is not None and len(id) <= LONGEST_ID, id, "a skill", "demo.hello"
    )
    require_channel(channel)
    path = f"skills/{channel}/{id.replace('.', '/')}/skill.yaml"
    require_free(settings, root, [NewFile(path, b"")], force=force)
    if like is None and id in open_registry(settings).ids("skill") and not force:
        hint = f"to change it, copy it: cogcli new skill {id} --like {id}"
        raise UsageError("output.exists", f"there is a skill `{id}` already", hint=hint)
    file = (
        _from_template("skill", path, _SKILL, id)
        if like is None
        else _copied_file(settings, like, path, id)
    )
    _place_files(settings, [file], force=force)
    look = f"cogcli run {id}" if like is None else f"cogcli skills show {id}"
    return _new_specs(
        settings, [path], [look, f"cogcli validate {quote(_display_path(settings, path))}"]
    )


def _default_copy_id(like: str) -> str:
    """Return the default id of a copy: `DOMAIN.my-SLUG` for a skill `DOMAIN.SLUG`."""
    domain, _, slug = like.partition(".")
    return f"{domain}.my-{slug}"


def _copied_file(settings: Settings, like: str, path: str, id: str) -> NewFile:
    """Return a copy of a skill's file with another id and all its comments. Raise
    SkillNotFoundError or UsageError.
    """
    registry = open_registry(settings)
    target = os.path.realpath(os.path.join(project_of(settings), path))
    paths = registry.paths("skill", like)
    sources = [source for source in paths if os.path.realpath(source) != target]
    if not sources:
        registry.reach(like)  # this raises, and suggests similar ids
        raise UsageError(
            "usage.value", f"`--like`: `{like}` would be a copy of itself", hint="give another ID"
        )
    text = read_spec_text(settings, sources[-1]).removeprefix("\ufeff").replace("\r\n", "\n")
    domain, slug = id.split(".")
    values = {"id": id, "channel": path.split("/")[1], "domain": domain, "slug": slug}
    written, lines = parse(text.encode(), file=path).value or {}, text.split("\n")
    spans = [
        (YamlPositions(text).at_pointer((key,)), value)
        for key, value in values.items()
        if written.get(key)
    ]
    for span, value in sorted(spans, key=lambda each: (each[0].line, each[0].column), reverse=True):
        line = lines[span.line - 1]
        lines[span.line - 1] = f"{line[: span.column - 1]}{value}{line[span.end_column - 1 :]}"
    kept = [line for line in lines if not line.startswith(SCHEMA_LINE)]
    return NewFile(path, (schema_line("skill", path) + "\n".join(kept)).encode())


def new_capability(settings: Settings, id: str, *, force: bool) -> NewSpecs:
    """Create a capability. Raise the errors of `new_skill`."""
    project_of(settings)
    _require_id(is_capability_id(id), id, "a capability", "orders.item.read")
    known = open_registry(settings).everything().capability(id)
    path = f"capabilities/{id}.yaml"
    if known is not None and known.file != _display_path(settings, path) and not force:
        hint = "give another id, or --force to put yours in its place"
        raise UsageError(
            "output.exists", f"there is a capability `{id}` already: {known.file}", hint=hint
        )
    _place_files(settings, [_from_template("capability", path, _CAPABILITY, id)], force=force)
    return _new_specs(settings, [path], [f"cogcli capabilities show {id}"])


def new_pack(settings: Settings, id: str, *, force: bool) -> NewSpecs:
    """Create version 1.0.0 of a pack. Raise the errors of `new_skill`."""
    project_of(settings)
    _require_id(PLAIN_ID.fullmatch(id) is not None, id, "a pack", "support-desk")
    path = f"packs/{id}/1.0.0.yaml"
    _place_files(settings, [_from_template("pack", path, _PACK, id)], force=force)
    return _new_specs(
        settings, [path], [f"cogcli pack check {id}@1.0.0", f"cogcli pack pin {id}@1.0.0"]
    )


def require_channel(channel: str) -> None:
    """Raise UsageError for a string that is not a valid channel."""
    if not CHANNEL.fullmatch(channel):
        message = f"`--channel`: `{visible(channel[:80])}` is not a channel"
        raise UsageError(
            "usage.value", message, expected="a small letter, then letters, digits and `-`"
        )


def _require_id(is_valid: bool, id: str, kind: str, example: str) -> None:
    if not is_valid:
        message = f"`{visible(id[:80])}` is not an id of {kind}"
        raise UsageError("usage.value", message, expected=f"such as {example}")


def _from_template(kind: str, path: str, template: str, id: str) -> NewFile:
    """Return a spec file made from a template, with the comment for editors."""
    return NewFile(path, f"{schema_line(kind, path)}{template.format(id=id)}".encode())


def _place_files(settings: Settings, files: list[NewFile], *, force: bool) -> None:
    written = find_write_problems(
        settings, [*files, *schema_files(project_of(settings))], force=force
    )
    if written.problems:
        raise refused_problem(written.problems[0])


def _new_specs(settings: Settings, paths: list[str], commands: list[str]) -> NewSpecs:
    return NewSpecs([_display_path(settings, path) for path in paths], [], commands)


def _display_path(settings: Settings, path: str) -> str:
    return settings.display_path(os.path.join(project_of(settings), path))
