"""The modes of an agent, `fast` and `deep`, and switches between them (docs/reference/agent-state.md#modes). Pure."""

from __future__ import annotations

from typing import Final

from cogcli.agent import state as agent_state
from cogcli.agent.reply import Reply
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import MODES as APPROVAL_MODES
from cogcli.policy.verdict import is_above

ADAPT: Final = "adapt"
CALLS: Final = {"fast": 3, "deep": 8}
"""The maximal number of calls in a reply, by mode."""
MAX_SWITCHES: Final = 2
_SHORT: Final = 3
"""The most steps of a template in fast mode, and the fewest words of a reason."""
_RISK: Final = "delegated"


class Switch(NamedTuple):
    """A requested switch. `refused` is the reason why it is not made. Empty if it is made."""

    target: str
    why: str
    refused: str = ""


def resolve_mode(requested_mode: str, risk: str, template_steps: int, last_run_failed: bool) -> str:
    """Return the mode of the first prompt, `fast` or `deep`. The requested mode has priority.

    Otherwise it depends on the risk of the intent (an approval mode, or empty) and the number of steps in its template.
    It also depends on whether the session's last run failed.
    """
    if requested_mode in CALLS:
        return requested_mode
    risky = risk in APPROVAL_MODES and not is_above(_RISK, risk)
    return "deep" if risky or template_steps > _SHORT or last_run_failed else "fast"


def judge_switch(execution: agent_state.ExecutionState, reply: Reply) -> Switch | None:
    """Return the switch that the reply requests, with whether it is made, or None if it requests none."""
    if not reply.switch_mode:
        return None
    refusals = {
        "unknown_mode": reply.switch_mode not in CALLS,
        "same_mode": reply.switch_mode == execution.mode,
        "no_reason": len(reply.switch_why.split()) < _SHORT,
        "mode_locked": execution.mode_locked,
        "last_iteration": execution.iteration + 1 >= execution.max_iterations,
        "no_switch_left": execution.switches >= MAX_SWITCHES,
    }
    refused = next((reason for reason, holds in refusals.items() if holds), "")
    return Switch(reply.switch_mode, reply.switch_why, refused)
