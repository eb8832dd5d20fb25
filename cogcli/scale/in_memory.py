"""Lines that run without a folder: those of a skill that has no effect (docs/reference/batch.md#memory).

Whether a skill may run so follows from its specs alone. A line that is killed runs again, which no call may notice.
"""

from __future__ import annotations

from cogcli.episode.memory_folder import HAS_FILES_IN_MEMORY
from cogcli.run.prepare import PreparedRun
from cogcli.specs.catalog import Catalog
from cogcli.specs.closure import reach_capabilities, reach_skills
from cogcli.specs.skill import capabilities_of


def may_run_in_memory(prepared: PreparedRun) -> bool:
    """Return whether the lines of a run may run again after a kill, and this system has files in memory."""
    if prepared.agent is not None or not HAS_FILES_IN_MEMORY:
        return False  # an agent changes what is known of its user
    return reaches_no_effect(prepared.catalog, prepared.skill.id)


def reaches_no_effect(catalog: Catalog, skill_id: str) -> bool:
    """Return whether every capability that a skill can reach declares no effect. A missing or silent spec counts as
    having one.
    """
    skills = [catalog.skills.get(id) for id in reach_skills(catalog, [skill_id])]
    called = [name for skill in skills if skill is not None for name in capabilities_of(skill)]
    reached = [catalog.capabilities.get(id) for id in reach_capabilities(catalog, called)]
    return None not in skills and all(
        capability is not None and capability.effect == "none" for capability in reached
    )
