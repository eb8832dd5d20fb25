"""The pages about spec files: every key of every kind has its row, with its type and default, and every example does
what the page says."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.pages import Reader, blocks, literal, tables
from support.project import Project
from support.shape_rows import ELSEWHERE, Row, rows

from cogcli.base.calls import Member
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability, Properties
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.policy.budgets import DEFAULTS, flatten
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import InvocationRequest
from cogcli.protocols.live.runner import DEFAULT_TIMEOUT
from cogcli.specs.field_shape import FIELD
from cogcli.specs.shape import Shape
from cogcli.specs.shapes import shape_of
from cogcli.specs.skill_shape import STEP

pytestmark = pytest.mark.sampled(5)

REFERENCE: Final = Path(__file__).resolve().parents[2] / "docs/reference"
PAGES: Final = {
    "spec-files": FIELD,
    **{
        kind: shape_of(kind, PROTOCOLS)
        for kind in ("skill", "capability", "binding", "service", "pack")
    },
}
FILES: Final = {
    "policies/official_default_selection.yaml": shape_of("policy", PROTOCOLS),
    "overrides.yaml": shape_of("overrides", PROTOCOLS),
}
"""Small files whose keys the page about bindings describes, too."""
_HEADED: Final = r"\| key(?: of `(?P<file>[^`]+)`)?(?: below `(?P<path>[^`]+)`)? \| type \| default \| meaning \|"
_BRACES: Final = re.compile(r"\{([^}]+)\}")


class Entry(NamedTuple):
    """A key as a page describes it."""

    path: str
    type: str
    default: str
    meaning: str


def described(page: str, file: str = "") -> Iterator[Entry]:
    """The keys that the tables of a page describe, of its own kind or of a file; `{a,b}` in a path are several."""
    for header, table in tables(REFERENCE / f"{page}.md", headed=_HEADED):
        match = re.fullmatch(_HEADED, header)
        if match and (match["file"] or "") != file:
            continue
        below = f"{match['path']}." if match and match["path"] else ""
        for cells in table:
            assert len(cells) == 4, cells
            for name in re.findall(r"`([^`]+)`", cells[0]):
                yield from (Entry(path, *cells[1:]) for path in spelled_out(below + name))


def spelled_out(path: str) -> Iterator[str]:
    """The paths that one with `{a,b}` stands for."""
    braces = _BRACES.search(path)
    if not braces:
        yield path
        return
    for word in braces[1].split(","):
        yield from spelled_out(path.replace(braces[0], word))


def owed(page: str, file: str = "") -> list[Row]:
    """The keys that a page owes its readers: steps are described with skills, wherever they may stand."""
    apart = {
        name: words for name, words in ELSEWHERE.items() if page != "skill" or name != id(STEP)
    }
    shape: Shape = FILES[file] if file else PAGES[page]
    return list(rows(shape, apart=apart))


@pytest.mark.parametrize(
    ("page", "file"), [*((page, "") for page in PAGES), *(("binding", file) for file in FILES)]
)
def test_every_key_has_a_row_with_its_type_and_default(page: str, file: str) -> None:
    there, keys = list(described(page, file)), {row.path: row for row in owed(page, file)}
    lost = keys.keys() - {entry.path for entry in there}
    assert not lost, f"{page}.md describes none of {sorted(lost)}"
    for entry in there:
        assert entry.path in keys, f"{page}.md describes `{entry.path}`, which is not a key"
        key = keys[entry.path]
        assert entry.type == key.type, entry.path
        assert entry.default, entry.path
        assert entry.default.startswith("required") or not key.required, entry.path
        assert entry.meaning or "mapping" in entry.type, f"`{entry.path}` is not explained"


@pytest.mark.parametrize("page", [page for page in PAGES if page != "spec-files"])
def test_every_example_does_what_its_page_says(page: str, project: Project) -> None:
    project.write("cogcli.toml", "")
    with Reader(project) as reader:
        reader.read(REFERENCE / f"{page}.md")
    examples = [block for block in blocks(REFERENCE / f"{page}.md") if block.language == "yaml"]
    assert [block.text for block in examples if not block.named] == []
    assert reader.ran


_STEP: Final = {
    "id": "s",
    "uses": "text.content.normalize",
    "config": {
        "retry": {},
        "foreach": {"items": []},
        "while": {"condition": True},
        "router": {"on": "inputs.x", "cases": {"a": "b.c"}},
        "scatter": {"capabilities": ["a.b", "c.d"]},
    },
}
_CAPABILITY: Final = {
    "id": "a.b",
    "version": "1.0.0",
    "description": "d",
    "inputs": {},
    "outputs": {},
    "properties": {"side_effects": True},
    "cognitive_hints": {"produces": {"x": {"type": "Risk"}}},
    "safety": {
        "mandatory_pre_gates": [{"capability": "g.g"}],
        "mandatory_post_gates": [{"capability": "g.g"}],
    },
}
_GUARDRAILS: Final = {"must_refuse": [{"id": "g"}], "must_escalate": [{"id": "g"}]}
_PACK: Final = {
    "contract_meta": {"contract_version": "1.0"},
    "pack_meta": {"pack_id": "p", "pack_version": "1.0.0", "defaults": {}},
    "intelligence_refs": {},
    "business_context": {"blocks": [{"id": "b", "text": "t"}]},
    "policy_layer": {
        "guardrails": _GUARDRAILS,
        "gates": {"G": {}},
        "rules": [
            {
                "rule_id": "r",
                "mode": "enforce",
                "if": {},
                "applies_to": {},
                "then": {"verdict": "deny"},
            }
        ],
        "limits": [{"id": "l", "applies_to": {"capabilities": ["a.b"]}, "max": 1, "per": "user"}],
    },
    "tooling_layer": {"capabilities": {"a.b": {}}},
    "decision_layer": {
        "objectives": [{"id": "o", "text": "t"}],
        "intents": [{"id": "i", "slots": {"s": {"type": "t"}}}],
        "decisions": [{"key": "k"}],
        "task_templates": [{"id": "t", "steps": [_STEP]}],
    },
    "memory_layer": {},
    "evaluation_layer": {"targets": [{"metric": "recovery_rate", "min": 1}]},
    "tone_and_comms": {"agent": {}},
}
_BOUND: Final = {"id": "b", "capability": "a.b", "service": "s", "protocol": "openapi"}
LEAST: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "binding": (Binding.of, {**_BOUND, "operation": "o", "page": {"items": "rows"}}),
    "spec-files": (FieldSpec.of, {"type": "any"}),
    "skill": (
        Skill.of,
        {
            "id": "a.b",
            "version": "1.0.0",
            "name": "n",
            "description": "d",
            "inputs": {},
            "outputs": {},
            "steps": [_STEP],
        },
    ),
    "capability": (Capability.of, _CAPABILITY),
    "pack": (Pack.of, _PACK),
    "service": (
        lambda raw: (Service.of(raw).replace(settings={}), Service.of(raw).credentials),
        {"id": "s", "kind": "openapi", "base_url": "https://a.b", "auth": {"n": {}}, "login": {}},
    ),
}
"""How each kind is made of its mapping, and one that has every block and as little as possible in it."""
_BINDING: Final = Binding(id="b", capability="a.b", service="s", protocol="openapi", operation="o")
_CALL: Final = InvocationRequest(
    Service(id="s", kind="openapi"), _BINDING, "o", {}, "none", "", "a.b", "r", "s", 1
)
AT_THE_CALL: Final = {
    ("binding", "metadata.timeout_seconds"): DEFAULT_TIMEOUT,
    ("service", "metadata.timeout_seconds"): DEFAULT_TIMEOUT,
    ("binding", "metadata.response_mode"): _CALL.response_mode,
    ("binding", "metadata.max_request_bytes"): _CALL.request_cap,
    ("binding", "metadata.max_response_bytes"): _CALL.reply_cap,
    ("binding", "metadata.conformance_profile"): _CALL.binding.conformance,
    **{
        ("binding", f"metadata.{name}"): Member._field_defaults[name]
        for name in ("retry_count", "retry_backoff_base", "retry_backoff_factor", "fallback_on")
    },
    **{("pack", f"pack_meta.defaults.budget.{name}"): value for name, value in flatten(DEFAULTS)},
}
"""Defaults that are taken where a call is made or a run begins, and not where the file is read."""


def with_value(raw: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a mapping with a value at a path, whose blocks are there."""
    whole = copy.deepcopy(raw)
    place: Any = whole
    *blocks_above, last = re.sub(r"\[\]", ".[]", path).split(".")
    for part in blocks_above:
        place = (
            place[0]
            if part == "[]"
            else next(iter(place.values()))
            if part == "NAME"
            else place[part]
        )
    place[last] = value
    return whole


def told(page: str, raw: dict[str, Any]) -> str:
    """All that a file says once it is read; what is kept as it was written is left out."""
    value = LEAST[page][0](raw)
    if page == "pack":
        return repr(value.replace(hash=""))
    if page == "capability":
        return f"{value.effect} {value.replace(properties=Properties())!r}"
    return repr(value)


@pytest.mark.parametrize("page", PAGES)
def test_the_defaults_that_a_page_gives_are_those_of_the_code(page: str) -> None:
    literals = 0
    for entry in described(page):
        try:
            value = literal(entry.default.rpartition("else ")[2])
        except ValueError:
            continue
        literals += 1
        if (page, entry.path) in AT_THE_CALL:
            assert AT_THE_CALL[page, entry.path] == value, entry
        elif value not in ({}, []):
            there = LEAST[page][1]
            assert told(page, with_value(there, entry.path, value)) == told(page, there), entry
    assert literals
