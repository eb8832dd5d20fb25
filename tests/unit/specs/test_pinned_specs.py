"""The specs of a run go into one blob and come out again."""

from __future__ import annotations

from pathlib import Path

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
