"""Without an extra: said before anything runs (docs/reference/binding.md#extras)."""

from __future__ import annotations

from typing import Any

import pytest

LACKING = "pip install 'cogcli[text]'"


@pytest.fixture
def stems(project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A skill of one step, on a machine without the extra `text`."""
    monkeypatch.setattr("cogcli.specs.eligibility.missing_module", {"text": "py3langid"}.get)
    steps = "- {id: look, uses: text.language.detect, input: {text: inputs.text}, output: {language: outputs.language}}"
    project.skill(
        "t.look",
        steps,
        inputs="{text: {type: string, required: true}}",
        outputs="{language: {type: string}}",
    )
    return project


@pytest.mark.parametrize("flags", [(), ("--plan",)])
def test_a_run_says_it_before_anything_runs(stems: Any, flags: tuple[str, ...]) -> None:
    result = stems.run("run", "t.look", "-p", "text=hello there", *flags).assert_exit(3)
    assert "env.extra" in result.err
    assert LACKING in result.err
    assert not stems.episodes


def test_explain_names_it(stems: Any) -> None:
    told = stems.run("bindings", "explain", "text.language.detect", "--json").json
    assert "extra `text`" in str(told)
