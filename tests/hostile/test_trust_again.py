"""What weakens an accepted project is shown before it is accepted, wherever it is written and however it is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.project import Project

FIRST = "x" * 500
CAPABILITY = (
    'id: shop.item.get\nversion: "1.0.0"\ndescription: Gets.\ninputs: {}\noutputs: {text: {type: string}}\n'
    "safety: {mandatory_pre_gates: [a.strict.gate], reversible: false}\n"
)
BINDING = (
    "id: b\ncapability: shop.item.get\nservice: shop\nprotocol: openapi\noperation: look\n"
    "request: {}\nresponse: {text: response.text}\n"
)
PACK = (
    'contract_meta: {contract_version: "1.0"}\npack_meta: {pack_id: skills, pack_version: 1.0.0}\n'
    "policy_layer: {rules: [{rule_id: stop, mode: enforce, if: true, then: {verdict: deny}}]}\n"
    "tooling_layer: {capabilities: {shop.item.get: {approval_mode: destructive}}}\ndecision_layer: {}\n"
)
SHOP = (
    "id: shop\nkind: openapi\nbase_url: 'https://{place}/v1'\nspec_ref: shop.json\n"
    "variables: {place: {default: good.example}}\n"
)
DOCUMENT = {"openapi": "3.0.3", "paths": {"/a": {"get": {"operationId": "look"}}}}
FILES = {
    "cogcli.toml": "",
    "capabilities/shop.item.get.yaml": CAPABILITY,
    "services/skills/shop.yaml": SHOP,
    "services/skills/shop.json": json.dumps(DOCUMENT),
    "services/local/plain.yaml": "id: plain\nkind: openapi\nbase_url: https://good.example\n",
    "bindings/skills/shop.item.get/b.yaml": BINDING,
    "packs/skills/1.0.0.yaml": PACK,
    "services/local/tool.yaml": f"id: tool\nkind: mcp\ncommand: ./tool.sh\nargs: [{FIRST}, a]\nenv: {{MODE: a}}\n",
    "services/local/code.yaml": "id: code\nkind: pythoncall\nmodule: code_of_it\nisolation: sandbox\n",
    ".agent-skills/active_bindings.json": '{"shop.item.get": "b"}',
    ".agent-skills/overrides.yaml": "overrides: [{capabilities: [shop.item.get], service: shop}]\n",
}
CHANGES = [
    ("services/skills/shop.yaml", "good.example", "evil.example", "service shop: new host evil.example"),
    ("bindings/skills/shop.item.get/b.yaml", "look", "drop", "binding b calls drop of service shop"),
    ("packs/skills/1.0.0.yaml", "deny", "allow", "skills@1.0.0: rule stop says allow, was deny"),
    ("packs/skills/1.0.0.yaml", "destructive", "read_only", "shop.item.get: approval_mode read_only"),
    ("services/skills/shop.json", '{"openapi": "3.0.3", "paths": {"/a": {"get"',
     '{"id": "x", "openapi": "3.0.3", "paths": {"/a": {"delete"', "operation look is DELETE /a, was GET /a"),
    (".agent-skills/active_bindings.json", '{"shop.item.get": "b"}', '{"paths": "b", "shop.item.get": "c"}',
     "capability shop.item.get is called through c, was b"),
    (".agent-skills/overrides.yaml", "service: shop", "service: other", "service other (replace)"),
    ("capabilities/shop.item.get.yaml", "a.strict.gate", "a.weak.gate", "loses the gate a.strict.gate"),
    ("capabilities/shop.item.get.yaml", ", reversible: false", "", "effect cannot be undone"),
    ("services/local/plain.yaml", "https:", "http:", "service plain: calls without encryption good.example"),
    ("services/local/tool.yaml", ", a]", ", b]", "service tool: new program ./tool.sh"),
    ("services/local/tool.yaml", "MODE: a", "MODE: --require=./x.js", "variable MODE --require=./x.js, was a"),
    ("services/local/code.yaml", "sandbox", "thread", "service code: isolation thread, was sandbox"),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("path", "old", "new", "meaning"), CHANGES)
def test_what_a_change_means_is_not_hidden(
    tmp_path: Path, path: str, old: str, new: str, meaning: str
) -> None:
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    for name, text in FILES.items():
        project.write(name, text)
    project.run("config", "trust").assert_ok()
    assert old in FILES[path]
    project.write(path, FILES[path].replace(old, new))
    shown = project.run("config", "trust", "--json", "--yes").assert_ok().json["changes"]
    (change,) = [each for each in shown if each["name"] == path]
    assert any(meaning in each for each in change["meaning"]), change
