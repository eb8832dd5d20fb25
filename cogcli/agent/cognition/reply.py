"""The goal and the reply of a template. Pure (docs/reference/agent-run.md#reply)."""

from __future__ import annotations

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.redact import BY_NAME
from cogcli.declarations.value_types import Json
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.protocols.live.request import compile_template
from cogcli.specs.pack_skills import reply_template
from cogcli.specs.template import TemplateFault
from cogcli.state.execution import ExecutionState


def is_met(
    success: object, state: ExecutionState, facts: Json = NOTHING, outputs: Json = NOTHING
) -> bool:
    """Return whether the condition of a template or a decision is true. A condition without a result counts as false.

    `facts` are by slot, and `outputs` are those of the calls of a plan. Values that the plan wrote have priority.
    """
    data = _rule_data(state)
    more: Json = BY_NAME.mask({**facts, "outputs": outputs})
    data = {**more, **data, "outputs": {**more["outputs"], **data["outputs"]}}
    return evaluate(compile_rule(success), data).result is True


def render(reply: str, state: ExecutionState) -> str:
    """Return the text of a template over inputs and outputs. Empty if a value is missing."""
    try:
        return str(compile_template(reply_template(reply))(_rule_data(state)))
    except (RuntimeErrorBase, TemplateFault):
        return ""


def _rule_data(state: ExecutionState) -> Json:
    """Return the state in its logged form, because no text may contain a secret and no goal may depend on one."""
    seen: Json = BY_NAME.mask(
        {"inputs": state.inputs, "outputs": state.outputs, "vars": state.vars}
    )
    return seen
