"""What is missing of many skills is what is missing of each by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.project import Project

from cogcli.app import needs
from cogcli.app.needs import RequirementSearch
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings

TEXT = "{text: {type: string, required: true}}"


def _break_nothing(demo: Project) -> None:
    pass


def _use_what_is_unknown(demo: Project) -> None:
    step = (
        "- {id: a, uses: demo.text.none, input: {text: inputs.text}, output: {text: outputs.text}}"
    )
    demo.skill("demo.lost", step, inputs=TEXT, outputs=TEXT)


def _nest_what_is_wrong(demo: Project) -> None:
    _use_what_is_unknown(demo)
    step = (
        "- {id: a, uses: skill:demo.lost, input: {text: inputs.text}, output: {text: outputs.text}}"
    )
    demo.skill("demo.nests", step, inputs=TEXT, outputs=TEXT)


def _go_in_a_circle(demo: Project) -> None:
    step = "- {id: a, uses: skill:demo.circle, input: {text: inputs.text}, output: {text: outputs.text}}"
    demo.skill("demo.circle", step, inputs=TEXT, outputs=TEXT)


def _bind_to_no_function(demo: Project) -> None:
    demo.capability("demo.text.upper", "no_such_function")


def _write_a_broken_binding(demo: Project) -> None:
    demo.write("bindings/local/demo.text.upper/demo_text_upper.yaml", "id: [1, 2\n")


def _ask_for_a_variable(demo: Project) -> None:
    demo.write(
        "services/local/demo.yaml",
        "id: demo\nkind: openapi\nbase_url: ${DEMO_URL}\n",
    )


def _replace_what_is_shipped(demo: Project) -> None:
    demo.capability("text.content.summarize", "upper")


def _break_a_pack(demo: Project) -> None:
    demo.write("packs/p/1.0.0.yaml", "contract_meta: {}\n")


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "wrong",
    [
        _break_nothing,
        _use_what_is_unknown,
        _nest_what_is_wrong,
        _go_in_a_circle,
        _bind_to_no_function,
        _write_a_broken_binding,
        _ask_for_a_variable,
        _replace_what_is_shipped,
        _break_a_pack,
    ],
)
def test_the_needs_of_many_are_those_of_each(
    demo: Project, wrong: Callable[[Project], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(demo)
    settings = Settings({}, demo.env, base=str(demo.root))
    catalog, options = open_registry(settings).everything(), selection_options(settings)
    monkeypatch.setattr(needs, "_FEW", 0)
    together = RequirementSearch(catalog, options)
    skills = {id: together.skill(id) for id in catalog.skills}
    capabilities = {id: together.capability(id) for id in catalog.capabilities}
    monkeypatch.setattr(needs, "_FEW", 10_000)
    apart = RequirementSearch(catalog, options)
    lacks = any(
        id.startswith("demo.") and found for id, found in {**skills, **capabilities}.items()
    )
    assert lacks == (wrong not in (_break_nothing, _replace_what_is_shipped, _break_a_pack))
    assert skills == {id: apart.skill(id) for id in catalog.skills}
    assert capabilities == {id: apart.capability(id) for id in catalog.capabilities}
