"""How much room an episode takes: at most 2.5 times its distinct values, and 10 KiB for each call."""

from __future__ import annotations

import json
from typing import Any

import pytest

VALUES = 256 * 1024
A_CALL = 10 * 1024


@pytest.fixture
def looping(project: Any) -> Any:
    """A project with a skill that calls a service for each text it is given."""
    project.services("def echo(text):\n    return {'text': text + '!'}\n")
    project.capability("demo.echo", "echo")
    project.skill(
        "demo.loop",
        """
        - {id: each, uses: demo.echo, input: {text: item}, output: {text: outputs.texts},
           config: {foreach: {items: inputs.texts, max_parallel: 2}}}
        """,
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array}}",
    )
    return project


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1000, 4090, 4100, 30_000])
def test_a_loop_over_many_values(looping: Any, size: int) -> None:
    calls = VALUES // size + 1
    texts = [f"{number:06}" * (size // 6) for number in range(calls)]
    looping.write("texts.json", json.dumps(texts))
    looping.run("run", "demo.loop", "-p", "texts=@texts.json", "-q").assert_ok()
    distinct = sum(len(json.dumps(text)) + len(json.dumps(text + "!")) for text in texts)
    taken = sum(path.stat().st_size for path in looping.episode.rglob("*") if path.is_file())
    assert taken <= 2.5 * distinct + A_CALL * calls
    looping.run("verify", "@last").assert_ok()
