"""`skills import`: makes a skill file from the text of a SKILL.md
(docs/reference/protocols.md#skill-folders).

1. The skill is one step that calls the requested capability, with the body as a literal and the
   input `request`. Which of its inputs take them follows from their names, see `_BODY` and
   `_REQUEST`; messages take both.
2. The folder's other files are copied next to it with their hashes, as data that nothing can run,
   in a folder without specs.
3. It appears whole or not at all, and only if it passes the checks of every skill."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

from cogcli.app.checks.registry_check import check_registry
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.authoring.exchange.skill_folder import SkillFolder
from cogcli.base.errors import USAGE, UnusableEnvironment, UsageError
from cogcli.base.files import hint_for_write, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, suggestion
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.value_types import Json

DOMAIN: Final = "imported"
FILES: Final = "_files"
_BODY: Final = (
    "instructions", "system", "system_prompt", "guidance", "context", "prompt", "text", "body", "content",
)  # fmt: skip
_REQUEST: Final = (
    "request", "query", "question", "task", "input", "message", "user", "prompt", "text", "content",
)  # fmt: skip
_MESSAGES: Final = "messages"
_MAX_BLOCK: Final = 200_000


class SkillImport(NamedTuple):
    """The result of an import: the written files, and warnings."""

    id: str
    file: str
    warnings: list[str]


def import_skill(settings: Settings, folder: SkillFolder, capability_id: str) -> SkillImport:
    """Write a skill made from a folder into the project. Raise UsageError, ProblemsFound or
    UnusableEnvironment.
    """
    if settings.project is None:
        hint = "make a directory with an empty cogcli.toml"
        raise UnusableEnvironment("project.none", "there is no project here", hint=hint)
    capability = _require_capability(settings, capability_id)
    step_input, takes_request = _input_lines(capability, folder.body)
    place = settings.require_inside(
        os.path.join(settings.project, "skills", "local", DOMAIN, folder.name)
    )
    if os.path.lexists(place):
        message = f"`{settings.display_path(place)}` exists"
        raise UsageError("output.exists", message, hint="remove it, then import again")
    text = _skill_text(folder, capability, step_input, takes_request=takes_request)
    file = os.path.join(place, "skill.yaml")
    with keep_trust(settings) as written:
        _write_folder(place, text, folder.files, settings.bound)
        problems = check_registry(settings, [file]).problems
        errors = [problem for problem in problems if problem.severity == "E"]
        if errors:
            shutil.rmtree(place, ignore_errors=True)
            raise ProblemsFound(errors, unlisted=USAGE)
        written(file, text.encode())
        for name, data in folder.files.items():
            written(os.path.join(place, FILES, *name.split("/")), data)
    warnings = [f"{problem.code}: {problem.message}" for problem in problems]
    if not takes_request:
        warnings.append(
            f"`{capability.id}` takes one text, the body; what is requested is not passed on"
        )
    warnings += _folder_warnings(folder)
    return SkillImport(f"{DOMAIN}.{folder.name}", settings.display_path(file), warnings)


def _require_capability(settings: Settings, id: str) -> Capability:
    catalog = open_registry(settings).everything()
    capability = catalog.capability(id)
    if capability is None:
        able = _callable_ids(catalog.capabilities.values())
        near = suggestion(id, able)
        raise UsageError(
            "usage.value",
            f"`--capability`: no capability `{id[:80]}`",
            hint=near or f"those that can be called with it: {_join_names(able)}",
            next=() if near else ("cogcli capabilities ls",),
        )
    return capability


def _folder_warnings(folder: SkillFolder) -> Iterator[str]:
    """Yield warnings about parts of the folder without effect in cogcli."""
    if folder.head.get("allowed-tools"):
        yield "`allowed-tools` grants nothing here: trust and safety are those of the capability"
    if folder.files:
        yield f"copied to {FILES}/, where nothing runs them: {_join_names(list(folder.files))}"
    if folder.left_out:
        yield f"left out: {_join_names(folder.left_out)}"


def _skill_text(
    folder: SkillFolder, capability: Capability, step_input: list[str], *, takes_request: bool
) -> str:
    """Return the text of the skill file.

    Texts of the folder become quoted strings or block scalars, so that none is parsed as YAML.
    """
    named = {key: folder.head.get(key) for key in ("license", "compatibility")}
    source = {
        "sha256": sha256(folder.document).hexdigest(),
        **{key: text for key, text in named.items() if isinstance(text, str)},
        "files": {name: sha256(data).hexdigest() for name, data in sorted(folder.files.items())},
    }
    lines = [
        f"id: {DOMAIN}.{folder.name}",
        'version: "1.0.0"',
        f"name: {_json_text(folder.name)}",
        f"description: {_json_text(folder.description)}",
        "metadata:",
        f"  imported: {_json_text(source)}",
        "inputs:",
        "  request:",
        "    type: string",
        f"    required: {_json_text(takes_request)}",
        "    description: What is wanted.",
        "outputs:",
        *(
            f"  {name}: {_json_text(_select_schema_members(field))}"
            for name, field in capability.outputs.items()
        ),
        "steps:",
        "  - id: call",
        f"    uses: {capability.id}",
        "    input:",
        *step_input,
        "    output:",
        *(f"      {name}: outputs.{name}" for name in capability.outputs),
    ]
    return "\n".join(lines) + "\n"


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}" if names else "none"


# -- the capability ----------------------------------------------------------------------------------------------------


def _input_lines(capability: Capability, body: str) -> tuple[list[str], bool]:
    """Return the step's input as lines of YAML, and whether the capability receives the request.

    Raise UsageError if body and request do not fit its inputs.
    """
    messages = capability.inputs.get(_MESSAGES)
    if messages is not None and messages.type in ("array", "any"):
        _require_filled_inputs(capability, [_MESSAGES])
        return _chat_lines(body), True
    return _text_lines(capability, body)


def _chat_lines(body: str) -> list[str]:
    return [
        f"      {_MESSAGES}:",
        "        - role: system",
        *_yaml_literal("          content", body),
        "        - {role: user, content: inputs.request}",
    ]


def _text_lines(capability: Capability, body: str) -> tuple[list[str], bool]:
    """Return the input lines of a capability with a text input, and whether the request has a separate input."""
    inputs = capability.inputs
    texts = [name for name, field in inputs.items() if field.type in ("string", "any")]
    if not texts:
        raise _unsuitable_error(capability, "takes no text")
    own = _choose_input(texts, _BODY, inputs)
    rest = [name for name in texts if name != own]
    # An input can take the request by its name, or because it is required.
    able = any(name in _REQUEST or inputs[name].required for name in rest)
    wanted = _choose_input(rest, _REQUEST, inputs) if able else ""
    _require_filled_inputs(capability, [own, wanted])
    lines = _yaml_literal(f"      {own}", body)
    return ([*lines, f"      {wanted}: inputs.request"] if wanted else lines), bool(wanted)


def _require_filled_inputs(capability: Capability, given_inputs: list[str]) -> None:
    """Raise UsageError for a capability that also requires other inputs."""
    lacking = [
        f"`{name}`"
        for name, field in capability.inputs.items()
        if field.needs_value and name not in given_inputs
    ]
    if lacking:
        raise _unsuitable_error(capability, f"also needs {', '.join(lacking)}")


def _callable_ids(capabilities: Iterable[Capability]) -> list[str]:
    """Return the ids of capabilities that an imported skill can call, those that take a request
    first."""
    found: dict[str, bool] = {}
    for capability in capabilities:
        with suppress(UsageError):
            found[capability.id] = _input_lines(capability, "")[1]
    return sorted(found, key=lambda id: (not found[id], id))


def _choose_input(
    names: list[str], preferred: tuple[str, ...], inputs: dict[str, FieldSpec]
) -> str:
    """Return the first preferred name, else the first required input, else the first name."""
    for name in preferred:
        if name in names:
            return name
    return next((name for name in names if inputs[name].required), names[0])


def _unsuitable_error(capability: Capability, fault: str) -> UsageError:
    return UsageError(
        "usage.value",
        f"`--capability {capability.id}`: it {fault}",
        expected="a capability that takes instructions and a request as texts, or messages",
    )


# -- the file ----------------------------------------------------------------------------------------------------------


def _select_schema_members(field: FieldSpec) -> Json:
    """Return the members of a field's declaration that decide whether a value is valid."""
    declared = {
        "type": field.type,
        "required": field.required or None,
        "default": field.default,
        "description": field.description or None,
    }
    return {name: value for name, value in declared.items() if value is not None}


