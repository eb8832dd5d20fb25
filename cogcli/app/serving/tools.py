"""Skills as tools of the Model Context Protocol: names, schemas, hints (docs/reference/protocols.md#serve).

The skills are loaded and checked once, when a server starts: what a client sees listed is what runs, whatever happens
to the files meanwhile. Options are fixed here, too: nothing that a client sends changes trust, confirmations or
bindings. Knows no library of the protocol.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError
from cogcli.core.json_pointer import pointer_of
from cogcli.core.problems import ProblemsFound
from cogcli.core.redact import names_secret
from cogcli.runs.prepare import PreparedRun, RunRequest, check_inputs, prepare_without_inputs
from cogcli.schema.visitor import rewrite
from cogcli.specs.capability import Capability
from cogcli.specs.fields import Fields, FieldSpec
from cogcli.specs.skill import Skill

NAMES: Final = ("underscore", "dots")
LONGEST: Final = 64
"""Hosts refuse names that are longer, or that hold anything but ASCII letters, digits, `_` and `-`."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUM: Final = 8
_ANCHORS: Final = frozenset(("$dynamicRef", "$id", "$anchor", "$dynamicAnchor"))
"""Keywords that refer to a location: they change their meaning when a schema is moved into another one."""


class Served(NamedTuple):
    """A skill as a tool, with everything that a run needs but the inputs."""

    tool: dict[str, Any]
    loaded: PreparedRun

    def with_inputs(self, given: dict[str, Any]) -> PreparedRun:
        """The skill with checked inputs. Raises ProblemsFound."""
        inputs, wrong = check_inputs(self.loaded.skill.inputs, given)
        if wrong:
            raise ProblemsFound(wrong)
        return self.loaded._replace(inputs=inputs)


class Offer(NamedTuple):
    """All tools by name, and the ids of the skills that cannot run here."""

    tools: dict[str, Served]
    left_out: list[str]


def offer_skills(settings: Settings, request: RunRequest, only: Sequence[str], names: str) -> Offer:
    """The skills that can run with the options of `request`; with `only`, those with these ids or matching these globs.

    Raises SkillNotFoundError for an id or glob without a skill, ProblemsFound for an id whose skill cannot run; a
    skill that only a glob matches is left out then.
    """
    registry = open_registry(settings)
    tools: dict[str, Served] = {}
    left_out = []
    known = registry.ids("skill")
    tool_names = names_of([*known, *only], names)
    # An id or glob that matches nothing is kept: loading it raises SkillNotFoundError.
    matching = {id for word in only for id in fnmatch.filter(known, word) or [word]}
    for id in sorted(matching) if only else known:
        try:
            catalog, asked = registry.reach(id), request._replace(skill_id=id)
            prepared = prepare_without_inputs(catalog, asked, settings.environ)
        except CogcliError:
            if id in only:
                raise
            left_out.append(id)
        else:
            name = tool_names[id]
            tools[name] = Served(
                tool_of(prepared.skill, prepared.catalog.capabilities.values(), name), prepared
            )
    return Offer(tools, left_out)


def names_of(ids: Iterable[str], names: str = NAMES[0]) -> dict[str, str]:
    """The tool's name of each skill: with `dots` its id; else the id with `__` for a dot.

    A name that would be too long, or that several of these ids would have, ends with a digest of the id: which skills
    are on offer does not change the others' names as long as the same ids are given.
    """
    known = sorted(set(ids))
    if names == "dots":
        return {id: id for id in known}
    plain = {id: _OTHER.sub("_", id.replace(".", "__")) for id in known}
    shared = Counter(plain.values())
    return {
        id: name
        if len(name) <= LONGEST and shared[name] == 1
        else f"{name[: LONGEST - _SUM - 1]}-{sha256(id.encode()).hexdigest()[:_SUM]}"
        for id, name in plain.items()
    }


