"""What a file of a project declares, and what a change of it allows, also where its members have odd types."""

from __future__ import annotations

import json

import pytest

from cogcli.app.settings.trust_consequences import MISSING, find_consequences
from cogcli.app.settings.trust_declarations import find_declarations


def _changes(name: str, before: object, after: object) -> list[str]:
    """Return the texts of all new actions between two contents of one file."""
    old, new = (find_declarations(name, json.dumps(each).encode()) for each in (before, after))
    return [
        meaning.text
        for key in sorted(old.keys() | new.keys())
        for meaning in find_consequences(key, old.get(key, MISSING), new.get(key, MISSING))
    ]


def _pack(rule: object) -> dict[str, object]:
    return {"pack_meta": {"pack_id": "p", "pack_version": 1}, "policy_layer": {"rules": [rule]}}


def _capability(**safety: object) -> dict[str, object]:
    return {"id": "x.y", "version": "1", "safety": safety}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"then": {"verdict": "deny"}}, {"then": "deny"}, " says None, was deny"),
        ({"then": "a"}, {"then": "b"}, " (None) has another gate, other limits or obligations"),
        ({"then": "a", "if": 1}, {"then": "a", "if": [1]}, " (None) has other conditions"),
        ({"then": {"verdict": "deny"}}, "no object", " is gone, was deny"),
    ],
)
def test_a_rule_is_compared_as_its_file_has_it(before: object, after: object, found: str) -> None:
    assert _changes("packs/p.yaml", _pack(before), _pack(after)) == [f"p@1: rule None{found}"]


_LIMIT = {
    "id": "day", "sum": "amount", "max": 50, "per": "user", "window_s": 86400, "over": "deny",
    "applies_to": {"capabilities": ["pay"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"max": 49, "window_s": 90000}, []),
        ({"max": 5000}, [": max 5000, was 50"]),
        ({"max": "many"}, [": max None, was 50"]),
        ({"window_s": 1}, [": window_s 1, was 86400"]),
        ({"window_s": None}, []),
        ({"sum": None}, [" counts other calls, amounts or owners"]),
        ({"per": "tenant"}, [" counts other calls, amounts or owners"]),
        ({"applies_to": {"capabilities": ["other"]}}, [" counts other calls, amounts or owners"]),
        ({"over": "allow_with_gate", "gate": "G"}, [" says allow_with_gate, was deny"]),
        ({"gate": "G"}, [" has another gate"]),
        ({"say": "No."}, []),
    ],
)
def test_a_limit_that_allows_more_is_named(changes: dict[str, object], found: list[str]) -> None:
    before, after = _limits(_LIMIT), _limits({**_LIMIT, **changes})
    assert _changes("packs/p.yaml", before, after) == [f"p@1: limit day{each}" for each in found]


def test_a_limit_that_is_gone_is_named_and_a_new_one_is_not() -> None:
    changes = _changes("packs/p.yaml", _limits(_LIMIT), _limits())
    assert changes == ["p@1: limit day is gone, its max was 50"]
    assert _changes("packs/p.yaml", _limits(), _limits(_LIMIT)) == []
    forever = {key: value for key, value in _LIMIT.items() if key != "window_s"}
    changes = _changes("packs/p.yaml", _limits(forever), _limits(_LIMIT))
    assert changes == ["p@1: limit day: window_s 86400, was for good"]


def _limits(*limits: object) -> dict[str, object]:
    identity = {"pack_id": "p", "pack_version": 1}
    return {"pack_meta": identity, "policy_layer": {"limits": list(limits)}}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (
            _capability(trust_level="privileged"),
            _capability(trust_level=7),
            "capability x.y: trust_level 7, was privileged",
        ),
        (
            _capability(mandatory_pre_gates=["g"]),
            _capability(mandatory_pre_gates="g"),
            "capability x.y loses the gate g",
        ),
        (
            _capability(mandatory_pre_gates=["g"]),
            _capability(mandatory_pre_gates=[{"capability": "g", "on_fail": "never"}]),
            "capability x.y: gate g says never, was block",
        ),
        (
            _capability(requires_confirmation=True),
            _capability(requires_confirmation="yes"),
            "capability x.y no longer requires confirmation",
        ),
        (
            _capability(allowed_targets=["a"]),
            _capability(allowed_targets={"a": 1}),
            "capability x.y may reach any target",
        ),
        (
            _capability(reversible=False),
            {"id": "x.y", "version": "1", "safety": ["reversible"]},
            "capability x.y has no safety block any more: it had reversible",
        ),
    ],
)
def test_a_demand_of_another_type_is_a_lost_demand(
    before: object, after: object, found: str
) -> None:
    assert _changes("capabilities/c.yaml", before, after) == [found]


def test_a_service_declares_its_program_only_as_text_and_its_arguments_only_as_a_list() -> None:
    service = {"id": "s", "kind": "mcp", "command": ["sh"], "args": "-c", "env": ["A"]}
    found = find_declarations("services/s.yaml", json.dumps(service).encode())
    assert found["program", "service s"] is None
    started = {**service, "command": "sh", "args": [1, "-c"]}
    found = find_declarations("services/s.yaml", json.dumps(started).encode())
    assert found["program", "service s"] == "sh 1 -c"
