"""The doors: in-function imports of our own modules, by what they keep from being loaded, with their number by file.

A module behind one of these imports at its top. A door that is gone leaves the table; a new one needs its reason here.
"""

from __future__ import annotations

from typing import Final

DOORS: Final[dict[str, dict[str, int]]] = {
    "the command itself, behind the answers that need no module": {
        "__main__.py": 3,
    },
    "use cases that most commands load, and few of them whole: settings, trust, the registry": {
        "agent/use_cases/doctor_jobs.py": 1, "app/checks/doctor_services.py": 1,
        "app/state_document.py": 5,
        "app/run_skill.py": 4, "app/schemas.py": 1,
        "app/settings/__init__.py": 1, "app/settings/runs_dir.py": 1,
        "app/settings/setting_types.py": 1, "app/settings/trust.py": 3,
    },
    "each command loads its own modules alone: `ls` has seven bare interpreters' time": {
        "cli/command_help.py": 1,
        "cli/commands/gc.py": 1, "cli/commands/graph.py": 1, "cli/commands/help.py": 1, "cli/commands/ls.py": 2,
        "cli/commands/run.py": 1,
        "cli/commands/serve.py": 5, "cli/commands/state.py": 1, "cli/commands/trace.py": 4, "cli/completion.py": 1,
        "cli/completion_values.py": 4, "cli/context.py": 5, "cli/inputs.py": 1,
        "cli/listing.py": 1, "cli/live_run.py": 2, "cli/main.py": 12, "cli/progress.py": 1, "cli/render_error.py": 2,
        "cli/run_report.py": 1, "cli/run_skill.py": 4, "cli/trace_episode.py": 5,
        "cli/commands/validate.py": 1, "cli/trace_tree.py": 2, "cli/trace_views.py": 1,
    },
    "what checks payloads needs pydantic, which no run loads; a journal is for those who write": {
        "declarations/record.py": 1,
        "episode/damage.py": 1, "episode/foreign_log.py": 1, "episode/listing/episode_row.py": 1,
        "episode/store.py": 2,
    },
    "a run that ends well lists no episode, explains no failure and judges no command line": {
        "app/run_skill.py": 1, "cli/typer_app.py": 3, "episode/exclusive.py": 1, "episode/store.py": 3,
        "run/given_inputs.py": 1, "run/results.py": 5,
    },
    "few runs hold a name, and only a rerun takes approvals over": {
        "run/launch.py": 2,
    },
    "most answers are not signed, and most services have no login": {
        "app/run_skill.py": 2,
    },
    "archives, which most runs directories do not have": {
        "episode/archive/access.py": 1, "episode/refusals.py": 1,
    },
    "patterns that only a text needs which is refused, or may have been softened": {
        "base/strict_json.py": 1,
    },
    "the search for secrets, which a run without secrets does not need": {
        "base/redact.py": 1,
    },
    "the expression language, which most skills do not use": {
        "state/expressions.py": 2,
    },
    "a protocol is loaded when a service speaks it: MCP, HTTP and workers each cost more than a run": {
        "base/allowed_hosts.py": 1, "protocols/__init__.py": 3,
        "protocols/mcp/connect.py": 3,
        "protocols/pythoncall/checks.py": 1, "protocols/pythoncall/invoker.py": 3,
        "protocols/pythoncall/worker_main.py": 1,
        "protocols/service_contract.py": 6,
    },
    "a library of an extra is loaded by what needs it": {
        "app/trace_push.py": 1,
    },
    "checks of another kind of report": {
        "report/unfinished_runs.py": 1,
    },
    "a warm run reads compiled specs and no YAML; resume, replay and rerun load what they add": {
        "run/log_index_reading.py": 1, "run/prepare.py": 1, "run/results.py": 1, "run/waypoints.py": 1,
    },
    "a function that asks for one thing of cogcli loads that alone": {
        "sdk.py": 17,
    },
    "a wall is loaded by what is put behind it": {
        "protocols/pythoncall/invoker.py": 1, "protocols/pythoncall/worker_main.py": 1, "specs/eligibility.py": 1,
    },
    "a pack governs the runs that name one, and no other; the run of a skill decides nothing": {
        "declarations/envelope.py": 1, "episode/projection.py": 1,
        "run/engine/policy.py": 2, "specs/spec_snapshot.py": 1,
    },
    "a warm run opens the compiled cache: YAML, schemas and suggestions are for a cold one and for faults": {
        "specs/cached_positions.py": 1, "specs/catalog_builder.py": 3,
        "specs/checks/services.py": 1, "specs/checks/skills.py": 1, "specs/checks/skills_and_capabilities.py": 1,
        "specs/fields.py": 1, "specs/host_overrides.py": 1,
        "specs/protocol.py": 1, "specs/sample_inputs.py": 1, "specs/spec_reader.py": 4,
    },
}  # fmt: skip
MOST: Final = 175
"""All of them together; it falls, but for those of `sdk.py`, which is made of them."""