def _yaml_literal(key: str, text: str) -> list[str]:
    """Return a string as a YAML literal: a block scalar if possible, else quoted."""
    indent = " " * (len(key) - len(key.lstrip()) + 2)
    lines = text.split("\n")
    size = sum(len(line.encode()) + len(indent) + 3 for line in lines)
    if size <= _MAX_BLOCK and lines[-1].strip():
        block = [f"{indent}  {line}" if line else "" for line in lines]
        return [f"{key}:", f"{indent}$literal: |2-", *block]
    return [f"{key}:", f"{indent}$literal: {_json_text(text)}"]


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_folder(place: str, text: str, files: dict[str, bytes], bound: str) -> None:
    """Write the folder next to its final location, then rename it, so that it is never incomplete."""
    above = os.path.dirname(place)
    building = os.path.join(above, f".tmp-{os.urandom(6).hex()}")
    try:
        os.makedirs(building)
        for name, data in files.items():
            path = os.path.join(building, FILES, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomic(path, data, mode=0o644, bound=bound)
        write_atomic(os.path.join(building, "skill.yaml"), text.encode(), mode=0o644, bound=bound)
        os.rename(building, place)
    except OSError as error:
        shutil.rmtree(building, ignore_errors=True)
        raise UnusableEnvironment(
            "env.disk", f"`{place}` cannot be written: {error.strerror}", hint=hint_for_write(error)
        ) from error