def tool_of(skill: Skill, capabilities: Iterable[Capability], name: str) -> dict[str, Any]:
    """The tool, as in `tools/list`, of a skill that can call these capabilities, gates included."""
    return {
        "name": name,
        "title": skill.name,
        "description": skill.description,
        "inputSchema": schema_of(skill.inputs) | {"additionalProperties": False},
        "outputSchema": schema_of(skill.outputs),
        "annotations": {"title": skill.name, **hints_of(capabilities)},
    }


def hints_of(capabilities: Iterable[Capability]) -> dict[str, bool]:
    """The hints for these capabilities; an unknown effect class counts as `effect`."""
    effects = {capability.effect for capability in capabilities}
    read_only = effects <= {"none"}
    idempotent = effects <= {"none", "idempotent"}
    return {"readOnlyHint": read_only, "destructiveHint": not read_only, "idempotentHint": idempotent}


def schema_of(fields: Fields) -> dict[str, Any]:
    """The JSON Schema of declared fields: never narrower than what the skill takes or gives."""
    required = [name for name, field in fields.items() if field.required and field.default is None]
    shared: dict[str, Any] = {}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {},
    }
    for name, field in fields.items():
        # A client must not see a secret of the skill file: no default or enum under a secret name.
        public = field._replace(default=None, enum=None) if names_secret(name) else field
        schema["properties"][name] = _field(public, name, shared)
    if required:
        schema["required"] = required
    return schema | ({"$defs": shared} if shared else {})


def _field(field: FieldSpec, place: str, shared: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {} if field.type == "any" else {"type": field.type}
    if field.description:
        schema["description"] = field.description
    if field.default is not None:
        schema["default"] = field.default
    if field.enum is not None:
        schema["enum"] = field.enum
    if field.items is not None:
        schema["items"] = _field(field.items, f"{place}.items", shared)
    if isinstance(field.schema, dict) and not _names_places(field.schema):
        schema["allOf"] = [_relocate(field.schema, place, shared)]
    return schema


def _names_places(schema: Any) -> bool:
    if isinstance(schema, dict):
        return bool(_ANCHORS & schema.keys()) or any(map(_names_places, schema.values()))
    return isinstance(schema, list) and any(map(_names_places, schema))


def _relocate(schema: dict[str, Any], place: str, shared: dict[str, Any]) -> dict[str, Any]:
    """A field's schema as it reads inside the tool's: what it defines stands in the tool's `$defs`, under the field's
    name, and so does all of it where it refers to itself."""
    definitions = schema.get("$defs")
    names = {name: f"{place}.{name}" for name in (definitions if isinstance(definitions, dict) else ())}
    to_itself = False

    def moved(reference: str) -> str:
        nonlocal to_itself
        for name, key in names.items():
            old = f"#/$defs/{_escaped(name)}"
            if reference == old or reference.startswith(f"{old}/"):
                return f"#/$defs/{_escaped(key)}{reference[len(old) :]}"
        to_itself = True
        return f"#/$defs/{_escaped(place)}{reference[1:]}"

    def renamed(part: dict[str, Any]) -> dict[str, Any]:
        reference = part.get("$ref")
        found = isinstance(reference, str) and reference.startswith("#")
        return {**part, "$ref": moved(str(reference))} if found else part

    whole = {key: part for key, part in schema.items() if key != "$schema"}
    own: dict[str, Any] = rewrite({key: part for key, part in whole.items() if key != "$defs"}, renamed)
    shared.update({key: rewrite(schema["$defs"][name], renamed) for name, key in names.items()})
    if not to_itself:
        return own
    shared[place] = rewrite(whole, renamed)
    return {"$ref": f"#/$defs/{_escaped(place)}"}


def _escaped(name: str) -> str:
    """A member's name in a JSON pointer within a URI reference."""
    from urllib.parse import quote

    return quote(pointer_of((name,))[1:], safe="~.-_")
