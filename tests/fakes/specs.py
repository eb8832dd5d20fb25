"""Specs in a line each."""

from __future__ import annotations

from typing import Any

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill

EFFECTS: dict[str, dict[str, Any]] = {
    "none": {"side_effects": False},
    "idempotent": {"side_effects": True, "idempotent": True},
    "effect": {"side_effects": True},
    "unknown": {},
}


def fields(text: str | dict[str, Any]) -> dict[str, Any]:
    """`"a! b:integer c!:array"`: names with `!` where required, and `:type` (else any); fields as in a file stay."""
    if isinstance(text, dict):
        return text
    found: dict[str, Any] = {}
    for word in text.split():
        name, _, kind = word.partition(":")
        found[name.removesuffix("!")] = {"type": kind or "any", "required": name.endswith("!")}
    return found


def capability(
    id: str,
    inputs: str | dict[str, Any] = "x",
    outputs: str | dict[str, Any] = "y",
    *,
    effect: str = "none",
    **more: Any,
) -> Capability:
    """A capability of an effect class; further keys as in its file."""
    raw = {
        "id": id,
        "version": "1.0.0",
        "description": id,
        "inputs": fields(inputs),
        "outputs": fields(outputs),
        "properties": EFFECTS[effect],
        **more,
    }
    return Capability.of(raw)


def gate(id: str, inputs: str = "x", **more: Any) -> Capability:
    """A gate: it says whether something is allowed, and why not."""
    return capability(id, inputs, "allowed:any reason:string", **more)


def step(id: str, uses: str, input: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A step as in a skill's file. `output`, `depends_on`, `timeout_seconds`, `merge_strategy` are given by name."""
    raw = {"id": id, "uses": uses, "input": input or {}, "output": more.pop("output", {})}
    config = {name: value for name, value in more.items() if value is not None}
    return {**raw, "config": config}


def skill(
    *steps: dict[str, Any],
    id: str = "test.main",
    inputs: str | dict[str, Any] = "x",
    outputs: str | dict[str, Any] = "",
    **more: Any,
) -> Skill:
    """A skill of these steps."""
    return Skill.of(
        {
            "id": id,
            "version": "1.0.0",
            "name": "Main",
            "description": "A skill of a test.",
            "inputs": fields(inputs),
            "outputs": fields(outputs),
            "steps": list(steps),
            **more,
        }
    )
