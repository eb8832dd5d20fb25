"""The rules about who may answer a request for approval (docs/reference/pack.md#policy-layer)."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.base.comparable_names import comparable_name
from cogcli.base.errors import PolicyApprovalError, UsageError
from cogcli.base.terminal_text import is_plain_name
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.run_start import RecordedPolicy


def is_of_gate(request: ApprovalRequested) -> bool:
    """Return whether a gate of a pack made this request. Only such a request needs an approver with a role."""
    return request.approver_roles is not None


def parse_approver(request: ApprovalRequested, by: str) -> tuple[str, str]:
    """Split `by` into the name and the role of the approver: `NAME:ROLE` for a gate of a pack, otherwise a name
    alone.
    """
    if not is_of_gate(request):
        return by, ""
    name, colon, role = by.rpartition(":")
    return (name, role) if colon else (by, "")


def require_approver(
    request: ApprovalRequested, *, granted: bool, by: str, policy: RecordedPolicy | None,
    agent_id: str = "",
) -> None:  # fmt: skip
    """Raise an error unless `by` may answer the request under the recorded policy of the run. `agent_id` is the
    name that the request gave its agent.

    Raise UsageError for a name with invisible characters. Raise PolicyApprovalError if the gate needs another
    role, or if the user or the agent of the run grants its own request. The request stays open.
    """
    if not is_of_gate(request):
        return
    name, role = parse_approver(request, by)
    gate, roles = request.gate, request.approver_roles or []
    _require_plain_name(name)
    if roles and role not in roles:
        raise _missing_role_error(gate or "", roles, role)
    names_agent = agent_id and comparable_name(name) == comparable_name(agent_id)
    if granted and (names_agent or _is_requester(name, request, policy)):
        raise PolicyApprovalError(
            "policy.approval",
            f"`{name}` asked for this: {gate} needs another person",
            hint="let another person answer",
        )


def _require_plain_name(name: str) -> None:
    """Raise UsageError for an empty name, and for one with invisible characters or with space around it."""
    if is_plain_name(name):
        return
    if not name:
        raise UsageError(
            "usage.value",
            "`--by`: the name is empty",
            hint="--by NAME:ROLE; a variable in it, such as $USER, may be unset",
        )
    raise UsageError(
        "usage.value",
        "`--by`: a name has no space around it and no invisible characters",
        hint="--by NAME:ROLE",
    )


def _missing_role_error(gate: str, roles: Sequence[str], role: str | None) -> PolicyApprovalError:
    """Return the error for an approver without one of the gate's roles."""
    wanted = ", ".join(f"`{each}`" for each in roles)
    found = f"`{role}`" if role else "none"
    return PolicyApprovalError(
        "policy.approval",
        f"{gate} wants one of the roles {wanted}, found {found}",
        hint=f"answer with --by NAME:{roles[0]}",
    )


def _is_requester(name: str, request: ApprovalRequested, policy: RecordedPolicy | None) -> bool:
    """Return whether the name is the agent of the run, or its user if the gate forbids self-approval."""
    user = (policy.user if policy else "") or "default"
    agent = f"agent.{policy.pack.partition('@')[0]}" if policy else ""
    normalized = comparable_name(name)
    if normalized == comparable_name(agent):
        return True
    return normalized == comparable_name(user) and not request.allow_self
