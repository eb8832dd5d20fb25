"""Did you mean: every producer proposes what works where it is put. A row breaks one place of a sound project; the
proposal of the problem, put there, mends it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cogcli.base.problems import Problem
from cogcli.protocols import PROTOCOLS
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry

SKILL = """
id: t.s
version: "1.0.0"
name: Test
description: For tests.
inputs:
  order:
    type: object
    required: true
    schema: {properties: {sku: {type: string}, lines: {type: array}}}
outputs:
  total: {type: string, required: true}
steps:
  - id: look
    uses: t.look
    input: {text: inputs.order.sku, more: frame.goal}
    output: {found.name: vars.name, found: vars.found, flag: working.risks}
    config: {condition: "inputs.order.sku != 'x' or len(inputs.order.lines) > 0", otherwise: {flag: []}}
  - id: nested
    uses: skill:t.inner
    input: {text: {$text: "for ${vars.found.name}"}}
    output: {total: outputs.total}
    config: {depends_on: [look]}
  - id: each
    uses: "t.look"
    input: {text: line, more: null}
    output: {found: vars.each}
    config: {foreach: {items: inputs.order.lines, as: line}}
"""
INNER = """
id: t.inner
version: "1.0.0"
name: Inner
description: For tests.
inputs: {text: {type: string, required: true}}
outputs: {total: {type: string, required: true}}
steps:
  - {id: one, uses: t.look, input: {text: inputs.text, more: null}, output: {found.name: outputs.total}}
"""
CAPABILITY = """
id: t.look
version: "1.0.0"
description: Look.
inputs: {text: {type: string, required: true}, more: {type: any}}
outputs:
  found: {type: object, required: true, schema: {properties: {name: {type: string}}}}
  flag: {type: array}
properties: {side_effects: false}
safety: {mandatory_pre_gates: [{capability: t.gate, input: {about: input.text}}]}
"""
GATE = """
id: t.gate
version: "1.0.0"
description: A gate.
inputs: {about: {type: string, required: true}}
outputs: {allowed: {type: boolean, required: true}}
properties: {side_effects: false}
"""
BINDING = """
id: ID
capability: CAPABILITY
service: shop
protocol: pythoncall
operation: normalize
"""
FILES = {
    "skills/local/t/s/skill.yaml": SKILL,
    "skills/local/t/inner/skill.yaml": INNER,
    "capabilities/t.look.yaml": CAPABILITY,
    "capabilities/t.gate.yaml": GATE,
    "bindings/local/t.look/one.yaml": BINDING.replace("ID", "look_py").replace(
        "CAPABILITY", "t.look"
    )
    + 'request: {text: "${input.text} ${input.more:-}"}\nresponse: {found: response.found, flag: response.flag}\n',
    "bindings/local/t.gate/one.yaml": BINDING.replace("ID", "gate_py").replace(
        "CAPABILITY", "t.gate"
    )
    + "request: {text: input.about}\nresponse: {allowed: response.allowed}\n",
    "services/local/shop.yaml": "id: shop\nkind: pythoncall\nmodule: cogcli.official.text\nisolation: process\n",
}
Write = Callable[..., str]
S, C, B = (
    "skills/local/t/s/skill.yaml",
    "capabilities/t.look.yaml",
    "bindings/local/t.look/one.yaml",
)

ROWS = [
    ("ref.input", S, "inputs.order.sku, more", "inputs.ordr.sku, more"),
    ("ref.field", S, "inputs.order.sku, more", "inputs.order.skuu, more"),
    ("ref.field", S, "for ${vars.found.name}", "for ${vars.found.nmae}"),
    ("ref.field", S, "{found.name: vars.name", "{found.nmae: vars.name"),
    ("ref.unwritten", S, "for ${vars.found.name}", "for ${vars.fund.name}"),
    ("ref.unwritten", S, "text: line", "text: vars.line"),
    ("ref.slot", S, "frame.goal", "frame.gaol"),
    ("ref.namespace", S, "frame.goal", "fame.goal"),
    ("ref.text", S, "inputs.order.sku, more", "\"{{ order.sku }}\", more"),
    ("target.namespace", S, "found: vars.found", "found: var.found"),
    ("target.slot", S, "working.risks", "working.risk"),
    ("outputs.undeclared", S, "total: outputs.total}", "total: outputs.totl}"),
    ("step.output-unknown", S, "found: vars.found", "fuond: vars.found"),
    ("step.output-unknown", S, "{found.name: vars.name", "{fuond.name: vars.name"),
    ("step.output-unknown", S, "{flag: []}", "{flga: []}"),
    ("step.input-undeclared", S, "more: frame.goal", "mroe: frame.goal"),
    ("step.uses", S, "uses: t.look", "uses: t.lok"),
    ("step.uses", S, "skill:t.inner", "skill:t.iner"),
    ("step.uses", S, "skill:t.inner", "t.inner"),
    ("expr.name", S, "inputs.order.sku !=", "order.sku !="),
    ("expr.syntax", S, "len(inputs.order.lines)", "length(inputs.order.lines)"),
    ("graph.unknown", S, "[look]", "[lok]"),
    ("key.unknown", S, "    output: {total", "    outptu: {total"),
    ("gate.input", C, "about: input.text", "about: input.txet"),
    ("gate.input", C, "about: input.text", "about: text"),
    ("gate.unknown", C, "capability: t.gate", "capability: t.gaet"),
    ("request.input", B, "${input.text}", "${input.txet}"),
    ("response.field", B, "flag: response.flag", "flga: response.flag"),
    ("response.literal", B, "flag: response.flag", "flag: found.flag"),
    ("layout.id", B, "capability: t.look", "capability: t.lok"),
    ("binding.service", B, "service: shop", "service: shpo"),
]  # fmt: skip


def test_where_no_output_is_near_all_are_named(root: Write) -> None:
    broken = {S: FILES[S].replace("found: vars.found", "order: vars.found")}
    (found,) = [each for each in problems_of(root, broken) if each.code == "step.output-unknown"]
    assert found.hint == "it has `flag`, `found`"


def problems_of(root: Write, changed: dict[str, str]) -> list[Problem]:
    folder = root(files={**FILES, **changed}, bare=True)
    return check(
        Registry([Layer("here", folder, True)], protocols=PROTOCOLS, base=folder).everything()
    )


def test_the_project_of_the_rows_is_sound(root: Write) -> None:
    assert {each.code for each in problems_of(root, {})} <= {"vars.unused", "ref.maybe"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "file", "right", "wrong"), ROWS, ids=lambda value: value if "/" not in value else ""
)
def test_what_is_proposed_mends_the_place_where_it_is_put(
    root: Write, code: str, file: str, right: str, wrong: str
) -> None:
    source = FILES[file]
    assert source.count(right) == 1
    broken = source.replace(right, wrong)
    found = [each for each in problems_of(root, {file: broken}) if each.code == code]
    assert found, code
    proposed = re.search(r"(?:did you mean|write) `?([^`?,]+)`?", found[0].hint)
    assert proposed, found[0]
    words = re.findall(r'"[^"]*"|[\w.-]+(?::[\w.-]+)?', wrong)
    mended = [broken.replace(wrong, wrong.replace(word, proposed[1])) for word in words]
    assert any(
        code not in {each.code for each in problems_of(root, {file: text})} for text in mended
    ), proposed[1]
