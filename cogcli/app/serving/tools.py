"""Skills as tools of the Model Context Protocol: names, schemas and hints
(docs/reference/protocols.md#serve).

The skills are loaded and checked once, when a server starts. A client runs exactly the listed
skills, even if files change later. The options are fixed, too, so that no client changes trust,
confirmations or bindings. This module imports no library of the protocol."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Final

from cogcli.app.file_scope import find_file_scope
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import BindingResolutionError, CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.run.input_origins import CLIENT
from cogcli.run.launch import may_reach_network
from cogcli.run.prepare import PreparedRun, RunRequest, pin_and_check_inputs, prepare_without_inputs
from cogcli.specs.field_schema import schema_of
from cogcli.specs.selection import SelectionOptions, select

NAMES: Final = ("underscore", "dots")
LONGEST: Final = 64
"""The most characters of a tool name. Hosts refuse longer ones, and any character but ASCII
letters, digits, `_` and `-`."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUM: Final = 8


class ServedSkill(NamedTuple):
    """A skill as a tool, with everything that a run needs except the inputs."""

    tool: Json
    loaded: PreparedRun

    def with_inputs(self, given: Json) -> PreparedRun:
        """Return the prepared run with checked inputs. Raise ProblemsFound."""
        origins = dict.fromkeys(given, CLIENT)
        request = self.loaded.request._replace(inputs=given, origins=origins)
        inputs, files, wrong = pin_and_check_inputs(self.loaded.skill.inputs, request)
        if wrong:
            raise ProblemsFound(wrong)
        return self.loaded._replace(inputs=inputs, files=files, request=request)


class ToolOffer(NamedTuple):
    """The offered tools by name, and the ids of the skills that cannot run here."""

    tools: dict[str, ServedSkill]
    left_out: list[str]


def offer_skills(
    settings: Settings, request: RunRequest, only: Sequence[str], names: str
) -> ToolOffer:
    """Return the skills that can run with the options of `request`. With `only`, return those that
    match these ids or globs.

    Raise SkillNotFoundError for an id or glob that matches no skill, and ProblemsFound for an id
    whose skill cannot run. A skill that matches only a glob and cannot run is omitted."""
    registry = open_registry(settings)
    tools: dict[str, ServedSkill] = {}
    left_out = []
    known = registry.readable().ids("skill")
    tool_names = name_tools([*known, *only], names)
    # An id or glob that matches nothing is kept: loading it raises SkillNotFoundError.
    matching = {id for word in only for id in fnmatch.filter(known, word) or [word]}
    for id in sorted(matching) if only else known:
        try:
            catalog = registry.reach(id)
            asked = request._replace(skill_id=id, find_files=partial(find_file_scope, settings))
            prepared = prepare_without_inputs(catalog, asked, settings.environ)
        except CogcliError:
            if id in only:
                raise
            left_out.append(id)
        else:
            name = tool_names[id]
            capabilities = prepared.catalog.capabilities.values()
            is_open = _is_open_world(settings, prepared)
            tool = tool_of(prepared.skill, capabilities, name, is_open=is_open)
            tools[name] = ServedSkill(tool, prepared)
    return ToolOffer(tools, left_out)


def name_tools(ids: Iterable[str], names: str = NAMES[0]) -> dict[str, str]:
    """Return the tool name of each skill. With `dots` it is the id; otherwise each dot of the id
    becomes `__`.

    A name that would be too long or ambiguous ends with a digest of the id. The names depend only
    on `ids`, not on which skills are offered."""
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


def _is_open_world(settings: Settings, prepared: PreparedRun) -> bool:
    """Return whether a run of a skill may reach another machine through its chosen bindings, as far as is known."""
    catalog = prepared.catalog
    selection = SelectionOptions.of(prepared.request.options, settings.environ)
    try:
        chains = [select(catalog, id, selection).chain for id in catalog.capabilities]
    except BindingResolutionError:
        return True
    links = [link for chain in chains for link in chain if link.eligible]
    return may_reach_network(catalog, {link.service_id or "" for link in links})


def tool_of(
    skill: Skill, capabilities: Iterable[Capability], name: str, *, is_open: bool = True
) -> Json:
    """Return a skill as an entry of `tools/list`. `capabilities` are those that the skill can call, including gates.
    `is_open` is whether it may reach another machine.
    """
    return {
        "name": name,
        "title": skill.name,
        "description": skill.description,
        "inputSchema": schema_of(skill.inputs) | {"additionalProperties": False},
        "outputSchema": schema_of(skill.outputs),
        "annotations": {
            "title": skill.name,
            **hints_of(capabilities),
            "openWorldHint": is_open,
        },
    }


def hints_of(capabilities: Iterable[Capability]) -> dict[str, bool]:
    """Return the hints of a tool that can call these capabilities. An unknown effect class is
    treated as `effect`."""
    effects = {capability.effect for capability in capabilities}
    read_only = effects <= {"none"}
    idempotent = effects <= {"none", "idempotent"}
    return {
        "readOnlyHint": read_only,
        "destructiveHint": not read_only,
        "idempotentHint": idempotent,
    }
