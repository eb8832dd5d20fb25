"""The skills that a server offers, loaded and checked once when it starts.

What a client sees listed is what runs, whatever happens to the files meanwhile. Options are fixed here, too: nothing
that a client sends changes trust, confirmations or bindings.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any, NamedTuple

from cogcli.app.registry import open_registry
from cogcli.app.serving.tools import Tool, names_of, tool_of
from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError
from cogcli.core.problems import ProblemsFound
from cogcli.runs.prepare import PreparedRun, RunRequest, check_inputs, prepare_without_inputs


class Served(NamedTuple):
    """A skill as a tool, with everything that a run needs but the inputs."""

    tool: Tool
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
    for id in _match_ids(only, known) if only else known:
        try:
            catalog, asked = registry.reach(id), request._replace(skill_id=id)
            prepared = prepare_without_inputs(catalog, asked, settings.environ)
        except CogcliError:
            if id in only:
                raise
            left_out.append(id)
        else:
            tool = tool_of(prepared.skill, prepared.catalog.capabilities.values(), tool_names[id])
            tools[tool.name] = Served(tool, prepared)
    return Offer(tools, left_out)


def _match_ids(only: Sequence[str], known: Sequence[str]) -> list[str]:
    """The matching ids, sorted. An entry that matches nothing is kept: loading it raises SkillNotFoundError."""
    found: set[str] = set()
    for word in only:
        found.update([word] if word in known else fnmatch.filter(known, word) or [word])
    return sorted(found)
