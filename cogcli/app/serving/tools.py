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
from cogcli.base.errors import CogcliError
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.run.input_origins import CLIENT
from cogcli.run.prepare import PreparedRun, RunRequest, check_inputs, prepare_without_inputs
from cogcli.specs.field_schema import schema_of

NAMES: Final = ("underscore", "dots")
LONGEST: Final = 64
"""Hosts refuse names that are longer, or that hold anything but ASCII letters, digits, `_` and `-`."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUM: Final = 8


class Served(NamedTuple):
    """A skill as a tool, with everything that a run needs but the inputs."""

    tool: dict[str, Any]
    loaded: PreparedRun

    def with_inputs(self, given: dict[str, Any]) -> PreparedRun:
        """The skill with checked inputs. Raises ProblemsFound."""
        inputs, wrong = check_inputs(self.loaded.skill.inputs, given)
        if wrong:
            raise ProblemsFound(wrong)
        request = self.loaded.request._replace(origins=dict.fromkeys(given, CLIENT))
        return self.loaded._replace(inputs=inputs, request=request)


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
    known = registry.readable().ids("skill")
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
    return {
        "readOnlyHint": read_only,
        "destructiveHint": not read_only,
        "idempotentHint": idempotent,
    }
