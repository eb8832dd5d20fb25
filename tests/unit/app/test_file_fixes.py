"""`validate --fix`: misspelt references and ids become what the hint of their problem proposes
(docs/reference/command-line.md#fixes)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

from cogcli.app.checks.file_fixes import find_fixes
from cogcli.app.checks.registry_check import validate
from cogcli.app.settings import Settings

pytestmark = pytest.mark.sampled(6)

FILES = {
    "cogcli.toml": "",
    "capabilities/shop.order.total.yaml": """\
id: shop.order.total
version: "1.0.0"
description: Adds up an order.
inputs: {order: {type: string, required: true}}
outputs: {total: {type: number, required: true}}
properties: {deterministic: true, side_effects: false, idempotent: true}
metadata: {examples: []}
""",
    "services/local/shop.yaml": "id: shop\nkind: openapi\nbase_url: https://shop.example\n",
    "bindings/local/shop.order.total/shop_total.yaml": """\
id: shop_total
capability: shop.order.total  # what it does
service: shop
protocol: openapi
operation: /total
request: {order: input.order}
response: {total: response.total}
metadata: {fallback_binding_id: shop_other}
""",
    "bindings/local/shop.order.total/shop_other.yaml": """\
id: shop_other
capability: shop.order.total
service: shop
protocol: openapi
operation: /other
request: {order: input.order}
response: {total: response.total}
""",
    "skills/local/shop/one/skill.yaml": """\
id: shop.one
version: "1.0.0"
name: One
description: Adds up one order.
inputs: {order: {type: string, required: true}}
outputs: {total: {type: number}}
steps:
  - id: add
    uses: shop.order.total
    input: {order: inputs.order}
    output: {total: outputs.total}
""",
    "skills/local/shop/all/skill.yaml": """\
# Every order
id: shop.all
version: "1.0.0"
name: All
description: Adds up orders.
inputs: {orders: {type: array, items: {type: string}, required: true}, one: {type: string}}
outputs: {first: {type: number}, sums: {type: array}}
steps:
  - id: first
    uses: skill:shop.one   # nested
    input: {order: inputs.one}
    output: {total: vars.firsts}
  - id: each
    uses: shop.order.total  # by its capability
    config: {foreach: {items: inputs.orders, as: order}, depends_on: [first]}
    input:
      order: "order"  # the item
    output: {total: vars.sums}
  - id: again
    uses: shop.order.total
    input: {order: {$text: "of ${vars.firsts}"}}
    output: {total: outputs.first}
""",
}
ALL, BINDING = "skills/local/shop/all/skill.yaml", "bindings/local/shop.order.total/shop_total.yaml"


def fixed(root: Path, file: str, right: str, wrong: str, **more: str) -> dict[str, str]:
    """The texts that fixes give, by file, with a wrong word in one of the files."""
    project = Project(root)
    for name, text in FILES.items():
        assert name != file or text.count(right) == 1, text.count(right)
        project.write(name, text.replace(right, wrong) if name == file else text)
    for name, text in more.items():
        project.write(name, text)
    settings = Settings({}, {"HOME": str(project.home)}, base=str(project.root))
    checked = validate(settings, [str(project.root / folder) for folder in ("skills", "bindings")])
    return {fix.file: fix.text for fix in find_fixes(settings, checked)}


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        (ALL, "uses: skill:shop.one ", "uses: skill:shop.oen "),
        (ALL, "uses: skill:shop.one ", "uses: skill:shop.onee "),
        (ALL, "uses: shop.order.total  #", "uses: shop.order.totl  #"),
        (ALL, "uses: shop.order.total  #", 'uses: "shop.oder.total"  #'),
        (ALL, "items: inputs.orders", "items: inputs.ordes"),
        (ALL, "depends_on: [first]", "depends_on: [frist]"),
        (ALL, "${vars.firsts}", "${vars.fists}"),
        (ALL, "{order: inputs.one}", "{order: input.one}"),
        (BINDING, "service: shop\n", "service: shopp\n"),
        (BINDING, "capability: shop.order.total  #", "capability: shop.order.totl  #"),
        (BINDING, "fallback_binding_id: shop_other", "fallback_binding_id: shop_othr"),
        (BINDING, "input.order", "input.oder"),
    ],
)
def test_what_is_meant_is_put_at_its_place_and_nothing_else_changes(
    tmp_path: Path, file: str, right: str, wrong: str
) -> None:
    quoted = 'uses: "shop.order.total"  #' if '"' in wrong else right
    assert fixed(tmp_path, file, right, wrong) == {file: FILES[file].replace(right, quoted)}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        (ALL, "uses: shop.order.total  #", "uses: shop.nothing.like  #"),
        (BINDING, "fallback_binding_id: shop_other", "fallback_binding_id: shop_oter_tal"),
        (ALL, "{order: inputs.one}", '{order: "of inputs.one"}'),
        (BINDING, "capability: shop.order.total  #", "capability: text.tone.shout  #"),
    ],
)
def test_what_may_be_meant_otherwise_stays(
    tmp_path: Path, file: str, right: str, wrong: str
) -> None:
    assert fixed(tmp_path, file, right, wrong) == {}


@pytest.mark.sampled(12)
def test_a_binding_of_another_capability_may_lie_in_the_wrong_folder(tmp_path: Path) -> None:
    other = FILES["capabilities/shop.order.total.yaml"].replace(
        "shop.order.total", "shop.order.totals"
    )
    more = {"capabilities/shop.order.totals.yaml": other}
    wrong = "capability: shop.order.totals  #"
    assert fixed(tmp_path, BINDING, "capability: shop.order.total  #", wrong, **more) == {}


def test_a_path_that_is_no_id_is_not_proposed_as_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("cogcli.toml", "")
    project.write("skills/local/My Shop/one/skill.yaml", FILES["skills/local/shop/one/skill.yaml"])
    settings = Settings({}, {"HOME": str(project.home)}, base=str(project.root))
    problems = validate(settings, [str(project.root / "skills")]).problems
    (hint,) = {problem.hint for problem in problems if problem.code == "layout.id"}
    assert hint == "move the file: its path is not an id"
