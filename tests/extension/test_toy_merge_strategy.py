"""A merge strategy is a row of `base/merge.STRATEGIES`: specs take it, a run merges by it, logs and reports know it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.runner import ScriptedRunner, gives
from fakes.runs import replayed, run

from cogcli.base.merge import STRATEGIES, Strategy
from cogcli.declarations.checked import problem_of
from cogcli.episode.history import history_of
from cogcli.protocols import PROTOCOLS
from cogcli.report.lineage import NOTHING, Lineage
from cogcli.report.why import find_cause_chains
from cogcli.specs.checks import check
from cogcli.specs.json_schema import schema_of
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry

FILES = {
    "skills/local/t/notes/skill.yaml": """
id: t.notes
version: "1.0.0"
name: Notes
description: For tests.
inputs: {}
outputs:
  notes: {type: array, required: true}
steps:
  - id: first
    uses: t.note
    input: {}
    output: {notes: outputs.notes}
  - id: second
    uses: t.note
    input: {}
    output: {notes: outputs.notes}
    depends_on: [first]
    config: {merge_strategy: prepend}
""",
    "capabilities/t.note.yaml": """
id: t.note
version: "1.0.0"
description: Note.
inputs: {}
outputs:
  notes: {type: array, required: true}
properties: {side_effects: false}
""",
}


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.lstrip("\n"))
    return Registry(
        [Layer("project", str(tmp_path), True)], protocols=PROTOCOLS, base=str(tmp_path)
    )


def test_without_its_row_the_strategy_is_refused(registry: Registry) -> None:
    messages = [problem.message for problem in check(registry.everything())]
    assert any('"prepend"' in message and "`deep_merge`" in message for message in messages), (
        messages
    )


def test_a_row_is_all_that_a_strategy_needs(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        STRATEGIES, "prepend", Strategy(lambda present, value: [*value, *present], "list")
    )
    catalog = registry.everything()
    assert not any("prepend" in problem.message for problem in check(catalog))
    assert '"prepend"' in json.dumps(schema_of("skill", PROTOCOLS))
    ran = run(
        catalog.skills["t.notes"],
        ScriptedRunner({"t.note": [gives(notes=["one"]), gives(notes=["two"])]}),
        catalog.capabilities["t.note"],
    )
    assert ran.state.outputs == {"notes": ["two", "one"]}
    events = ran.sink.events
    assert not any(problem_of(event.event_type or "", event.payload) for event in events)
    assert next(iter(replayed(events).values())).outputs == ran.state.outputs
    flow = Lineage(events)
    assert [write.strategy for write in flow.writes] == ["overwrite", "prepend"]
    assert (
        find_cause_chains("outputs.notes", history_of(events), flow, NOTHING)[0][1]
        == "first, second"
    )
