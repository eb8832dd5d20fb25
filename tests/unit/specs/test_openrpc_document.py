"""OpenRPC documents: the methods of a service."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from document_service import service_with

from cogcli.base.api_documents.openrpc import OpenRpcDocument, RpcParam, load_openrpc
from cogcli.base.json_pointer import DocumentFault

MATHS = """
openrpc: 1.3.2
info: {title: Maths, version: "1"}
methods:
  - name: add
    paramStructure: by-position
    params:
      - {name: a, required: true, schema: {type: integer}}
      - {$ref: "#/components/contentDescriptors/B"}
    result: {name: sum, schema: {$ref: "#/components/schemas/Sum"}}
  - {$ref: "#/x-more"}
x-more: {name: log.line, deprecated: true, params: []}
components:
  contentDescriptors: {B: {name: b, deprecated: true, schema: {type: integer}}}
  schemas: {Sum: {type: integer}}
"""


def opened(root: Path, text: str) -> OpenRpcDocument:
    document = load_openrpc(service_with(root, text, kind="openrpc"))
    assert document is not None
    return document


def test_a_method_has_its_parameters_in_order_and_a_result(tmp_path: Path) -> None:
    method = opened(tmp_path, MATHS).method("add")
    assert method.params == (
        RpcParam("a", True, {"type": "integer"}, False),
        RpcParam("b", False, {"type": "integer"}, True),
    )
    assert method.by_position
    assert method.result == {"$ref": "#/$defs/Sum", "$defs": {"Sum": {"type": "integer"}}}
    assert not method.is_notification


def test_a_method_without_result_is_a_notification(tmp_path: Path) -> None:
    method = opened(tmp_path, MATHS).method("log.line")
    assert method.is_notification
    assert method.result is None
    assert method.deprecated
    assert not method.by_position


def test_an_unknown_method_is_told_with_what_may_be_meant(tmp_path: Path) -> None:
    with pytest.raises(DocumentFault) as caught:
        opened(tmp_path, MATHS).method("ad")
    assert (caught.value.code, caught.value.hint) == ("wire.operation", "did you mean `add`?")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MATHS.replace("1.3.2", "1.2.6"), "expected 1.3 or 1.4"),
        (MATHS.replace("params: []", "params: {}"), "`#/x-more/params`"),
        (
            MATHS.replace("name: a, required: true", "name: a, required: 1"),
            "`#/methods/0/params/0/required`",
        ),
        (
            MATHS.replace("{name: b, deprecated: true, ", "{deprecated: true, "),
            "`#/components/contentDescriptors/B`",
        ),
        (MATHS.replace("log.line", "add"), "method `add` repeated"),
        (MATHS.replace("name: b,", "name: a,"), "parameter `a` repeated"),
        (MATHS.replace("by-position", "by-chance"), "`#/methods/0/paramStructure`"),
        (
            MATHS.replace("schemas: {Sum: {type: integer}}", "schemas: {Sum: 1}"),
            "`#/components/schemas/Sum`",
        ),
        ("openrpc: 1.4.0\ninfo: {title: a, version: '1'}", "methods"),
    ],
)
def test_an_unusable_document_is_told_at_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DocumentFault) as caught:
        opened(tmp_path, text)
    assert caught.value.code == "wire.document"
    assert said in caught.value.message


def test_version_1_4_is_read_from_json(tmp_path: Path) -> None:
    value = {"openrpc": "1.4.1", "info": {"title": "a", "version": "1"}, "methods": []}
    service = service_with(tmp_path, orjson.dumps(value).decode(), kind="openrpc", name="api.json")
    document = load_openrpc(service)
    assert document is not None
    assert document.names == ()
