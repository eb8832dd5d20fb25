"""Large documents, documents of several files, and what they hold that our own files may not
(docs/reference/service.md#documents).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, Result

SEVERAL = Path(__file__).parents[1] / "documents/several"
WIDE = 9_223_372_036_854_775_807


@pytest.fixture
def begun(project: Project) -> Project:
    project.run("new", "project", ".").assert_ok()
    return project


def bind(project: Project, file: str, operation: str) -> Result:
    words = ("--from-openapi", file, "--operation", operation)
    return project.run("new", "binding", "shop.item.read", *words)


def outputs(project: Project) -> str:
    return (project.root / "capabilities/shop.item.read.yaml").read_text()


def many_operations(number: int) -> dict[str, Any]:
    """A document with a path for each number, whose descriptions hold what looks like keys."""
    schema = {
        "type": "object",
        "description": 'Such as {"id": 1, "note": "x"}. ' * 80,
        "required": ["id"],
        "properties": {"id": {"type": "integer", "format": "int64", "maximum": WIDE}},
    }
    content = {"application/json": {"schema": schema, "example": {"id": 10**30}}}
    responses = {"200": {"description": "The item.", "content": content}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {
            f"/items/{n}": {"get": {"operationId": f"item{n}", "responses": responses}}
            for n in range(number)
        },
    }


@pytest.mark.sampled(6)
def test_a_document_of_more_than_four_mebibytes_is_bound(begun: Project) -> None:
    data = json.dumps(many_operations(1_800), indent=2)
    assert len(data) > 5 * 1024 * 1024
    begun.write("big.json", data)
    bind(begun, "big.json", "item1799").assert_ok()
    assert "id: {type: integer" in outputs(begun)
    begun.run("validate", "--strict").assert_ok()


@pytest.mark.sampled(6)
def test_a_fault_in_a_document_of_more_than_four_mebibytes_has_its_line(begun: Project) -> None:
    document = many_operations(1_800)
    document["components"] = {"schemas": {"Last": {"$ref": "#/components/schemas/Missing"}}}
    data = json.dumps(document, indent=2)
    assert len(data) > 5 * 1024 * 1024
    begun.write("big.json", data)
    line = data[: data.index('"$ref"')].count("\n") + 1
    failed = bind(begun, "big.json", "item1799").assert_exit(2)
    assert f"big.json:{line}:" in failed.err


@pytest.mark.sampled(6)
def test_a_document_of_several_files_is_bound_in_its_place(begun: Project) -> None:
    shutil.copytree(SEVERAL, begun.root / "docs")
    bind(begun, "docs/openapi.yaml", "readOrder").assert_ok()
    assert (
        "spec_ref: docs/openapi.yaml" in (begun.root / "services/local/shop-item.yaml").read_text()
    )
    assert "lines:" in outputs(begun)
    begun.run("validate", "--strict").assert_ok()
    begun.run("new", "scenario", "openapi_shop_item_read").assert_ok()
    begun.run("openapi", "verify-bindings", "--all").assert_ok()

    shop = begun.root / "docs/schemas/shop.json"
    shop.write_text(shop.read_text().replace('"lines"', '"rows"'))
    changed = begun.run("validate").assert_exit(0)
    assert "`response.lines` is not described in the reply" in changed.out + changed.err


@pytest.mark.sampled(6)
def test_the_files_of_a_document_are_accepted_with_it(begun: Project) -> None:
    shutil.copytree(SEVERAL, begun.root / "docs")
    bind(begun, "docs/openapi.yaml", "readOrder").assert_ok()
    untold = {"COGCLI_TRUST_PROJECT": ""}
    begun.run("config", "trust", env=untold).assert_ok()
    trust = begun.run("config", "show", "trust", env=untold)
    shop = begun.root / "docs/schemas/shop.json"
    shop.write_text(shop.read_text().replace('"lines"', '"rows"'))
    assert begun.run("config", "show", "trust", env=untold).out != trust.out


@pytest.mark.sampled(6)
def test_a_document_of_several_files_elsewhere_is_copied_as_one(
    begun: Project, tmp_path: Path
) -> None:
    shutil.copytree(SEVERAL, tmp_path / "elsewhere")
    bind(begun, str(tmp_path / "elsewhere/openapi.yaml"), "readOrder").assert_ok()
    shutil.rmtree(tmp_path / "elsewhere")
    begun.run("validate", "--strict").assert_ok()
    assert [path.name for path in (begun.root / "documents").iterdir()] == ["shop-item.json"]


def test_a_file_outside_the_folder_of_the_document_is_not_read(
    begun: Project, tmp_path: Path
) -> None:
    (tmp_path / "secret.yaml").write_text("get: {operationId: stolen, responses: {}}\n")
    begun.write("docs/openapi.yaml", (SEVERAL / "openapi.yaml").read_text())
    text = (begun.root / "docs/openapi.yaml").read_text()
    begun.write("docs/openapi.yaml", text.replace("paths/order.yaml", f"{tmp_path}/secret.yaml"))
    refused = bind(begun, "docs/openapi.yaml", "stolen").assert_exit(2)
    assert "which is outside the folder of the document" in refused.err


def test_an_old_document_names_a_converter(begun: Project) -> None:
    begun.write("swagger.json", '{"swagger": "2.0", "info": {}, "paths": {}}')
    refused = bind(begun, "swagger.json", "any").assert_exit(2)
    assert "npx swagger2openapi swagger.json -o openapi.json" in refused.err
