"""A desk that pays back, whose pack limits what refunds add up to. A refund leaves a line in a file of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from support.project import Project, Result

PAID: Final = "paid.txt"
PACK: Final = "limited@1.0.0"
UNDER: Final = ("--pack", PACK, "--intent", "pay.back", "--json")
PER_ORDER: Final = "{id: per_order, applies_to: {capabilities: [pay.refund]}, sum: amount, max: 100, per: args.order}"
PER_USER: Final = (
    "{id: per_user, applies_to: {capabilities: [pay.refund]}, max: 5, per: user, window_s: 86400}"
)


def make_limited_desk(
    project: Project, *limits: str, rules: str = "[]", mode: str = "network", body: str = ""
) -> Project:
    """Write the desk with these limits into a project. `body` is code of the refund, before it is made."""
    files = {
        "capabilities/pay.refund.yaml": "id: pay.refund\nversion: 1.0.0\ndescription: Pay back.\n"
        "inputs:\n  order: {type: string, required: true, description: The order.}\n"
        "  amount: {type: number, required: true, description: The amount.}\n"
        "outputs: {done: {type: boolean, required: true, description: Whether it is paid.}}\n"
        "properties: {side_effects: true, idempotent: false}\n",
        "bindings/local/pay.refund/pay_refund.yaml": "id: pay_refund\ncapability: pay.refund\nservice: desk\n"
        "protocol: pythoncall\noperation: refund\nrequest: {order: input.order, amount: input.amount}\n"
        "response: {done: response.done}\n",
        "services/desk.yaml": "id: desk\nkind: pythoncall\nmodule: limited_desk_service\n",
        "limited_desk_service.py": "from __future__ import annotations\n\nimport os\n\n\n"
        "def refund(order: str, amount: float) -> dict[str, bool]:\n"
        f"{body or '    pass'}\n"
        f"    handle = os.open({str(project.root / PAID)!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)\n"
        "    os.write(handle, f'{order} {amount}\\n'.encode())\n"
        "    os.close(handle)\n"
        "    return {'done': True}\n",
        "skills/local/pay/back/skill.yaml": "id: pay.back\nversion: 1.0.0\nname: Pay back\n"
        "description: Pay back.\n"
        "inputs:\n  order: {type: string, required: true, description: The order.}\n"
        "  amount: {type: number, required: true, description: The amount.}\n"
        "outputs: {done: {type: boolean, description: Whether it is paid.}}\n"
        "steps:\n  - id: refund\n    uses: pay.refund\n    input: {order: inputs.order, amount: inputs.amount}\n"
        "    output: {done: outputs.done}\n",
        "packs/limited/1.0.0.yaml": limited_pack(*limits, rules=rules, mode=mode),
    }
    for name, text in files.items():
        project.write(name, text.encode())
    return project


def limited_pack(*limits: str, rules: str = "[]", mode: str = "network") -> str:
    """The pack of the desk."""
    lines = "".join(f"    - {limit}\n" for limit in limits or (PER_ORDER,))
    return (
        "contract_meta: {contract_version: '1.0'}\n"
        "pack_meta: {pack_id: limited, pack_version: 1.0.0, defaults: {safety_mode: destructive}}\n"
        "policy_layer:\n"
        "  permissions: [{role: clerk, allow: [pay.refund]}]\n"
        f"  limits:\n{lines}"
        f"  rules: {rules}\n"
        f"tooling_layer: {{capabilities: {{pay.refund: {{approval_mode: {mode}}}}}}}\n"
        "decision_layer:\n"
        "  intents:\n"
        "    - {id: pay.back, phrases: [pay back], risk: network, capabilities: [pay.refund], templates: [pay],\n"
        "       slots: {order: {type: order, param: order}}}\n"
        "  task_templates:\n"
        "    - {id: pay, steps: [{id: refund, uses: pay.refund,\n"
        "       input: {order: inputs.order, amount: inputs.amount}, output: {done: outputs.done}}], reply: Paid.}\n"
        "tone_and_comms: {agent: {role: clerk}}\n"
    )


def pay(desk: Project, order: str, amount: float | str, *flags: str) -> Result:
    """Run the skill of the desk under its pack."""
    given = ("-p", f"order={order}", "-p", f"amount={amount}")
    return desk.run("run", "pay.back", *given, *UNDER, *flags)


def paid(desk: Project) -> list[tuple[str, float]]:
    """The refunds that were really made."""
    path: Path = desk.root / PAID
    lines = path.read_text().splitlines() if path.exists() else []
    return [(order, float(amount)) for order, amount in (line.split() for line in lines)]


def decisions(desk: Project) -> list[dict[str, Any]]:
    """The decisions of the last run, in order."""
    from support.agent_desk import payloads

    return payloads(desk.episode, "policy.decided")
