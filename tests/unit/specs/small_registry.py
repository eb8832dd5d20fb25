"""The smallest registry that runs: one skill of one step, with all it needs."""

from __future__ import annotations

from collections.abc import Callable

SKILL = """
id: t.s
version: "1.0.0"
name: Test
description: For tests.
inputs:
  text: {type: string, required: true}
outputs:
  out: {type: string, required: true}
steps:
  - id: a
    uses: text.echo
    input: {text: inputs.text}
    output: {text: outputs.out}
"""
CAPABILITY = """
id: text.echo
version: "1.0.0"
description: Echo.
inputs:
  text: {type: string, required: true}
outputs:
  text: {type: string, required: true}
properties: {side_effects: false}
"""
BINDING = """
id: echo_py
capability: text.echo
service: echo
protocol: pythoncall
operation: normalize
request: {text: input.text}
response: {text: response.text}
"""
SERVICE = """
id: echo
kind: mcp
server: official_text_tools
"""
FILES = {
    "skills/local/t/s/skill.yaml": SKILL,
    "capabilities/text.echo.yaml": CAPABILITY,
    "bindings/local/text.echo/echo.yaml": BINDING.replace("pythoncall", "mcp"),
    "services/local/echo.yaml": SERVICE,
}

Write = Callable[..., str]
"""What the fixture `root` gives."""
