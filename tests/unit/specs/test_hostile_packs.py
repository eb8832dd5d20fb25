"""What the check of a pack by itself finds, whatever stands in the file (docs/reference/pack.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from random import sample
from typing import Any

import pytest
from fakes.support_desk import raw_pack
from support.examples import LONG

from cogcli.declarations.pack_spec import Pack
from cogcli.specs.problem_report import CheckedFile
from cogcli.specs.shapes import check_file

pytestmark = pytest.mark.sampled(4)

WRONG: tuple[Any, ...] = ([], {"": 1}, ["a", "a"], None, 7, True, "", "\u202e", "x" * 20_000)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _places(item, (*path, key)) if isinstance(item, dict | list) else [(*path, key)]


def _with(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    raw = raw_pack()
    holder: Any = raw
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return raw


def _check(raw: dict[str, Any]) -> CheckedFile:
    return check_file("pack", raw, None, "4.0.0.yaml", {})


def _codes(path: str, value: Any) -> list[tuple[str, str]]:
    keys = tuple(int(part) if part.isdigit() else part for part in path.split("/"))
    return [(each.code, each.path) for each in _check(_with(keys, value)).problems]


@pytest.mark.sampled(8)
def test_no_value_at_any_place_is_a_crash() -> None:
    for path in _places(raw_pack()):
        for value in WRONG if LONG else sample(WRONG, len(WRONG) // 2):
            _check(_with(path, value))


REFUSE = "policy_layer/guardrails/must_refuse"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (REFUSE, [{"id": "a", "pattern": "x"}, {"id": "a", "pattern": "y"}], f"/{REFUSE}/1/id"),
        (
            "policy_layer/guardrails/must_escalate",
            [{"id": "a", "phrases": ["x"]}, {"id": "a", "phrases": ["y"]}],
            "/policy_layer/guardrails/must_escalate/1/id",
        ),
        (
            "business_context/blocks",
            [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}],
            "/business_context/blocks/1/id",
        ),
        (
            "policy_layer/permissions",
            [{"role": "support_agent", "allow": []}, {"role": "support_agent", "allow": ["a.b"]}],
            "/policy_layer/permissions/1/role",
        ),
    ],
)
def test_what_has_a_name_has_it_once_in_its_list(path: str, value: Any, expected: str) -> None:
    assert _codes(path, value) == [("pack.duplicate", expected)]


@pytest.mark.parametrize(
    "guardrail", [{"id": "a"}, {"id": "a", "phrases": []}, {"id": "a", "reason": "x"}]
)
def test_a_guardrail_says_what_it_looks_for(guardrail: dict[str, Any]) -> None:
    assert _codes(REFUSE, [guardrail]) == [("key.missing", f"/{REFUSE}/0")]


def test_a_time_limit_is_of_a_phase() -> None:
    path = "pack_meta/defaults/budget"
    assert _codes(path, {"stage_latency_ms": {"plna": 1}}) == [
        ("key.unknown", f"/{path}/stage_latency_ms/plna")
    ]
    assert not _codes(path, {"stage_latency_ms": {"plan": 1, "consolidate": 2}})


def test_the_sizes_of_buckets_may_stand_in_the_defaults_which_count() -> None:
    raw = raw_pack()
    raw["pack_meta"] |= {
        "defaults": {"buckets": {"tool": 9}, "budget": {"turns": 3}},
        "buckets": {"tool": 8, "policy": 7},
    }
    assert Pack.of(raw).bucket_sizes == {"tool": 9, "policy": 7}
