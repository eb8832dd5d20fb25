"""The specs of a run go into one blob and come out again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from cogcli.base.canonical import compact
from cogcli.protocols import PROTOCOLS
from cogcli.specs.layers import layers_for
from cogcli.specs.registry import Registry
from cogcli.specs.spec_snapshot import catalog_of, document_of


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "skill_id", Registry(layers_for(), protocols=PROTOCOLS, base="/").ids("skill")
)
def test_a_catalog_survives_its_blob(skill_id: str, tmp_path: Path) -> None:
    catalog = Registry(layers_for(), protocols=PROTOCOLS, base=str(tmp_path)).reach(skill_id)
    back = catalog_of(orjson.loads(compact(document_of(catalog))), PROTOCOLS)
    assert back.skills == catalog.skills
    assert back.capabilities == catalog.capabilities
    assert back.bindings_of == catalog.bindings_of
    assert back.defaults.bindings == catalog.defaults.bindings
    assert {id: b.request for id, b in back.bindings.items()} == {
        id: b.request for id, b in catalog.bindings.items()
    }


def test_nothing_out_of_a_blob_may_start_code(tmp_path: Path) -> None:
    catalog = Registry(layers_for(), protocols=PROTOCOLS, base=str(tmp_path)).reach("text.brief")
    assert all(service.trusted for service in catalog.services.values())
    assert not any(
        service.trusted for service in catalog_of(document_of(catalog), PROTOCOLS).services.values()
    )


ALTERED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a skill without steps": lambda specs: specs["skill:text.brief"].pop("steps"),
    "steps that are a number": lambda specs: specs["skill:text.brief"].update(steps=3),
    "a step that is a number": lambda specs: specs["skill:text.brief"].update(steps=[3]),
    "a step without an id": lambda specs: specs["skill:text.brief"]["steps"][0].pop("id"),
    "a field without a type": lambda specs: specs["skill:text.brief"]["inputs"].update(a={}),
    "a capability that is a text": lambda specs: specs.update({"capability:a.b": "c"}),
    "a pack without a name": lambda specs: specs.update({"pack:p@1": {"policy_layer": {}}}),
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=list(ALTERED))
def test_a_document_that_was_altered_is_refused_as_a_whole(
    alter: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    catalog = Registry(layers_for(), protocols=PROTOCOLS, base=str(tmp_path)).reach("text.brief")
    document = orjson.loads(compact(document_of(catalog)))
    specs = {name: entry["spec"] for name, entry in document["specs"].items()}
    alter(specs)
    document["specs"] = {name: {"spec": spec, "file": ""} for name, spec in specs.items()}
    for entry in document["specs"].values():
        entry |= {"channel": "local", "layer": "", "root": ""}
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        catalog_of(document, PROTOCOLS)
